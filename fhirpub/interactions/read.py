"""Read: the latest version, one version, or a part that came with a resource (D-93 to D-104)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fhirpub.errors import NoSuchResource
from fhirpub.fhir.strict_json import dumps, loads_stored
from fhirpub.interactions.context import Context
from fhirpub.interactions.erased import ResourceErased, first_version, is_tombstone, refuse_erased
from fhirpub.plugin_api import Part
from fhirpub.storage.contract import Version
from fhirpub.tenant import Tenant, is_resource_id

Look = Callable[[str, str], Awaitable[Version | None]]


async def read(type_name: str, resource_id: str, *, tenant: Tenant, context: Context) -> Version:
    """Return the latest version, as it is shown.

    Raises NoSuchResource for what is unknown as for what is another tenant's, ResourceErased.
    """
    return await _find(context.resources.latest_public, type_name, resource_id, tenant)


async def read_whole(
    type_name: str, resource_id: str, *, tenant: Tenant, context: Context
) -> Version:
    """Return the latest version whole, as :func:`read` does; the next one is made of it."""
    return await _find(context.resources.latest, type_name, resource_id, tenant)


async def _find(look: Look, type_name: str, resource_id: str, tenant: Tenant) -> Version:
    found = await look(tenant.id, resource_id) if is_resource_id(resource_id) else None
    refuse_erased(found, type_name)
    if found is None or found.type != type_name:
        raise NoSuchResource(type_name, resource_id)
    return found


async def vread(
    type_name: str, resource_id: str, version: str, *, tenant: Tenant, context: Context
) -> Version:
    """Return one version; raises what :func:`read` does."""
    found = None
    if is_resource_id(resource_id) and version.isdecimal() and version.isascii():
        number = int(version[:10])
        if str(number) == version:
            found = await context.resources.version(tenant.id, resource_id, number)
    refuse_erased(found, type_name)
    if found is not None:  # it may be erased already, and not emptied yet
        newest = await context.resources.latest_public(tenant.id, resource_id)
        refuse_erased(newest, type_name)
        if newest is not None and newest.created != found.created and found.type == type_name:
            raise ResourceErased(type_name, resource_id)  # and registered again since
    if found is None or found.type != type_name:
        raise NoSuchResource(type_name, f"{resource_id}/_history/{version}")
    return found


async def read_part(type_name: str, part_id: str, *, tenant: Tenant, context: Context) -> Version:
    """Return a patient, an organization and so on as it came with a resource (ADR 15).

    It has no record of its own: its id leads to the resource that it came with, whose type the
    version has.
    """
    for part in parts_of(type_name, context) if is_resource_id(part_id) else ():
        owner_id = tenant.part_id(part_id, part.name)
        owner = await first_version(context.resources, tenant.id, owner_id)
        if is_tombstone(owner):
            raise ResourceErased(type_name, part_id)
        if owner is not None:
            body = loads_stored(owner.parts).get(part.name)
            # A patient may have the id of a person instead, which is not the resource's alone.
            if body is not None and (body["resourceType"], body["id"]) == (type_name, part_id):
                return _record(owner, part_id, dumps(body))
    raise NoSuchResource(type_name, part_id)


def parts_of(type_name: str, context: Context) -> list[Part]:
    """Return the parts of a type that have no versions, one of each name."""
    every = [part for resource_type in context.types.values() for part in resource_type.parts]
    found = [part for part in every if part.type == type_name and not part.repeats]
    return list({part.name: part for part in found}.values())


def _record(owner: Version, part_id: str, body: bytes) -> Version:
    return Version(
        id=part_id,
        version=1,
        type=owner.type,
        system="",
        value="",
        status="",
        created=owner.created,
        updated=owner.created,
        body=body,
    )
