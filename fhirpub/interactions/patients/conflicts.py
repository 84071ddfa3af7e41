"""Identifiers that lead to several Patients, which are reported and never merged (ADR 26)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice

from fhirpub.errors import Issue
from fhirpub.fhir.outcome import outcome_of
from fhirpub.fhir.strict_json import JsonObject, dumps, loads_stored
from fhirpub.interactions.context import Context
from fhirpub.interactions.indexing.persons import PATIENT, current_values
from fhirpub.interactions.patients.parts import sources_of_type
from fhirpub.interactions.patients.statements import (
    Asked,
    Source,
    StatementWalk,
    patients_of,
    sources_of,
    stating,
)
from fhirpub.problems import PatientProblem
from fhirpub.storage.contract import Version
from fhirpub.storage.criteria import ANYTHING, Criterion, TokenMatch
from fhirpub.tenant import Tenant

_MOST_REPORTED = 5
_MOST_COMPARED = 20
"""So many identifiers of a patient are looked up, each by a search; the rest is not compared."""


async def with_conflicts(version: Version, *, tenant: Tenant, context: Context) -> Version:
    """Return the first version of a resource with a response that names conflicts, if any.

    There can be none unless several systems are declared: the identifier in the preferred one
    always leads to the same Patient. Registrations that race may not see one another.
    """
    systems = context.config.patients.person_systems
    if len(systems) < 2:
        return version
    issues: list[Issue] = []
    parts = loads_stored(version.parts)
    for source in sources_of_type(version.type, context):
        if source.part in parts:
            issues += await _conflicts_of(parts[source.part], systems, tenant, context)
    if not issues:
        return version
    response: JsonObject = loads_stored(version.response)
    outcome = response["parameter"][-1]["resource"]
    outcome["issue"] += outcome_of(issues, fhir_url=context.fhir_url)["issue"]
    return replace(version, response=dumps(response))


async def _conflicts_of(
    patient: JsonObject, systems: Sequence[str], tenant: Tenant, context: Context
) -> list[Issue]:
    """Return a warning for each identifier that another Patient has, too."""
    found: list[Issue] = []
    identifiers = (
        (system, value) for system in systems for value in sorted(current_values(patient, system))
    )
    for system, value in islice(identifiers, _MOST_COMPARED):
        if tenant.person_id(systems[0], value) == patient["id"] and system == systems[0]:
            continue
        others = await _others(patient["id"], TokenMatch(system, value), tenant, context)
        if others:
            rule = f"its identifier in {system} is also that of {', '.join(others)}"
            found.append(
                Issue.warning(PatientProblem.PERSON_CONFLICT, rule, f"{PATIENT}.identifier")
            )
    return found


async def patients_with(identifier: TokenMatch, *, tenant: Tenant, context: Context) -> list[str]:
    """Return the addresses of Patients that have a current identifier; a few of them.

    Statements that no longer count are left out.
    """
    seen: dict[str, None] = {}
    found: dict[str, None] = {}
    while len(found) < _MOST_REPORTED:
        asked = [_asked_of(source, seen, identifier) for source in sources_of(context)]
        walk = StatementWalk(asked, tenant=tenant, context=context)
        batch = await walk.take(_MOST_REPORTED)
        if not batch:
            break
        seen |= dict.fromkeys(one.patient_id for one in batch)
        patients = await patients_of(batch)
        found |= dict.fromkeys(one.id for one in patients if _has(one, identifier))
    return [f"{PATIENT}/{one}" for one in found]


def _asked_of(source: Source, without: Collection[str], identifier: TokenMatch) -> Asked:
    criteria = (
        Criterion(source.names.identifier, (identifier,)),
        Criterion(source.names.marker, (ANYTHING,)),
        *((stating(without, source, negated=True),) if without else ()),
    )
    return Asked(source, criteria)


def _has(patient: Version, identifier: TokenMatch) -> bool:
    return identifier.value in current_values(loads_stored(patient.body), identifier.system or "")


async def _others(
    patient_id: str, identifier: TokenMatch, tenant: Tenant, context: Context
) -> list[str]:
    asked = [_asked_of(source, [patient_id], identifier) for source in sources_of(context)]
    walk = StatementWalk(asked, tenant=tenant, context=context)
    return [
        *dict.fromkeys(f"{PATIENT}/{one.patient_id}" for one in await walk.take(_MOST_REPORTED))
    ]
