"""Tenants as an operator manages them: added once, disabled for good."""

from __future__ import annotations

from dataclasses import replace

from fhirpub.errors import ConfigurationError, NoSuchRecord
from fhirpub.runtime.clock import Clock
from fhirpub.storage.contract import CredentialStore
from fhirpub.tenant import Tenant


async def add_tenant(access: CredentialStore, name: str, *, clock: Clock) -> Tenant:
    """Add a tenant with a fresh id and salt."""
    tenant = Tenant.new(name, created=clock())
    await access.put_tenant(tenant)
    return tenant


async def require_tenant(access: CredentialStore, tenant_id: str) -> Tenant:
    """Return a tenant, disabled or not. Raises NoSuchRecord."""
    tenant = await access.tenant(tenant_id)
    if tenant is None:
        raise NoSuchRecord("tenant", tenant_id)
    return tenant


async def require_enabled_tenant(access: CredentialStore, tenant_id: str) -> Tenant:
    """Return a tenant that may be given something; raises also ConfigurationError if disabled."""
    tenant = await require_tenant(access, tenant_id)
    if tenant.disabled:
        raise ConfigurationError(f"the tenant {tenant_id} is disabled")
    return tenant


async def disable_tenant(access: CredentialStore, tenant_id: str) -> Tenant:
    """Refuse a tenant's clients and their tokens from now on; return what it is now.

    Raises NoSuchRecord.
    """
    disabled = replace(await require_tenant(access, tenant_id), disabled=True)
    await access.put_tenant(disabled)
    return disabled
