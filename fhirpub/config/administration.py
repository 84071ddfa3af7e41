"""The settings of the interface for administration."""

# ruff: noqa: RUF009 - each setting has its default and its meaning side by side

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fhirpub.config.reader import LAST_PORT
from fhirpub.config.reader import setting as _setting

BOOTSTRAP = "bootstrap"
"""The name of the caller that has the bootstrap key."""
_CALLER = re.compile(r"(?P<name>[A-Za-z0-9._-]{1,64})=(?P<file>.+)")
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminConfig:
    """Administration over HTTP, at /admin/v1 on a port of its own."""

    host: str = _setting(
        "127.0.0.1",
        "Address that serves administration. It is without TLS: beyond this machine, put a proxy "
        "with TLS in front of it.",
    )
    port: int = _setting(
        0, "Port that serves administration, different from all others. 0: it is not served."
    )
    base_url: str = _setting(
        "",
        "URL by which operators reach it, such as https://admin.example.org: the audience of "
        "their assertions. Empty: http://host:port.",
    )
    bootstrap_key_hash: str = _setting(
        "",
        "SHA-256 of a key, in hexadecimal, that authenticates the caller `bootstrap`. `fhirpub "
        "admin new-key` creates one. Empty: there is none.",
    )
    callers: list[str] = _setting(
        [],
        "Who else may administer the service: a name, an equals sign and a file with the public "
        "keys (a JWK Set), such as terraform=/etc/fhirpub/terraform.jwks.json. `fhirpub admin "
        "new-caller` creates such a file. It is read again at each request for a token.",
    )
    token_seconds: int = _setting(
        300,
        "Lifetime in seconds of the tokens that callers get for their assertions, at most the "
        "longer one of [auth] token_seconds and assertion_token_seconds.",
    )


def admin_base_url(config: AdminConfig) -> str:
    """Return the URL by which operators reach the interface, without a slash at its end."""
    host = f"[{config.host}]" if ":" in config.host else config.host
    return (config.base_url or f"http://{host}:{config.port}").rstrip("/")


def admin_callers(config: AdminConfig) -> Mapping[str, Path]:
    """Return the files of public keys by the names of callers."""
    matches = filter(None, map(_CALLER.fullmatch, config.callers))
    return {match["name"]: Path(match["file"]) for match in matches}


def admin_contradictions(config: AdminConfig) -> Iterator[str]:
    """Yield the problems of these settings, without those of ports that others have."""
    yield from _wrong_callers(config.callers)
    if config.bootstrap_key_hash and not _SHA256.fullmatch(config.bootstrap_key_hash):
        yield "[admin] bootstrap_key_hash must be 64 hexadecimal digits, in lower case"
    if config.port > LAST_PORT:
        yield f"[admin] port must be at most {LAST_PORT}"
    if config.port and not config.callers and not config.bootstrap_key_hash:
        yield (
            "[admin] port: no caller could authenticate; set bootstrap_key_hash, of a key that "
            "`fhirpub admin new-key` creates, or callers"
        )


def _wrong_callers(callers: Sequence[str]) -> Iterator[str]:
    place = "[admin] callers:"
    matches = {text: _CALLER.fullmatch(text) for text in callers}
    for text, match in matches.items():
        if match is None:
            yield f"{place} {text!r} must be NAME=FILE, such as terraform=keys.json"
    names = Counter(match["name"] for match in matches.values() if match is not None)
    for name, count in names.items():
        if count > 1:
            yield f"{place} {name} is named {count} times: put all of its keys into one file"
        if name == BOOTSTRAP:
            yield f"{place} {name} is the name of who has the bootstrap key: use another one"
