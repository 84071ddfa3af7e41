"""What a move to another Patient leaves behind: its line in the log, and its documents."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from fhirpub.interactions.relinking.relink import plan_relink
from fhirpub.interactions.relinking.targets import person_with
from fhirpub.storage.contract import Version
from fhirpub.storage.criteria import decode
from fhirpub.storage.erasure.tombstones import is_erased
from fhirpub.testing.samples import new_member_id
from tests.panels import result
from tests.unit.interactions.erasure.erasers import begun
from tests.unit.interactions.patients.people import NATIONAL, NOTE, Ward, called, id_of, person


@pytest.fixture
async def report(ward: Ward) -> Version:
    return await ward.report("R-1", person((NATIONAL, "1"), name=called("Ash")), result("a"))


async def test_each_move_is_logged_with_who_did_it_and_why(ward: Ward, report: Version) -> None:
    with capture_logs() as logs:
        await ward.moved_to(report, NATIONAL, "2")

    (line,) = [one for one in logs if one["event"] == "resource moved to another patient"]
    assert line == {
        "event": "resource moved to another patient",
        "log_level": "warning",
        "tenant": ward.tenant.id,
        "resource": f"DiagnosticReport/{report.id}",
        "version": 2,
        "before": id_of(report),
        "after": ward.tenant.person_id(NATIONAL, "2"),
        "operator": NOTE.operator,
        "reason": NOTE.reason,
    }


async def test_what_moves_nothing_is_not_logged(ward: Ward, report: Version) -> None:
    target = person_with(NATIONAL, "2", **ward.named)

    with capture_logs() as planned:
        await plan_relink(report.id, target, **ward.named)
    with capture_logs() as unneeded:
        await ward.moved_to(report, NATIONAL, "1")
    await ward.moved_to(report, NATIONAL, "2")
    with capture_logs() as again:
        await ward.moved_to(report, NATIONAL, "2")

    assert planned == unneeded == again == []


async def test_the_small_documents_of_a_report_move_along(ward: Ward, report: Version) -> None:
    before = await ward.store.latest(ward.tenant.id, report.id)
    await ward.moved_to(report, NATIONAL, "2")

    after = await ward.store.latest(ward.tenant.id, report.id)

    assert before is not None
    assert after is not None
    assert len(before.documents) == 1
    assert after.documents == before.documents
    assert after.attached == before.attached != ()
    names = {*after.documents}
    assert {*await ward.store.blobs(ward.tenant.id, names)} == names


async def test_results_move_again_from_where_they_were_moved_to(
    ward: Ward, report: Version
) -> None:
    await ward.moved_to(report, NATIONAL, "2")
    await ward.moved_to(report, NATIONAL, "3")

    member = await ward.store.latest(ward.tenant.id, report.members[0].id)
    assert member is not None
    assert (member.version, id_of(member)) == (3, ward.tenant.person_id(NATIONAL, "3"))


async def latest(ward: Ward, id_: str) -> Version:
    found = await ward.store.latest(ward.tenant.id, id_)
    assert found is not None
    return found


async def test_a_result_shows_no_more_of_its_patient_than_it_showed(
    ward: Ward, report: Version
) -> None:
    await ward.moved_to(report, NATIONAL, "2")

    moved = f"Patient/{ward.tenant.person_id(NATIONAL, '2')}"
    member = json.loads((await latest(ward, report.members[0].id)).body)
    assert member["subject"] == {"reference": moved}
    subject = json.loads((await latest(ward, report.id)).body)["subject"]
    assert subject.keys() == {"reference", "identifier", "display"}


async def test_a_report_is_found_by_the_identifier_of_the_patient_that_it_was_moved_to(
    ward: Ward, report: Version
) -> None:
    await ward.moved_to(report, NATIONAL, "2")

    for id_ in (report.id, report.members[0].id):
        values = decode((await latest(ward, id_)).search)
        found = [one[1:] for one in values if one[0] == "subject:Patient.identifier"]
        assert found == [("2", NATIONAL)]


async def test_results_of_before_an_erasure_do_not_move(ward: Ward, report: Version) -> None:
    await begun(ward.store, report.id, allows_reuse=True)
    stands = await latest(ward, report.id)
    other = replace(report.members[0], id=new_member_id())
    again = replace(report, version=3, updated=stands.updated + 1, members=())
    brought = replace(other, version=3, updated=stands.updated + 1)
    assert await ward.store.add(ward.tenant.id, replace(again, members=(brought,)))

    await ward.moved_to(again, NATIONAL, "2", day=10_000)

    assert (await latest(ward, report.id)).version == 4
    assert (await latest(ward, other.id)).version == 4
    assert is_erased(await latest(ward, report.members[0].id))
