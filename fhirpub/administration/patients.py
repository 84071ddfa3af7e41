"""Operations on Patients that reports share, and on reports that belong to another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fhirpub.administration.context import Administration
from fhirpub.administration.erasure.operations import OPERATOR, REASON
from fhirpub.administration.naming import id_of, identifier_in, why_no_identifier
from fhirpub.administration.operation import Operation, Parameter
from fhirpub.administration.paging import FROM, read_numbers
from fhirpub.administration.tenants import OF_TENANT
from fhirpub.errors import InvalidContent, Issue
from fhirpub.fhir.human_name import given_names, name_to_use
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.fhir.times import instant
from fhirpub.interactions.context import Context
from fhirpub.interactions.indexing.persons import current_values
from fhirpub.interactions.patients.all_conflicts import ConflictSearch
from fhirpub.interactions.patients.overview import Stated, statements_about
from fhirpub.interactions.relinking import targets
from fhirpub.interactions.relinking.corrections import Target
from fhirpub.interactions.relinking.relink import Note, Relink, plan_relink
from fhirpub.interactions.relinking.relink import relink as relink_one
from fhirpub.interactions.relinking.stranded import left_behind, refuse_stranded
from fhirpub.problems import OperationProblem
from fhirpub.tenant import Tenant

Record = Mapping[str, Any]

MAX_STATEMENTS = 1_000
_MAX_REPORTS = 100
_MAX_READ = 10_000
"""After so many versions, a search for conflicts returns where to go on."""
_WAYS = ("identifier", "patient", "apart")


async def relink(
    administration: Administration, *, tenant: str, reports: Sequence[str], **given: Any
) -> Record:
    """Move reports to another Patient. All are checked before the first is moved."""
    owner, context = await administration.tenant(tenant), await administration.context()
    ids = list(dict.fromkeys(map(id_of, reports)))
    target = await _target(ids, given, owner, context)
    planned = [await plan_relink(one, target, tenant=owner, context=context) for one in ids]
    await refuse_stranded(planned, tenant=owner, context=context)
    left: list[str] = []
    if not given.get("dry_run"):
        note = Note(given.get("operator") or administration.operator, given["reason"].strip())
        # Those first that state nothing: if this is interrupted, what they refer to is there.
        for one in sorted(planned, key=lambda one: one.states):
            await _relink_one(administration, one, target, note, owner, context)
        left = [
            f"{', '.join(names)} arrived during the move, and refers to Patient/{patient_id}, of "
            "which nothing is known any more: move it as well."
            async for patient_id, names in left_behind(planned, tenant=owner, context=context)
        ]
    return {"moved": [_relink_record(one) for one in planned], "left": left}


async def _relink_one(
    administration: Administration,
    one: Relink,
    target: Target,
    note: Note,
    tenant: Tenant,
    context: Context,
) -> None:
    store = administration.store
    what = (one.type, one.id), ("Patient", one.before), ("Patient", one.after)
    async with administration.recorded("patient.relink", *what, tenant=tenant.id):
        await relink_one(one.id, target, note, tenant=tenant, context=context, store=store)


async def _target(ids: Sequence[str], given: Record, tenant: Tenant, context: Context) -> Target:
    ways = [name for name in _WAYS if given.get(name)]
    if len(ways) != 1:
        raise _required(f"name the Patient by exactly one of {', '.join(_WAYS)}")
    if ways == ["identifier"]:
        system, value = identifier_in(given["identifier"])
        return targets.person_with(system, value, tenant=tenant, context=context)
    if ways == ["patient"]:
        return await targets.known_patient(id_of(given["patient"]), tenant=tenant, context=context)
    if len(ids) > 1:
        raise _required("apart takes one report: move it first, then the others to its Patient")
    return targets.apart(ids[0], tenant=tenant, context=context)


def _relink_record(one: Relink) -> Record:
    return {
        "report": f"{one.type}/{one.id}",
        "version": one.version,
        "from": f"Patient/{one.before}",
        "to": f"Patient/{one.after}",
        "is_needed": one.is_needed,
    }


async def show(
    administration: Administration,
    *,
    tenant: str,
    patient: str | None = None,
    identifier: str | None = None,
    names: bool = False,
) -> Record:
    """Return what reports state about a patient."""
    owner, context = await administration.tenant(tenant), await administration.context()
    if (patient is None) == (identifier is None):
        raise _required("name either a patient or an identifier")
    found = id_of(patient or "")
    if identifier is not None:
        system, value = identifier_in(identifier)
        found = targets.person_with(system, value, tenant=owner, context=context).id
    await administration.record_read("read", ("Patient", found), tenant=owner.id)
    systems = administration.config.patients.person_systems
    statements: list[Record] = []
    async for one in statements_about(found, tenant=owner, context=context):
        statements.append(_statement_record(one, found, systems, names=names))
        if len(statements) == MAX_STATEMENTS:
            break
    return {"patient": found, "statements": statements}


def _statement_record(
    one: Stated, patient_id: str, systems: Sequence[str], *, names: bool
) -> Record:
    moved = one.belongs_to != patient_id
    provenance: dict[str, Any] = one.provenance
    record = {
        "stated": instant(one.stated),
        "version": one.statement,
        "report": f"{one.resource_type}/{one.resource_id}",
        "identifiers": [
            f"{system}|{value}"
            for system in systems
            for value in sorted(current_values(one.patient, system))
        ],
        "moved_to": f"Patient/{one.belongs_to}" if moved else None,
        "operator": provenance["agent"][0]["who"]["display"] if provenance else None,
        "reason": provenance["reason"][0]["text"] if provenance else None,
    }
    return {**record, **_person_shown(one.patient)} if names else record


def _person_shown(patient: JsonObject) -> Record:
    name = name_to_use(patient.get("name", ()))
    shown = name.get("text") or f"{given_names(name)} {name.get('family', '')}".strip()
    return {"name": shown, "birth_date": patient.get("birthDate")}


async def conflicts(administration: Administration, *, tenant: str, after: str = "") -> Record:
    """Return identifiers of persons that several Patients have, and where to go on."""
    owner, context = await administration.tenant(tenant), await administration.context()
    id_, _, number = after.partition("/")
    (last,) = read_numbers([number], count=1, name="after") if after else (0,)
    search = ConflictSearch(
        tenant=owner,
        context=context,
        store=administration.store,
        after=(id_, last),
    )
    await administration.record_read("patient.conflicts", tenant=owner.id)
    found = [one async for one in search.conflicts(max_read=_MAX_READ)]
    return {
        "conflicts": [
            {"identifier": f"{one.system}|{one.value}", "patients": list(one.patients)}
            for one in found
        ],
        "read": search.read,
        "versions": await administration.store.count(),
        "following": "{}/{}".format(*search.after) if search.is_more else None,
    }


def _required(rule: str) -> InvalidContent:
    return InvalidContent([Issue.error(OperationProblem.FIELD_REQUIRED, rule)])


_IDENTIFIER = Parameter(
    name="identifier",
    text="The person with this identifier, in one of [patients] person_systems.",
    rule=why_no_identifier,
)
RELINK = Operation(
    command="patient relink",
    method="POST",
    path="/tenants/{tenant}/patients/relink",
    summary="Move reports with their results to another Patient, each in a next version",
    run=relink,
    parameters=(
        OF_TENANT,
        Parameter(
            name="reports",
            type="strings",
            text="The ids of the reports.",
            required=True,
            minimum=1,
            maximum=_MAX_REPORTS,
        ),
        _IDENTIFIER,
        Parameter(name="patient", text="A Patient that exists, by its id."),
        Parameter(name="apart", type="boolean", text="A new Patient of the report's own."),
        REASON,
        OPERATOR,
        Parameter(
            name="dry_run",
            type="boolean",
            text="Only show what would be moved, and change nothing.",
        ),
    ),
    creates_store=False,
)
SHOW = Operation(
    command="patient show",
    method="POST",
    path="/tenants/{tenant}/patients/show",
    summary="Show what reports state about a patient; in the body, since logs have addresses",
    run=show,
    parameters=(
        OF_TENANT,
        Parameter(name="patient", text="The patient, by its id."),
        _IDENTIFIER,
        Parameter(name="names", type="boolean", text="Show names and birth dates, too."),
    ),
    creates_store=False,
)
CONFLICTS = Operation(
    command="patient conflicts",
    method="GET",
    path="/tenants/{tenant}/patients/conflicts",
    summary="List identifiers in [patients] person_systems that more than one Patient has",
    run=conflicts,
    parameters=(
        OF_TENANT,
        Parameter(
            name="after",
            text=FROM,
            place="query",
        ),
    ),
    creates_store=False,
)
OPERATIONS = (RELINK, SHOW, CONFLICTS)
