"""Operations on legal holds: what is on hold is not erased."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fhirpub.administration.context import Administration
from fhirpub.administration.erasure.operations import OPERATOR, REASON
from fhirpub.administration.naming import why_no_id
from fhirpub.administration.operation import Operation, Parameter
from fhirpub.administration.tenants import OF_TENANT
from fhirpub.errors import NoSuchResource, NotPossible
from fhirpub.interactions.erased import ResourceErased
from fhirpub.interactions.indexing.persons import PATIENT
from fhirpub.interactions.patients.read import read_patient
from fhirpub.interactions.read import read
from fhirpub.storage.erasure.contract import Hold

_RESOURCE = (
    Parameter(name="type", text="The FHIR type.", place="path", required=True),
    Parameter(
        name="id", text="The id of the resource.", place="path", required=True, rule=why_no_id
    ),
)


async def add(
    administration: Administration,
    *,
    tenant: str,
    type: str,  # noqa: A002 - the name of the parameter
    id: str,  # noqa: A002 - the name of the parameter
    reason: str,
    operator: str = "",
) -> Mapping[str, Any]:
    """Put a resource on hold, or everything that refers to a Patient."""
    owner, context = await administration.tenant(tenant), await administration.context()
    hold = Hold(
        tenant=owner.id,
        type=type,
        id=id,
        since=administration.clock(),
        operator=operator or administration.operator,
        reason=reason.strip(),
    )
    try:
        if type == PATIENT:
            await read_patient(id, tenant=owner, context=context)
        else:
            await read(type, id, tenant=owner, context=context)
    except (NoSuchResource, ResourceErased) as problem:
        rule = "put the report on hold, one of its results, or a Patient"
        raise NotPossible(f"{problem}: {rule}") from None
    async with administration.recorded("hold.add", (type, id), tenant=owner.id):
        await administration.store.put_hold(hold)
    return asdict(hold)


async def release(
    administration: Administration,
    *,
    tenant: str,
    type: str,  # noqa: A002 - the name of the parameter
    id: str,  # noqa: A002 - the name of the parameter
) -> Mapping[str, Any]:
    """End a hold. Raises NotPossible if there is none."""
    owner, resource = await administration.tenant(tenant), (type, id)
    async with administration.recorded("hold.release", resource, tenant=owner.id):
        if not await administration.store.delete_hold(owner.id, resource):
            raise NotPossible(f"{type}/{id} is not on hold")
    return {"released": f"{type}/{id}"}


async def list_(administration: Administration, *, tenant: str) -> list[Mapping[str, Any]]:
    """List what is on hold."""
    owner = await administration.tenant(tenant)
    await administration.record_read("hold.list", tenant=owner.id)
    return [asdict(one) for one in await administration.store.holds(owner.id)]


ADD = Operation(
    command="hold add",
    method="PUT",
    path="/tenants/{tenant}/holds/{type}/{id}",
    summary="Put a resource on hold, or everything that refers to a Patient",
    run=add,
    parameters=(OF_TENANT, *_RESOURCE, REASON, OPERATOR),
    creates_store=False,
)
RELEASE = Operation(
    command="hold release",
    method="DELETE",
    path="/tenants/{tenant}/holds/{type}/{id}",
    summary="End a hold",
    run=release,
    parameters=(OF_TENANT, *_RESOURCE),
    creates_store=False,
)
LIST = Operation(
    command="hold list",
    method="GET",
    path="/tenants/{tenant}/holds",
    summary="List what is on hold, since when, and why",
    run=list_,
    parameters=(OF_TENANT,),
    creates_store=False,
)
OPERATIONS = (ADD, RELEASE, LIST)
