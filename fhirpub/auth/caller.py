"""The client that a verified token authenticates."""

from __future__ import annotations

from dataclasses import dataclass

from fhirpub.tenant import Tenant


@dataclass(frozen=True, slots=True)
class Caller:
    """An application that acts for a tenant, with its scopes."""

    tenant: Tenant
    client_id: str
    scopes: tuple[str, ...] = ()
