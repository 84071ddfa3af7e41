"""The settings of the console."""

# ruff: noqa: FBT003, RUF009 - each setting has its default and its meaning side by side

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from fhirpub.config.reader import LAST_PORT
from fhirpub.config.reader import setting as _setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleConfig:
    """The console: pages at /console for the people of clients, and for operators."""

    enabled: bool = _setting(
        False,
        "Serve the console. People sign in by a passkey or a one-time link, never by the secret "
        "of a client.",
    )
    host: str = _setting("127.0.0.1", "Address that serves the console, if it has its own port.")
    port: int = _setting(
        0,
        "Port that serves the console alone, different from all others. 0: the service serves it "
        "beside its other routes.",
    )
    base_url: str = _setting(
        "",
        "URL by which browsers reach the console, such as https://console.example.org: the origin "
        "of its passkeys, and of the links that it makes. Empty: http://host:port with a port of "
        "its own, or else the base_url of the service.",
    )
    idle_minutes: int = _setting(
        20, "Time in minutes after its last page at which a session ends."
    )
    session_hours: int = _setting(
        10, "Time in hours after which a session ends, however much it is used."
    )
    oidc_issuer: str = _setting(
        "",
        "Issuer of an OpenID Connect provider by which people sign in, such as "
        "https://login.example.org. Its client has the redirect URI "
        "BASE_URL/console/sign-in/provider. Empty: none.",
    )
    oidc_client_id: str = _setting("", "Id of the client that the console is at the provider.")
    oidc_client_secret: str = _setting(
        "",
        "Secret of that client. A variable keeps it out of the file. Empty: the client is public, "
        "and proves itself by PKCE alone.",
        secret=True,
    )
    oidc_claim: str = _setting(
        "email",
        "Claim of the ID token that names the person: the key of a client, as in `fhirpub client "
        "add --key`. An email counts only if the provider has verified it.",
    )
    oidc_operators: list[str] = _setting(
        [], "Values of that claim whose people are operators, not the people of a client."
    )
    documentation_url: str = _setting(
        "",
        "URL of your documentation, to which the console leads, and the page at / that browsers "
        "get where there is no console. Empty: none.",
    )


def console_base_url(config: ConsoleConfig, service_url: str) -> str:
    """Return the URL by which browsers reach the console, without a slash at its end.

    ``service_url`` is that of the service.
    """
    if config.base_url or not config.port:
        return (config.base_url or service_url).rstrip("/")
    host = f"[{config.host}]" if ":" in config.host else config.host
    return f"http://{host}:{config.port}"


def origin_of(url: str) -> str:
    """Return the origin of a URL as browsers write it (RFC 6454, section 6.1)."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    host = f"[{host}]" if ":" in host else host
    is_usual = port in (None, {"https": 443, "http": 80}.get(parts.scheme))
    return f"{parts.scheme}://{host}" + ("" if is_usual else f":{port}")


def console_contradictions(config: ConsoleConfig) -> Iterator[str]:
    """Yield the problems of these settings, without those of ports that others have."""
    if config.port > LAST_PORT:
        yield f"[console] port must be at most {LAST_PORT}"
    if config.oidc_issuer and not _is_safe(config.oidc_issuer):
        yield "[console] oidc_issuer must begin with https://"
    if config.oidc_issuer and not config.oidc_client_id:
        yield "[console] oidc_issuer needs oidc_client_id"


def _is_safe(issuer: str) -> bool:
    """Return whether no other machine can read what is sent to an issuer."""
    on_this_machine = re.match(r"http://127\.0\.0\.1(:[0-9]+)?(/|$)", issuer)
    return issuer.startswith("https://") or on_this_machine is not None
