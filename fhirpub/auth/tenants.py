"""Tenants as an operator manages them: added, renamed, disabled and enabled."""

from __future__ import annotations

from dataclasses import replace

from fhirpub.errors import ConfigurationError, NoSuchRecord
from fhirpub.runtime.clock import Clock
from fhirpub.storage.contract import CredentialStore
from fhirpub.tenant import Tenant


async def add_tenant(
    access: CredentialStore, name: str, *, clock: Clock, tenant_id: str = ""
) -> Tenant:
    """Add a tenant with a fresh salt, and a fresh id unless one is given.

    Returns:
        The tenant, or the one that has the given id already.
    """
    tenant = Tenant.new(name, created=clock())
    if tenant_id:
        tenant = replace(tenant, id=tenant_id)
    if await access.add_tenant(tenant):
        return tenant
    return await require_tenant(access, tenant.id)


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


async def change_tenant(
    access: CredentialStore,
    tenant_id: str,
    *,
    name: str | None = None,
    disabled: bool | None = None,
) -> Tenant:
    """Rename a tenant, disable or enable it; return what it is now.

    A disabled one's clients and their tokens are refused from then on. Raises NoSuchRecord.
    """
    await require_tenant(access, tenant_id)
    await access.change_tenant(tenant_id, name=name, disabled=disabled)
    return await require_tenant(access, tenant_id)
