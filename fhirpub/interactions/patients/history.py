"""The history of a patient: what was stated about it, and when (ADR 26)."""

from __future__ import annotations

from collections.abc import Mapping

from fhirpub.errors import NotPermitted
from fhirpub.interactions.context import Context, May
from fhirpub.interactions.cursors import CURSOR, link_to, seal
from fhirpub.interactions.history import listing_of, place_after, read_parameters
from fhirpub.interactions.indexing.persons import PATIENT
from fhirpub.interactions.patients.read import read_patient
from fhirpub.interactions.patients.statements import (
    Asked,
    PatientVersion,
    StatementWalk,
    patients_of,
    sources_of,
    stating,
)
from fhirpub.interactions.versions import Listing
from fhirpub.storage.criteria import LAST_UPDATED, Criterion, SortKey, TimeMatch
from fhirpub.tenant import Tenant

PARAMETERS = ("_count", "_since", CURSOR)
_READ = ("_count", "_since", "_at", "_below", CURSOR)
_BATCH = 50


async def history_of_patient(
    patient_id: str,
    parameters: Mapping[str, str],
    *,
    tenant: Tenant,
    context: Context,
    may: May,
) -> Listing:
    """Return a history Bundle of the statements that ``may`` allows to read, to be made.

    Raises NoSuchResource, InvalidSearch, SearchTooCostly.
    """
    asked = read_parameters({**dict.fromkeys(_READ, ""), **parameters}, PARAMETERS, context)
    kind = f"history:{PATIENT}/{patient_id}"
    kept = [item for item in asked.given if item[0] != CURSOR]
    after = place_after(asked.cursor, tenant, kind, kept)
    patient = await read_patient(patient_id, tenant=tenant, context=context)
    if not may("r", (PATIENT, patient.owner_type)):
        raise NotPermitted(f"system/{PATIENT}.r")
    if patient.statement:
        walk = _walk(patient_id, asked.since, after, tenant=tenant, context=context, may=may)
        found = await _take(walk, asked.limit + 1)
    else:
        found = [patient] if asked.since is None or patient.updated >= asked.since else []
    shown, more = found[: asked.limit], len(found) > asked.limit
    address = f"{context.fhir_url}/{PATIENT}/{patient_id}/_history"
    links = [{"relation": "self", "url": link_to(address, asked.given)}]
    if more and shown:
        cursor = seal(shown[-1].place, tenant, kind, kept)
        links.append({"relation": "next", "url": link_to(address, [*kept, (CURSOR, cursor)])})
    return listing_of(shown, links, None)


def _walk(
    patient_id: str,
    since: int | None,
    after: SortKey | None,
    *,
    tenant: Tenant,
    context: Context,
    may: May,
) -> StatementWalk:
    criteria = () if since is None else (Criterion(LAST_UPDATED, (TimeMatch(from_=since),)),)
    asked = [
        Asked(source, (stating([patient_id], source), *criteria))
        for source in sources_of(context)
        if may("r", (PATIENT, source.type_name))
    ]
    return StatementWalk(asked, tenant=tenant, context=context, after=after)


async def _take(walk: StatementWalk, number: int) -> list[PatientVersion]:
    found: list[PatientVersion] = []
    while len(found) < number and (batch := await walk.take(min(number, _BATCH))):
        found += await patients_of(batch)
    return found
