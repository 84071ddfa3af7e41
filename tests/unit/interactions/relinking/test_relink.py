"""A resource moved to another Patient, in its next version."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.fhir.times import instant
from fhirpub.interactions.indexing import limits
from fhirpub.interactions.patients.parts import PROVENANCE, sources_of_type
from fhirpub.interactions.relinking import relink as relink_module
from fhirpub.interactions.relinking.corrections import Target
from fhirpub.interactions.relinking.relink import NotMovable, Relink, plan_relink
from fhirpub.interactions.relinking.targets import person_with
from fhirpub.storage.contract import Version
from fhirpub.testing.contracts.erasure.content import erase
from fhirpub.testing.samples import new_id, successor
from tests.panels import result, specimen
from tests.unit.interactions.patients.people import (
    DAY,
    HOSPITAL,
    NATIONAL,
    NOTE,
    OTHER,
    START,
    Ward,
    called,
    id_of,
    person,
)


@pytest.fixture
async def report(ward: Ward) -> Version:
    return await ward.report(
        "R-1", person((NATIONAL, "1"), (HOSPITAL, "x"), name=called("Ash")), result("a")
    )


async def newest(ward: Ward, id_: str) -> Version:
    found = await ward.store.latest(ward.tenant.id, id_)
    assert found is not None
    return found


def target(ward: Ward, value: str = "2") -> Target:
    return person_with(NATIONAL, value, **ward.named)


async def refusal(ward: Ward, id_: str) -> str:
    with pytest.raises(NotMovable) as refused:
        await plan_relink(id_, target(ward), **ward.named)
    return str(refused.value)


def parts_of(version: Version) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(version.parts)
    return found


async def test_a_plan_is_what_would_be_done(ward: Ward, report: Version) -> None:
    planned = await plan_relink(report.id, target(ward), **ward.named)

    assert planned == Relink(
        type="DiagnosticReport",
        id=report.id,
        version=2,
        before=id_of(report),
        after=ward.tenant.person_id(NATIONAL, "2"),
        is_needed=True,
        states=True,
    )
    assert (await newest(ward, report.id)).version == 1
    assert await ward.moved_to(report, NATIONAL, "2") == planned


async def test_the_next_version_refers_to_the_other_patient(ward: Ward, report: Version) -> None:
    await ward.moved_to(report, NATIONAL, "2")

    moved = await newest(ward, report.id)
    person_id = ward.tenant.person_id(NATIONAL, "2")
    assert (moved.version, id_of(moved)) == (2, person_id)
    assert (moved.created, moved.updated) == (report.created, START + 2 * DAY)
    assert (moved.system, moved.value, moved.status) == (
        report.system,
        report.value,
        report.status,
    )
    assert (moved.documents, moved.response) == (report.documents, b"")
    assert json.loads(moved.body)["meta"]["versionId"] == "2"


async def test_its_results_move_along(ward: Ward, report: Version) -> None:
    await ward.moved_to(report, NATIONAL, "2")

    member = await newest(ward, report.members[0].id)
    assert (member.version, id_of(member)) == (2, ward.tenant.person_id(NATIONAL, "2"))
    assert member.updated == START + 2 * DAY
    assert id_of(member) in member.search.decode()


async def test_what_does_not_refer_to_the_patient_stays(ward: Ward) -> None:
    report = await ward.report(
        "R-1",
        person((NATIONAL, "1")),
        result("a", specimen={"reference": "Specimen/blood"}),
        specimen(subject=None),
    )
    await ward.moved_to(report, NATIONAL, "2")

    versions = {one.type: (await newest(ward, one.id)).version for one in report.members}
    assert versions == {"Observation": 2, "Specimen": 1}


async def test_results_that_came_later_move_as_well(ward: Ward, report: Version) -> None:
    added = replace(report.members[0], id=ward.tenant.member_id(report.id, "observation", ["z"]))
    await ward.store.add(ward.tenant.id, successor(report, members=(added,)))

    await ward.moved_to(report, NATIONAL, "2")

    assert (await newest(ward, report.id)).version == 3
    for member in (added, report.members[0]):
        assert id_of(await newest(ward, member.id)) == ward.tenant.person_id(NATIONAL, "2")


async def test_the_statement_has_the_identifier_of_the_other_patient(
    ward: Ward, report: Version
) -> None:
    await ward.moved_to(report, NATIONAL, "2")

    patient = parts_of(await newest(ward, report.id))["patient"]
    numbers = {one["system"]: one["value"] for one in patient["identifier"]}
    assert numbers == {NATIONAL: "2", HOSPITAL: "x"}
    assert patient["meta"]["versionId"] == f"{report.id}.2"
    assert patient["id"] == ward.tenant.person_id(NATIONAL, "2")
    assert patient["name"][0]["family"] == "Ash"


async def test_a_report_that_is_moved_twice_is_corrected_from_what_was_sent(
    ward: Ward, report: Version
) -> None:
    await ward.moved_to(report, HOSPITAL, "y")
    await ward.moved_to(report, NATIONAL, "2")

    patient = parts_of(await newest(ward, report.id))["patient"]
    numbers = {one["system"]: one["value"] for one in patient["identifier"]}
    assert numbers == {NATIONAL: "2", HOSPITAL: "x"}


async def test_who_moved_it_and_why_is_stored_with_it(ward: Ward, report: Version) -> None:
    await ward.moved_to(report, NATIONAL, "2")

    statement = f"{report.id}.2"
    time = instant(START + 2 * DAY)
    assert parts_of(await newest(ward, report.id))[PROVENANCE] == {
        "resourceType": "Provenance",
        "id": statement,
        "meta": {"versionId": statement, "lastUpdated": time},
        "target": [
            {"reference": f"DiagnosticReport/{report.id}/_history/2"},
            {"reference": f"Patient/{ward.tenant.person_id(NATIONAL, '2')}/_history/{statement}"},
        ],
        "recorded": time,
        "reason": [{"text": NOTE.reason}],
        "agent": [{"who": {"display": NOTE.operator}}],
        "entity": [{"role": "revision", "what": {"reference": f"Patient/{id_of(report)}"}}],
    }


async def test_the_event_names_the_results_that_moved(ward: Ward, report: Version) -> None:
    await ward.moved_to(report, NATIONAL, "2")

    (event,) = json.loads((await newest(ward, report.id)).events)
    assert event["id"] == f"{report.id}.2.1"
    assert event["data"]["changed"] == [f"Observation/{report.members[0].id}"]


async def test_the_time_is_behind_that_of_the_last_version(ward: Ward, report: Version) -> None:
    await ward.moved(report, target(ward), day=0)

    assert (await newest(ward, report.id)).updated == report.updated + 1


async def test_a_report_that_is_there_already_stays_as_it_is(ward: Ward, report: Version) -> None:
    await ward.moved_to(report, NATIONAL, "2")
    again = await ward.moved_to(report, NATIONAL, "2")

    assert (again.is_needed, again.version, again.before) == (False, 2, again.after)
    assert (await newest(ward, report.id)).version == 2


async def test_a_report_with_a_reference_alone_states_nothing(ward: Ward, report: Version) -> None:
    referring = await ward.referring("R-2", id_of(report))

    planned = await plan_relink(referring.id, target(ward), **ward.named)

    assert (planned.before, planned.states) == (id_of(report), False)


async def test_a_report_with_a_patient_of_its_own_states_it(ward: Ward) -> None:
    report = await ward.report("R-1", person())

    planned = await plan_relink(report.id, target(ward), **ward.named)

    assert (planned.before, planned.states) == (id_of(report), True)


async def test_a_report_that_was_moved_states_its_new_patient(ward: Ward, report: Version) -> None:
    await ward.moved_to(report, NATIONAL, "3")

    planned = await plan_relink(report.id, target(ward), **ward.named)

    assert (planned.before, planned.states) == (ward.tenant.person_id(NATIONAL, "3"), True)


# What cannot be moved


async def test_an_unknown_report_cannot_be_moved(ward: Ward, report: Version) -> None:
    id_ = new_id()

    assert await refusal(ward, id_) == f"the tenant has no report {id_}"
    theirs = Ward(ward.store, *ward.systems, tenant=OTHER)
    assert await refusal(theirs, report.id) == f"the tenant has no report {report.id}"


async def test_a_result_moves_with_its_report(ward: Ward, report: Version) -> None:
    (member,) = report.members

    assert await refusal(ward, member.id) == (
        f"Observation/{member.id} came with another resource: it moves together with that one"
    )


async def test_a_result_of_a_type_that_is_registered_too_moves_with_its_report(
    ward: Ward, report: Version
) -> None:
    (member,) = report.members
    types = {**ward.context.types, "Observation": ward.context.types["Immunization"]}

    with pytest.raises(NotMovable, match="came with another resource"):
        await plan_relink(
            member.id,
            target(ward),
            tenant=ward.tenant,
            context=replace(ward.context, types=types),
        )


async def test_what_was_erased_cannot_be_moved(ward: Ward, report: Version) -> None:
    await erase(ward.store, report, *report.members)

    assert await refusal(ward, report.id) == f"DiagnosticReport/{report.id} was erased"


async def test_a_report_without_a_patient_cannot_be_moved(ward: Ward, report: Version) -> None:
    parts = parts_of(report)
    del parts["patient"]
    alone = replace(report, id=new_id(), value="R-9", parts=json.dumps(parts).encode(), members=())
    await ward.store.add(ward.tenant.id, alone)

    assert await refusal(ward, alone.id) == (
        f"DiagnosticReport/{alone.id} came with no patient: it cannot be moved"
    )


async def test_a_report_with_several_patients_cannot_be_moved(
    ward: Ward, report: Version, monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = [*sources_of_type(report.type, ward.context)] * 2
    monkeypatch.setattr(relink_module, "sources_of_type", lambda *_named: twice)

    assert await refusal(ward, report.id) == (
        f"DiagnosticReport/{report.id} came with several patients: it cannot be moved"
    )


@pytest.mark.parametrize("page", [1, 2])
async def test_members_of_each_version_are_found_page_by_page(
    ward: Ward, report: Version, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(relink_module, "_PAGE", page)
    await ward.report("R-2", person((NATIONAL, "9")), result("a"))
    added = replace(report.members[0], id=ward.tenant.member_id(report.id, "observation", ["z"]))
    second = successor(report, members=())
    await ward.store.add(ward.tenant.id, second)
    await ward.store.add(ward.tenant.id, successor(second, members=(added,)))

    await ward.moved_to(report, NATIONAL, "2")

    assert (await newest(ward, report.id)).version == 4
    for member in (added, report.members[0]):
        assert id_of(await newest(ward, member.id)) == ward.tenant.person_id(NATIONAL, "2")


async def test_a_type_that_is_registered_no_more_cannot_be_moved(ward: Ward) -> None:
    given = await ward.vaccination("V-1", person((NATIONAL, "1")))
    others = {name: one for name, one in ward.context.types.items() if name != given.type}

    with pytest.raises(NotMovable) as refused:
        await plan_relink(
            given.id,
            target(ward),
            tenant=ward.tenant,
            context=replace(ward.context, types=others),
        )

    assert "came with another resource" in str(refused.value)


async def test_what_is_stored_is_moved_however_many_search_values_it_has(
    ward: Ward, report: Version, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_SEARCH_VALUES", 0)

    await ward.moved_to(report, NATIONAL, "2")

    assert id_of(await newest(ward, report.id)) == ward.tenant.person_id(NATIONAL, "2")
