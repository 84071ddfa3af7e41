"""What a revision does to the results of a report, and to its patient."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from fhirpub.interactions.revision.comparison import (
    Stored,
    compare,
    members_of,
    revisable,
)
from fhirpub.plugin_api import Change, Event
from fhirpub.storage.contract import Version
from fhirpub.storage.erasure.tombstones import Tombstone, husk_of
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.samples import successor
from tests.panels import specimen
from tests.unit.interactions.patients.people import (
    NATIONAL,
    Ward,
    called,
    id_of,
    person,
)
from tests.unit.interactions.revision.revising import (
    REPORT,
    addresses,
    body_of,
    candidate_of,
    numbered,
    refused,
    registered,
    revised,
)

# Results


async def test_a_result_must_not_be_left_out(ward: Ward, report: Version) -> None:
    _first, second = addresses(report)

    ((place, rule),) = await refused(ward, report, numbered(1))

    assert place == "DiagnosticReport.result"
    assert rule == (
        f"no longer refers to {second}: keep the reference, or send the resource as "
        "entered-in-error"
    )


async def test_a_result_that_is_withdrawn_may_be_left_out(ward: Ward, report: Version) -> None:
    withdrawn = numbered(2, status="entered-in-error")
    changed = await revised(
        ward, report, numbered(1), withdrawn, result=[{"reference": "Observation/r1"}]
    )
    again = await revised(ward, report, numbered(1))

    assert [one.status for one in changed.version.members] == ["entered-in-error"]
    assert again.created is False


async def test_members_are_those_sent_and_those_referred_to(ward: Ward, report: Version) -> None:
    candidate = candidate_of(ward, body_of(numbered(3), specimen())).version
    later = successor(report)

    assert members_of(candidate, later) == {
        *(one.id for one in candidate.members),
        *(one.id for one in report.members),
        id_of(report),
    }


async def test_a_result_that_no_reference_leads_to_is_known_when_it_is_sent_again(
    ward: Ward,
) -> None:
    first: dict[str, Any] = {"result": [{"reference": "Observation/r1"}]}
    report = await registered(ward, numbered(1), numbered(2), **first)

    again = await revised(ward, report, numbered(1), numbered(2), status="preliminary", **first)
    changed = await revised(ward, report, numbered(1), numbered(2, 7.5), **first)

    assert again.created is False
    assert [one.version for one in changed.version.members] == [2]


def test_a_revision_may_withdraw_what_a_type_brings(ward: Ward) -> None:
    served = ward.context.types[REPORT]
    found = revisable(served)

    assert found.create_statuses == served.create_statuses | served.update_statuses
    for before, after in zip(served.parts, found.parts, strict=True):
        added = {"entered-in-error"} if before.statuses else set()
        assert after.statuses == before.statuses | added


# Patients


async def test_a_report_that_was_moved_stays_with_its_patient(ward: Ward, report: Version) -> None:
    await ward.moved_to(report, NATIONAL, "2")
    changed = await revised(ward, report, numbered(1, 7.5), numbered(2))

    person_id = ward.tenant.person_id(NATIONAL, "2")
    assert id_of(changed.version) == person_id
    assert [id_of(one) for one in changed.version.members] == [person_id]


async def test_results_of_a_report_that_was_moved_are_found_by_its_patient(
    ward: Ward, report: Version
) -> None:
    await ward.moved_to(report, NATIONAL, "2")
    changed = await revised(ward, report, numbered(1, 7.5), numbered(2))

    (member,) = changed.version.members
    identifiers = [one for one in json.loads(member.search) if one[0].endswith(".identifier")]
    assert [one[1:] for one in identifiers] == [["2", NATIONAL]]


async def test_a_function_of_events_gets_the_patient_that_a_report_was_moved_to(
    ward: Ward, report: Version
) -> None:
    seen: list[Change] = []
    moved = await ward.moved_to(report, NATIONAL, "2")
    newest = await ward.store.latest(ward.tenant.id, report.id)
    assert newest is not None
    context = ward.context

    def events(change: Change) -> list[Event]:
        seen.append(change)
        return []

    declared = replace(context.types[REPORT], events=events)
    candidate = candidate_of(ward, body_of(numbered(1), numbered(2), status="final")).version
    known = {one.id: one for one in newest.members}

    compare(
        replace(context, types={**context.types, REPORT: declared}),
        candidate,
        Stored(newest, report.parts, newest.parts, ward.tenant, known),
    )

    (change,) = seen
    assert change.parts["patient"]["id"] == moved.after


async def test_a_report_that_was_moved_may_be_sent_with_its_new_patient(
    ward: Ward, report: Version
) -> None:
    await ward.moved_to(report, NATIONAL, "2")
    other = person((NATIONAL, "2"), name=called("Ash"))

    changed = await revised(ward, report, numbered(1), numbered(2), one=other)

    assert id_of(changed.version) == ward.tenant.person_id(NATIONAL, "2")


async def test_a_report_is_not_moved_by_a_revision(ward: Ward, report: Version) -> None:
    other = person((NATIONAL, "2"), name=called("Ash"))

    ((place, _rule),) = await refused(ward, report, numbered(1), numbered(2), one=other)

    assert place == "patient"


async def test_a_report_from_before_its_system_was_declared_keeps_its_own_patient(
    store: SqliteStore, ward: Ward
) -> None:
    before = Ward(store)
    report = await registered(before, numbered(1))
    ward.day = before.day

    changed = await revised(ward, report, numbered(1, 7.5))

    (member,) = changed.version.members
    assert id_of(changed.version) == id_of(report) == id_of(member)
    person_id = ward.tenant.person_id(NATIONAL, "1")
    assert ["subject", person_id, "Patient"] in json.loads(member.search)


async def test_a_function_of_events_gets_the_version_before_and_the_parts(ward: Ward) -> None:
    report = await registered(ward, numbered(1))
    seen: list[Change] = []

    def events(change: Change) -> list[Event]:
        seen.append(change)
        return []

    context = ward.context
    types = {**context.types, REPORT: replace(context.types[REPORT], events=events)}
    candidate = candidate_of(ward, body_of(numbered(1), status="final")).version
    known = {one.id: one for one in report.members}
    compare(
        replace(context, types=types),
        candidate,
        Stored(report, report.parts, report.parts, ward.tenant, known),
    )

    (change,) = seen
    assert change.before is not None
    assert (change.before["status"], change.after["status"]) == ("preliminary", "final")
    assert (change.id, change.version) == (report.id, 2)
    assert {"patient", "organization"} <= change.parts.keys()
    assert change.identifier == {"system": report.system, "value": report.value}


async def test_a_result_that_was_erased_begins_above_its_tombstone(ward: Ward) -> None:
    report = await registered(ward, numbered(1))
    (member,) = report.members
    husk = husk_of(replace(member, version=4), Tombstone(version=4, at=5))
    candidate = candidate_of(ward, body_of(numbered(1), status="final")).version

    revision = compare(
        ward.context,
        candidate,
        Stored(report, report.parts, report.parts, ward.tenant, {member.id: husk}),
    )

    assert revision.version is not None
    (again,) = revision.version.members
    assert (again.version, again.created) == (5, revision.version.updated)


async def test_a_report_with_a_reference_alone_may_be_sent_with_its_patient(
    ward: Ward, report: Version
) -> None:
    referring = await ward.referring("R-2", id_of(report))
    other = person((NATIONAL, "1"), name=called("Ash"), birthDate="1991-01-01")

    changed = await revised(ward, referring, value="R-2", one=other, conclusion="Other")

    assert changed.created
    assert id_of(changed.version) == id_of(report)
