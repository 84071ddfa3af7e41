"""Warnings about settings."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import urlsplit

from fhirpub.app.stores import uses_mongodb
from fhirpub.auth.passkeys import why_none
from fhirpub.cli.advice.finding import Finding, warning
from fhirpub.cli.advice.mongodb import advise_on_url
from fhirpub.config.loader import misspelt_variables
from fhirpub.config.settings import AuthConfig, Config

_EXAMPLE = re.compile(r"//([^/:]*\.)?example(\.(com|net|org))?([:/]|$)")
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - nothing is bound here

_TURNED_OFF: Mapping[str, Callable[[Config], bool]] = {
    "[server] trusted_proxies is not set: all clients appear to have the address of the proxy"
    " and share its limit of connections: name the proxy that terminates TLS": (
        lambda config: not config.server.trusted_proxies
    ),
    "[auth] enforce_scopes is not set: every client may do everything for its tenant: give"
    " each its scopes, then set it": lambda config: not config.auth.enforce_scopes,
    "[limits] token_failures = 0: secrets of clients can be guessed without a limit: set a"
    " number": lambda config: not config.limits.token_failures,
    "[fhir] hash_check is not strict: a damaged document is accepted: set it to strict": (
        lambda config: config.fhir.hash_check != "strict"
    ),
    "[audit] enabled = false: it cannot be found out who read or changed a report: remove this"
    " line": lambda config: not config.audit.enabled,
}
"""What may be turned off for a trial, and whether it is."""


def advise(config: Config) -> Iterator[Finding]:
    """Yield warnings about settings."""
    for variable in misspelt_variables():
        yield warning("configuration", variable)
    if config.server.host in _EVERYWHERE and not config.server.base_url:
        text = (
            f"[server] base_url is not set: links in responses begin with {config.base_url}: set"
            " the URL that clients use"
        )
        yield warning("configuration", text)
    inside = config.server.host not in _EVERYWHERE
    if config.metrics.port and config.metrics.host in _EVERYWHERE and inside:
        text = (
            f"[metrics] host {config.metrics.host}: readable from all networks without a token:"
            " name an internal address"
        )
        yield warning("configuration", text)
    for text in config.server.trusted_proxies:
        if ipaddress.ip_network(text, strict=False).prefixlen == 0:
            advice = "every client can claim any address: name the proxies only"
            yield warning("configuration", f"[server] trusted_proxies: {text}: {advice}")
    yield from _passkeys(config)
    if config.auth.environment == "production":
        yield from _names(config)
        yield from _protection(config)
        if uses_mongodb(config):
            yield from advise_on_url(config.storage.url)


def _passkeys(config: Config) -> Iterator[Finding]:
    """Check that persons can be invited to the console, unless a provider signs them in."""
    console = config.console
    if console.enabled and not console.oidc_issuer and (reason := why_none(config)):
        yield warning("configuration", f"the console has no passkeys: {reason}")


def _names(config: Config) -> Iterator[Finding]:
    """Check the names by which clients and tokens know the service."""
    base_url, audience, issuer = config.server.base_url, config.auth.audience, config.auth.issuer
    if not base_url.startswith("https://"):
        text = "[server] base_url should be the https:// URL that clients use"
        yield warning("configuration", text)
    elif _EXAMPLE.search(base_url):
        text = f"[server] base_url is still an example: {base_url}: set the URL that clients use"
        yield warning("configuration", text)
    if audience == AuthConfig().audience or _EXAMPLE.search(audience):
        text = (
            f"[auth] audience is still the default or an example: {audience}: set one of your own"
            " before clients use it, since every client has to name it"
        )
        yield warning("configuration", text)
    if _EXAMPLE.search(issuer):
        text = f"[auth] issuer is still an example: {issuer}: set one of your own, or leave it out"
        yield warning("configuration", text)
    elif urlsplit(issuer).scheme == "http":
        text = f"[auth] issuer should be an https:// URL, or be left out: {issuer}"
        yield warning("configuration", text)


def _protection(config: Config) -> Iterator[Finding]:
    """Check what protects a service in production, and may be turned off for a trial."""
    for text, is_off in _TURNED_OFF.items():
        if is_off(config):
            yield warning("configuration", text)
