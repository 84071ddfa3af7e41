"""The parts of a resource, with the patient that it belongs to now (ADR 26)."""

from __future__ import annotations

from collections.abc import Iterator

from fhirpub.errors import StoreUnavailable
from fhirpub.fhir.elements import items_of, literals_of
from fhirpub.fhir.strict_json import JsonObject, loads_stored
from fhirpub.interactions.context import Context
from fhirpub.interactions.erased import ResourceErased, first_version, is_tombstone
from fhirpub.interactions.indexing.persons import PATIENT
from fhirpub.interactions.patients.statements import Source, sources_of
from fhirpub.storage.contract import SearchQuery, Version
from fhirpub.storage.criteria import ANYTHING, Criterion
from fhirpub.tenant import Tenant

PROVENANCE = "_provenance"
"""The name under which a later statement has its Provenance: no part is called so."""


async def first_parts(latest: Version, *, tenant: Tenant, context: Context) -> JsonObject:
    """Return the parts that came with a resource, by their names. Raises StoreUnavailable."""
    first: Version | None = latest
    if not latest.is_first:
        first = await first_version(context.resources, tenant.id, latest.id)
    if first is None:
        raise StoreUnavailable("version 1 is missing")
    if is_tombstone(first):  # it was erased since the newest version was read
        raise ResourceErased(latest.type, latest.id)
    parts: JsonObject = loads_stored(first.parts or b"{}")
    return parts


async def current_parts(latest: Version, *, tenant: Tenant, context: Context) -> JsonObject:
    """Return the parts of a resource by their names, the patient as it was stated last.

    Only a resource that was moved to another Patient has other parts than it came with. Raises
    StoreUnavailable.
    """
    first = await first_parts(latest, tenant=tenant, context=context)
    return await parts_now(latest, first, tenant=tenant, context=context)


async def parts_now(
    latest: Version, first: JsonObject, *, tenant: Tenant, context: Context
) -> JsonObject:
    """Return what `current_parts` does, from the parts that came with the resource."""
    parts = first
    for source in sources_of_type(latest.type, context):
        patient = parts.get(source.part)
        if patient is not None and not refers_to(latest, source, patient["id"]):
            parts = await _last_stated(latest, source, tenant, context)
    return {name: part for name, part in parts.items() if name != PROVENANCE}


def sources_of_type(type_name: str, context: Context) -> Iterator[Source]:
    """Yield the parts by which patients come with resources of a type."""
    return (source for source in sources_of(context) if source.type_name == type_name)


def refers_to(version: Version, source: Source, patient_id: str) -> bool:
    """Return whether a version refers to a patient by the element that must."""
    found = (item for _at, item in items_of(loads_stored(version.body), source.element))
    return f"{PATIENT}/{patient_id}" in literals_of(found)


async def _last_stated(
    latest: Version, source: Source, tenant: Tenant, context: Context
) -> JsonObject:
    if latest.parts:
        parts: JsonObject = loads_stored(latest.parts)
        return parts
    query = SearchQuery(
        type=latest.type,
        ids=frozenset({latest.id}),
        criteria=(Criterion(source.names.later, (ANYTHING,)),),
        limit=1,
        count_up_to=0,
        every_version=True,
    )
    found = (await context.resources.search(tenant.id, query)).versions
    if not found:
        raise StoreUnavailable("the last statement about the patient is missing")
    stated: JsonObject = loads_stored(found[0].parts)
    return stated
