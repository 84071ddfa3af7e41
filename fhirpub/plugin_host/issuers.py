"""The other issuers of tokens that enabled plugins declare, checked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from fhirpub.config.settings import Config
from fhirpub.plugin_api.issuers import TokenIssuer
from fhirpub.plugin_host.functions import matches, wrong_plain_function
from fhirpub.plugin_host.hooks import PluginHooks
from fhirpub.plugin_host.settings import declarations

_MAX_LENGTH = 255
_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_AUDIENCE = re.compile(rf".{{1,{_MAX_LENGTH}}}")
_TENANT = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SCOPE = re.compile(r"system/(?:\*|[A-Z][A-Za-z]*)\.[a-z*]+|webhooks\.(?:read|write)")
_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")


def load_issuers(config: Config) -> Sequence[TokenIssuer]:
    """Return the issuers of the enabled plugins. Raises PluginError."""
    taken = {config.issuer}
    with declarations(config, "fhirpub_authenticate", TokenIssuer) as (hooks, found):
        _report_without_issuer(hooks, {plugin for plugin, _issuer in found})
        for plugin, issuer in found:
            where = f"{hooks.sources[plugin].where}: issuer {issuer.name!r}"
            problems = [f"{where} {problem}" for problem in _problems(issuer, config)]
            own = {one for one in (issuer.name, issuer.url) if isinstance(one, str)}
            if taken & own:
                problems.append(f"{where} has the name or the url of another issuer")
            taken |= own
            hooks.report(plugin, problems)
    return [issuer for _plugin, issuer in found]


def _report_without_issuer(hooks: PluginHooks, others: set[str]) -> None:
    for plugin in hooks.owners_of("fhirpub_authenticate"):
        if plugin not in others and plugin not in hooks.problems:
            hooks.report(plugin, [f"{hooks.sources[plugin].where}: has no issuer: name one"])


def _problems(issuer: TokenIssuer, config: Config) -> Iterator[str]:
    """Yield what is wrong with an issuer."""
    if not matches(_NAME, issuer.name):
        yield "has a name that is not of 1 to 32 lower-case letters, digits and hyphens"
    yield from _wrong_url(issuer.url, in_production=config.auth.environment == "production")
    if not matches(_AUDIENCE, issuer.audience):
        yield f"has an audience that is not a text of 1 to {_MAX_LENGTH} characters"
    yield from _wrong_texts("tenant", issuer.tenants, _TENANT, "the id of a tenant")
    yield from _wrong_texts("scope", issuer.scopes, _SCOPE, "a scope such as system/Patient.rs")
    yield from wrong_plain_function("an identify", issuer.identify, "claims")


def _wrong_url(url: Any, *, in_production: bool) -> Iterator[str]:
    """Yield what is wrong with the URL of an issuer: its keys must come from it unaltered."""
    try:
        parts = urlsplit(url if isinstance(url, str) and len(url) <= _MAX_LENGTH else "")
        host = parts.hostname
    except ValueError:
        parts, host = urlsplit(""), None
    is_here = parts.scheme == "http" and host in _THIS_MACHINE and not in_production
    if not host or (parts.scheme != "https" and not is_here):
        yield "has a url that does not begin with https:// and name a host"
    elif parts.query or parts.fragment or parts.username is not None:
        yield "has a url with a query, a fragment or a user"


def _wrong_texts(what: str, texts: Any, shape: re.Pattern[str], meant: str) -> Iterator[str]:
    if not isinstance(texts, tuple) or not texts:
        yield f"has no {what}: name each in a tuple"
        return
    for text in texts:
        if not matches(shape, text):
            yield f"has the {what} {text!r}, which is not {meant}"
