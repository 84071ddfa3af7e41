"""Read a patient: the newest statement about it, or a certain one (ADR 26)."""

from __future__ import annotations

from fhirpub.errors import NoSuchResource
from fhirpub.interactions.context import Context
from fhirpub.interactions.indexing.persons import PATIENT
from fhirpub.interactions.patients.parts import refers_to, sources_of_type
from fhirpub.interactions.patients.statements import (
    PatientVersion,
    newest_statement,
    sources_of,
    statement_in,
)
from fhirpub.interactions.read import read_part
from fhirpub.tenant import Tenant, is_member_id, is_resource_id


async def read_patient(patient_id: str, *, tenant: Tenant, context: Context) -> PatientVersion:
    """Return the newest statement about a patient. Raises NoSuchResource."""
    if not is_resource_id(patient_id):
        raise NoSuchResource(PATIENT, patient_id)
    if not is_member_id(patient_id):
        own = await _read_own(patient_id, tenant, context)
        if await _was_moved(own, tenant, context):
            raise NoSuchResource(PATIENT, patient_id)
        return own
    sources = [*sources_of(context)]
    found = await newest_statement(patient_id, tenant=tenant, context=context, sources=sources)
    if found is None:
        raise NoSuchResource(PATIENT, patient_id)
    return found.patient()


async def vread_patient(
    patient_id: str, version_id: str, *, tenant: Tenant, context: Context
) -> PatientVersion:
    """Return one statement about a patient, also one that was replaced since.

    Raises NoSuchResource.
    """
    found = None
    if not is_member_id(patient_id) and version_id == "1":
        return await _read_own(patient_id, tenant, context)
    owner_id, _, number = version_id.partition(".")
    if is_resource_id(owner_id) and number.isascii() and number.isdecimal() and len(number) < 10:
        owner = await context.resources.version(tenant.id, owner_id, int(number))
        statements = [statement_in(owner, one) for one in sources_of(context) if owner]
        found = next((one for one in statements if one and one.patient_id == patient_id), None)
    if found is None or found.version_id != version_id:
        raise NoSuchResource(PATIENT, f"{patient_id}/_history/{version_id}")
    return found.patient()


async def _read_own(patient_id: str, tenant: Tenant, context: Context) -> PatientVersion:
    """Return a patient that belongs to one resource alone (ADR 15)."""
    part = await read_part(PATIENT, patient_id, tenant=tenant, context=context)
    return PatientVersion(
        id=patient_id,
        version=1,
        type=PATIENT,
        system="",
        value="",
        status="",
        created=part.created,
        updated=part.updated,
        body=part.body,
        owner_type=part.type,
        place=(part.updated, patient_id),
    )


async def _was_moved(patient: PatientVersion, tenant: Tenant, context: Context) -> bool:
    """Return whether the resource that a patient came with refers to another Patient now."""
    for source in sources_of_type(patient.owner_type, context):
        owner_id = tenant.part_id(patient.id, source.part)
        owner = await context.resources.latest_public(tenant.id, owner_id)
        if owner is not None and not owner.is_first:
            return not refers_to(owner, source, patient.id)
    return False
