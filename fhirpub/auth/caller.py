"""The client that a verified token authenticates."""

from __future__ import annotations

from dataclasses import dataclass

from fhirpub.auth.networks import Network, is_within
from fhirpub.tenant import Tenant


@dataclass(frozen=True, slots=True)
class Caller:
    """An application that acts for a tenant, with its scopes, from its networks if it has some."""

    tenant: Tenant
    client_id: str
    scopes: tuple[str, ...] = ()
    networks: tuple[Network, ...] = ()
    certificate: str = ""
    """The digest of the certificate without which its token is of no use, or empty."""
    scopes_count: bool = False
    """Whether its scopes count even where others' do not: for a person, or another issuer."""

    def may_call_from(self, address: str) -> bool:
        """Return whether requests of the application may come from an address."""
        return not self.networks or is_within(address, self.networks)
