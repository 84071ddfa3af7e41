"""Operations on tenants, the organizations that publish."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from fhirpub.administration.context import Administration
from fhirpub.administration.naming import KEY_RULE, id_of_key, why_no_key
from fhirpub.administration.operation import Operation, Parameter, why_no_name
from fhirpub.auth import tenants
from fhirpub.errors import NoSuchRecord
from fhirpub.fhir.times import instant
from fhirpub.runtime.turns import in_turns
from fhirpub.tenant import Tenant

_MAX_NAME = 200
OF_TENANT = Parameter(
    name="tenant", text="The tenant: its id, key or name.", place="path", required=True
)
ONLY_OF_TENANT = Parameter(
    name="tenant", text="Only those of this tenant: its id, key or name.", place="query"
)
OF_KEY = Parameter(
    name="key", text=f"A key: {KEY_RULE}.", place="path", required=True, rule=why_no_key
)
_NAME = Parameter(
    name="name",
    text="The name of the organization.",
    required=True,
    max_length=_MAX_NAME,
    rule=why_no_name,
)


async def add(administration: Administration, *, name: str) -> Mapping[str, Any]:
    """Add a tenant."""
    return await _add(administration, name.strip(), "")


async def put(administration: Administration, *, key: str, name: str) -> Mapping[str, Any]:
    """Add the tenant with a key, or rename it."""
    name = name.strip()
    tenant_id = id_of_key("tenant", key)
    kept = await administration.store.tenant(tenant_id)
    if kept is None:
        added = await _add(administration, name, tenant_id)
        kept = await tenants.require_tenant(administration.store, added["id"])
    if kept.name == name:
        return record_of(kept)
    return await rename(administration, tenant=tenant_id, name=name)


async def _add(administration: Administration, name: str, tenant_id: str) -> Mapping[str, Any]:
    async with administration.recorded("tenant.add") as doing:
        added = await tenants.add_tenant(
            administration.store, name, clock=administration.clock, tenant_id=tenant_id
        )
        doing.tenant = added.id
        doing.name("Tenant", added.id)
    return record_of(added)


async def list_(administration: Administration) -> list[Mapping[str, Any]]:
    """List all tenants."""
    return await in_turns(record_of, await administration.store.tenants())


async def show(administration: Administration, *, tenant: str) -> Mapping[str, Any]:
    """Return a tenant."""
    return record_of(await administration.tenant(tenant))


async def rename(administration: Administration, *, tenant: str, name: str) -> Mapping[str, Any]:
    """Give a tenant another name."""
    name = name.strip()
    found = await administration.tenant(tenant)
    what = ("Tenant", found.id)
    async with administration.recorded("tenant.rename", what, tenant=found.id):
        return record_of(await tenants.change_tenant(administration.store, found.id, name=name))


async def disable(administration: Administration, *, tenant: str) -> Mapping[str, Any]:
    """Refuse a tenant's requests and hold its webhooks."""
    found = await administration.tenant(tenant)
    store, what = administration.store, ("Tenant", found.id)
    endpoints = await administration.endpoints()
    async with administration.recorded("tenant.disable", what, tenant=found.id):
        disabled = await tenants.change_tenant(store, found.id, disabled=True)
        for endpoint in await endpoints.endpoints(found.id):
            with suppress(NoSuchRecord):  # removed in the meantime
                await endpoints.disable(found.id, endpoint.id)
    return record_of(disabled)


async def enable(administration: Administration, *, tenant: str) -> Mapping[str, Any]:
    """Accept a tenant's requests again; its endpoints stay disabled."""
    found = await administration.tenant(tenant)
    store, what = administration.store, ("Tenant", found.id)
    async with administration.recorded("tenant.enable", what, tenant=found.id):
        return record_of(await tenants.change_tenant(store, found.id, disabled=False))


def record_of(tenant: Tenant) -> Mapping[str, Any]:
    """Return what is shown of a tenant."""
    return {
        "id": tenant.id,
        "name": tenant.name,
        "created": instant(tenant.created),
        "disabled": tenant.disabled,
    }


ADD = Operation(
    command="tenant add",
    method="POST",
    path="/tenants",
    summary="Add a tenant",
    run=add,
    parameters=(_NAME,),
    status=201,
)
PUT = Operation(
    command="tenant add --key",
    method="PUT",
    path="/tenants/{key}",
    summary="Add the tenant with a key of the caller's, or rename it",
    run=put,
    parameters=(OF_KEY, _NAME),
)
LIST = Operation(
    command="tenant list",
    method="GET",
    path="/tenants",
    summary="List all tenants, oldest first",
    run=list_,
)
SHOW = Operation(
    command="tenant show",
    method="GET",
    path="/tenants/{tenant}",
    summary="Show a tenant",
    run=show,
    parameters=(OF_TENANT,),
)
RENAME = Operation(
    command="tenant rename",
    method="PATCH",
    path="/tenants/{tenant}",
    summary="Rename a tenant",
    run=rename,
    parameters=(OF_TENANT, _NAME),
)
DISABLE = Operation(
    command="tenant disable",
    method="POST",
    path="/tenants/{tenant}/disable",
    summary="Refuse a tenant's requests and hold its webhooks, until it is enabled",
    run=disable,
    parameters=(OF_TENANT,),
)
ENABLE = Operation(
    command="tenant enable",
    method="POST",
    path="/tenants/{tenant}/enable",
    summary="Accept a tenant's requests again; its endpoints stay disabled",
    run=enable,
    parameters=(OF_TENANT,),
)
OPERATIONS = (ADD, PUT, LIST, SHOW, RENAME, DISABLE, ENABLE)
