"""Which Patient a resource is moved to, and what becomes of identifiers (ADR 26)."""

from __future__ import annotations

from fhirpub.fhir.strict_json import loads_stored
from fhirpub.interactions.context import Context
from fhirpub.interactions.indexing.persons import PATIENT, current_values
from fhirpub.interactions.patients.read import read_patient
from fhirpub.interactions.relinking.corrections import Target
from fhirpub.interactions.relinking.relink import NotMovable
from fhirpub.tenant import Tenant, is_member_id


def person_with(system: str, value: str, *, tenant: Tenant, context: Context) -> Target:
    """Return the person that an identifier stands for, whether anything is published of it.

    Identifiers in the systems before this one would lead to another Patient: they are removed.
    Raises NotMovable unless the system is declared.
    """
    systems = context.config.patients.person_systems
    if system not in systems:
        listed = ", ".join(systems) or "none"
        raise NotMovable(
            f"{system} is no system of [patients] person_systems, which has {listed}: "
            "its identifiers stand for no person"
        )
    replaced = systems[: systems.index(system) + 1]
    identifier = {"system": system, "value": value}
    return Target(tenant.person_id(system, value), frozenset(replaced), (identifier,))


async def known_patient(patient_id: str, *, tenant: Tenant, context: Context) -> Target:
    """Return a Patient that something is published of, with its identifiers of persons.

    Raises NoSuchResource, NotMovable for one that belongs to one resource alone (ADR 15).
    """
    patient = await read_patient(patient_id, tenant=tenant, context=context)
    if not is_member_id(patient_id):
        raise NotMovable(
            f"{PATIENT}/{patient_id} belongs to one {patient.owner_type} alone. Move that one "
            "first, with --apart: this gives it a Patient that others can be moved to"
        )
    content, systems = loads_stored(patient.body), context.config.patients.person_systems
    identifiers = [
        {"system": system, "value": value}
        for system in systems
        for value in sorted(current_values(content, system))
    ]
    return Target(patient_id, frozenset(systems), tuple(identifiers))


def apart(resource_id: str, *, tenant: Tenant, context: Context) -> Target:
    """Return a Patient of a resource's own, without identifiers of persons."""
    systems = context.config.patients.person_systems
    return Target(tenant.apart_id(resource_id), frozenset(systems))
