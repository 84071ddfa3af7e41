"""What a move to another Patient leaves behind: its line in the log, and its documents."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from fhirpub.interactions.relinking.relink import plan_relink
from fhirpub.interactions.relinking.targets import person_with
from fhirpub.storage.contract import Version
from tests.panels import result
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
