"""All that was stated about a patient, for operators, with its reports and relocations."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from fhirpub.fhir.strict_json import JsonObject, loads_stored
from fhirpub.interactions.context import Context
from fhirpub.interactions.erased import is_tombstone
from fhirpub.interactions.patients.parts import PROVENANCE, current_parts, sources_of_type
from fhirpub.interactions.patients.read import read_patient
from fhirpub.interactions.patients.statements import (
    Asked,
    PatientVersion,
    StatementWalk,
    patients_of,
    sources_of,
    stating,
)
from fhirpub.storage.contract import Version
from fhirpub.storage.criteria import SortKey
from fhirpub.tenant import Tenant, is_member_id

_BATCH = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """One statement about a patient.

    Attributes:
        statement: The version of the Patient; 1 for one that belongs to one resource alone.
        resource_type: The type of the resource that states it.
        resource_id: The id of that resource.
        stated: When, in milliseconds.
        patient: What is stated.
        belongs_to: The Patient that the resource belongs to now: the statement no longer counts
            if it is another.
        provenance: The Provenance of a statement by which an operator moved the resource.
    """

    statement: str
    resource_type: str
    resource_id: str
    stated: int
    patient: JsonObject
    belongs_to: str
    provenance: JsonObject = field(default_factory=dict)


async def statements_about(
    patient_id: str, *, tenant: Tenant, context: Context
) -> AsyncGenerator[Stated, None]:
    """Yield what was ever stated about a patient, newest first.

    Raises NoSuchResource for a patient of one resource alone that does not exist.
    """
    if not is_member_id(patient_id):
        yield await _own(patient_id, tenant, context)
        return
    asked = [Asked(source, (stating([patient_id], source),)) for source in sources_of(context)]
    after: SortKey | None = None
    while batch := await _batch(asked, after, tenant, context):
        for one in batch:
            yield await _described(one, tenant, context)
        after = batch[-1].place


async def _batch(
    asked: list[Asked], after: SortKey | None, tenant: Tenant, context: Context
) -> list[PatientVersion]:
    # A walk has the time of one search: each batch is a new one.
    walk = StatementWalk(asked, tenant=tenant, context=context, after=after, every=True)
    return await patients_of(await walk.take(_BATCH))


async def _own(patient_id: str, tenant: Tenant, context: Context) -> Stated:
    patient = await read_patient(patient_id, tenant=tenant, context=context)
    sources = sources_of_type(patient.owner_type, context)
    owner_id = next(tenant.part_id(patient_id, source.part) for source in sources)
    return Stated(
        statement=patient.tag,
        resource_type=patient.owner_type,
        resource_id=owner_id,
        stated=patient.updated,
        patient=loads_stored(patient.body),
        belongs_to=patient_id,
    )


async def _described(one: PatientVersion, tenant: Tenant, context: Context) -> Stated:
    owner_id, _, number = one.statement.partition(".")
    version = await context.resources.version(tenant.id, owner_id, int(number))
    parts: JsonObject = loads_stored(version.parts) if version and version.parts else {}
    provenance: JsonObject = parts.get(PROVENANCE, {})
    newest = await context.resources.latest(tenant.id, owner_id)
    return Stated(
        statement=one.statement,
        resource_type=one.owner_type,
        resource_id=owner_id,
        stated=one.updated,
        patient=loads_stored(one.body),
        belongs_to=await _patient_of(newest, one, tenant, context) if newest else one.id,
        provenance=provenance,
    )


async def _patient_of(
    newest: Version, one: PatientVersion, tenant: Tenant, context: Context
) -> str:
    """Return the Patient that a resource belongs to; the stated one if it was not moved."""
    if newest.is_first or is_tombstone(newest):
        return one.id
    parts = await current_parts(newest, tenant=tenant, context=context)
    for source in sources_of_type(newest.type, context):
        patient = parts.get(source.part)
        if patient is not None and patient["meta"]["versionId"] not in ("1", one.statement):
            return str(patient["id"])
    return one.id
