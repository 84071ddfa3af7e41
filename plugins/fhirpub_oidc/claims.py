"""What the claims of a token mean: its client, its tenant and its scopes, by the settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fhirpub.plugin_api import TokenHolder, TokenIssuer, TokenRejected
from fhirpub_oidc.settings import IssuerSettings

_OWN = ("system/", "webhooks.")
_ANY = "*"


def issuers_of(settings: IssuerSettings) -> Sequence[TokenIssuer]:
    """Return the issuers that the settings name; what one lacks, the service reports."""
    return [_issuer(entry, settings) for entry in settings.issuers]


def _issuer(entry: str, settings: IssuerSettings) -> TokenIssuer:
    name, url = entry.split()
    tenants = dict(settings.of(name, "tenants"))
    roles = {word: tuple(scopes) for word, *scopes in settings.of(name, "roles")}
    return TokenIssuer(
        name=name,
        url=url,
        audience=next((words[0] for words in settings.of(name, "audiences")), ""),
        tenants=tuple(dict.fromkeys(tenants.values())),
        scopes=tuple(scope for words in settings.of(name, "scopes") for scope in words),
        identify=_Claims(settings, tenants, roles).identify,
    )


@dataclass(frozen=True, slots=True)
class _Claims:
    """The claims of one issuer."""

    settings: IssuerSettings
    tenants: Mapping[str, str]
    roles: Mapping[str, Sequence[str]]

    def identify(self, claims: Mapping[str, Any]) -> TokenHolder:
        """Return the holder of a token. Raises TokenRejected."""
        names = (claims.get(name) for name in self.settings.client_claims)
        client = next((name for name in names if name is not None), None)
        if not isinstance(client, str):
            raise TokenRejected("no client in its claims")
        wanted = self.settings.tenant_claim
        value = claims.get(wanted) if wanted else client
        tenant = self.tenants.get(value) if isinstance(value, str) and value != _ANY else None
        tenant = tenant or self.tenants.get(_ANY)
        if tenant is None:
            raise TokenRejected("no tenant for its claims")
        return TokenHolder(client=client, tenant=tenant, scopes=self._scopes(claims))

    def _scopes(self, claims: Mapping[str, Any]) -> tuple[str, ...]:
        found = claims.get(self.settings.scope_claim, "")
        words = found.split() if isinstance(found, str) else found
        granted = [
            scope
            for word in (words if isinstance(words, list) else ())
            if isinstance(word, str)
            for scope in self.roles.get(word, (word,) if word.startswith(_OWN) else ())
        ]
        return tuple(dict.fromkeys(granted))
