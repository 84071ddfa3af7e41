"""What a revision leads to: the next versions of what differs, or a refusal of what must not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fhirpub.errors import BrokenRule
from fhirpub.interactions.revision.revise import Revised
from fhirpub.storage.contract import Version
from tests.bodies import document
from tests.unit.interactions.patients.people import (
    DAY,
    HOSPITAL,
    NATIONAL,
    START,
    Ward,
    called,
    person,
)
from tests.unit.interactions.revision.revising import (
    ASH,
    REPORT,
    addresses,
    answer,
    numbered,
    references,
    refused,
    registered,
    revised,
    said,
)


def versions(of: Revised) -> dict[str, int]:
    return {one.id: one.version for one in of.version.members}


# What differs


async def test_a_repetition_stores_nothing(ward: Ward, report: Version) -> None:
    again = await revised(ward, report, numbered(1), numbered(2), status="preliminary")

    assert again.created is False
    assert again.version.version == 1
    assert said(again)[0] == "nothing differs: nothing was stored"
    assert references(again) == []
    assert await ward.store.version(ward.tenant.id, report.id, 2) is None


async def test_only_what_differs_gets_a_version(ward: Ward, report: Version) -> None:
    changed = await revised(ward, report, numbered(1, 7.5), numbered(2))

    first, _second = report.members
    assert changed.created is True
    assert (changed.version.id, changed.version.version) == (report.id, 2)
    assert versions(changed) == {first.id: 2}
    assert references(changed) == addresses(report)[:1]
    assert said(changed)[0] == "DiagnosticReport was revised"


async def test_a_new_result_begins_with_its_first_version(ward: Ward, report: Version) -> None:
    changed = await revised(ward, report, numbered(1), numbered(2), numbered(3))

    (new,) = changed.version.members
    assert (new.version, new.created, new.updated) == (1, START + 2 * DAY, START + 2 * DAY)
    assert references(changed) == [f"Observation/{new.id}"]


async def test_a_changed_result_keeps_the_time_of_its_first_version(
    ward: Ward, report: Version
) -> None:
    changed = await revised(ward, report, numbered(1, 7.5), numbered(2))

    (one,) = changed.version.members
    assert (one.created, one.updated) == (report.created, START + 2 * DAY)
    assert (changed.version.created, changed.version.updated) == (
        report.created,
        START + 2 * DAY,
    )
    meta = json.loads(one.body)["meta"]
    assert meta["versionId"] == "2"
    assert json.loads(changed.version.body)["meta"]["lastUpdated"] == meta["lastUpdated"]


async def test_a_result_changes_without_its_report(ward: Ward, report: Version) -> None:
    changed = await revised(ward, report, numbered(1, 7.5), numbered(2), status="preliminary")

    assert changed.created is True
    assert len(changed.version.members) == 1


async def test_the_time_of_a_version_is_behind_that_of_the_last(
    ward: Ward, report: Version
) -> None:
    changed = await revised(ward, report, numbered(1), numbered(2), day=0)

    assert changed.version.updated == report.updated + 1


async def test_versions_follow_each_other(ward: Ward, report: Version) -> None:
    await revised(ward, report, numbered(1, 7.5), numbered(2))
    changed = await revised(ward, report, numbered(1, 7.5), numbered(2, 8.5))

    assert changed.version.version == 3
    assert versions(changed) == {report.members[1].id: 2}


async def test_a_later_version_states_nothing_of_its_own(ward: Ward, report: Version) -> None:
    changed = await revised(ward, report, numbered(1), numbered(2))

    assert (changed.version.response, changed.version.parts) == (b"", b"")
    marker = "subject:Patient"
    assert marker in [one[0] for one in json.loads(report.search)]
    assert marker not in [one[0] for one in json.loads(changed.version.search)]


async def test_the_event_names_what_is_new_and_what_has_changed(
    ward: Ward, report: Version
) -> None:
    changed = await revised(ward, report, numbered(1, 7.5), numbered(2), numbered(3))

    old, new = sorted(changed.version.members, key=lambda one: -one.version)
    (event,) = json.loads(changed.version.events)
    assert old.version == 2
    assert new.version == 1
    assert event["id"] == f"{report.id}.2.1"
    assert event["data"]["added"] == [f"Observation/{new.id}"]
    assert event["data"]["changed"] == [f"Observation/{old.id}"]


async def test_the_response_shows_the_version_that_was_made(ward: Ward, report: Version) -> None:
    changed = await revised(ward, report, numbered(1), numbered(2))

    first = answer(changed)["parameter"][0]
    short, meta = first["resource"], json.loads(changed.version.body)["meta"]
    assert first["name"] == "diagnosticReport"
    assert short["meta"]["versionId"] == "2"
    assert short["meta"]["lastUpdated"] == meta["lastUpdated"]
    assert short["status"] == "final"


async def test_the_response_to_a_repetition_shows_the_newest_version(
    ward: Ward, report: Version
) -> None:
    await revised(ward, report, numbered(1), numbered(2))
    again = await revised(ward, report, numbered(1), numbered(2))

    short = answer(again)["parameter"][0]["resource"]
    meta = json.loads(again.version.body)["meta"]
    assert (again.created, short["meta"]["versionId"]) == (False, "2")
    assert short["meta"]["lastUpdated"] == meta["lastUpdated"]


@pytest.mark.parametrize(
    "change",
    [
        {"issued": "2026-11-22T10:05:00Z"},
        {
            "text": {
                "status": "generated",
                "div": '<div xmlns="http://www.w3.org/1999/xhtml">a</div>',
            }
        },
    ],
)
async def test_what_each_version_states_alone_makes_another_one(
    ward: Ward, report: Version, change: dict[str, Any]
) -> None:
    changed = await revised(ward, report, numbered(1), numbered(2), status="preliminary", **change)

    assert (changed.created, changed.version.version) == (True, 2)
    assert changed.version.members == ()


async def test_a_revision_does_not_say_that_the_report_was_created(
    ward: Ward, report: Version
) -> None:
    changed = await revised(ward, report, numbered(1, 7.5), numbered(2))
    again = await revised(ward, report, numbered(1, 7.5), numbered(2))

    for one in (changed, again):
        assert [words for words in said(one) if "was created" in words] == []


async def test_remarks_follow_what_was_done(ward: Ward, report: Version) -> None:
    changed = await revised(ward, report, numbered(1), numbered(2, subject=None))

    assert said(changed)[0] == "DiagnosticReport was revised"
    assert "subject is missing: a search by patient will not find it" in said(changed)


# What must not differ


async def test_the_identifier_is_that_of_the_report(ward: Ward, report: Version) -> None:
    assert (
        "DiagnosticReport.identifier[0]",
        "is not the identifier of this resource",
    ) in await refused(ward, report, numbered(1), numbered(2), value="R-2")


async def test_an_element_that_is_fixed_is_named_with_those_that_are_not(
    ward: Ward, report: Version
) -> None:
    ((place, rule),) = await refused(
        ward, report, numbered(1), numbered(2), code={"text": "Other"}
    )

    assert place == "DiagnosticReport.code"
    updatable = sorted({*ward.context.types[REPORT].updatable, "result", "issued", "text"})
    listed = rule.removeprefix("differs from what is stored; what can be revised: ")
    assert listed.split(", ") == sorted({*listed.split(", "), *updatable})


@pytest.mark.parametrize("name", ["conclusion", "presentedForm", "issued", "text"])
async def test_what_each_version_states_may_differ(ward: Ward, report: Version, name: str) -> None:
    content: Any = {
        "conclusion": "Other",
        "presentedForm": [document(b"%PDF-1.4\nother")],
        "issued": "2026-11-21T10:05:00Z",
        "text": {
            "status": "additional",
            "div": '<div xmlns="http://www.w3.org/1999/xhtml">Other</div>',
        },
    }
    changes: Any = {name: content[name]}
    changed = await revised(ward, report, numbered(1), numbered(2), **changes)

    assert changed.created


async def test_all_that_is_wrong_is_named(ward: Ward, report: Version) -> None:
    places = [
        place
        for place, _rule in await refused(
            ward,
            report,
            numbered(1),
            code={"text": "Other"},
            effectiveDateTime="2026-11-21",
            one={**ASH, "birthDate": "1991-01-01"},
        )
    ]

    assert places == [
        "DiagnosticReport.code",
        "DiagnosticReport.effectiveDateTime",
        "patient",
        "DiagnosticReport.result",
    ]


async def test_a_part_that_differs_is_named_with_its_elements(ward: Ward, report: Version) -> None:
    other = {**ASH, "birthDate": "1991-01-01", "gender": "male"}

    assert await refused(ward, report, numbered(1), numbered(2), one=other) == [
        (
            "patient",
            "the entry patient differs in birthDate, gender: it stays as it was registered",
        )
    ]


async def test_a_status_of_updates_may_follow(ward: Ward, report: Version) -> None:
    for status in ("final", "amended", "entered-in-error"):
        assert (await revised(ward, report, numbered(1), numbered(2), status=status)).created


async def test_a_status_that_no_update_may_have_is_refused(ward: Ward) -> None:
    report = await registered(ward, numbered(1), status="final")
    served = ward.context.types[REPORT]
    status = sorted(served.create_statuses - served.update_statuses)

    for one in status:
        ((place, _rule),) = await refused(ward, report, numbered(1), status=one)
        assert place == "DiagnosticReport.status"


async def test_a_status_that_must_not_follow_breaks_a_business_rule(ward: Ward) -> None:
    report = await registered(ward, numbered(1), status="final")

    with pytest.raises(BrokenRule) as broken:
        await revised(ward, report, numbered(1), status="registered")

    assert [issue.code for issue in broken.value.issues] == ["business-rule"]


async def test_of_a_part_that_differs_the_reference_is_not_named_as_well(
    ward: Ward, report: Version
) -> None:
    numbers = person((HOSPITAL, "x"), (NATIONAL, "1"), name=called("Birch"))

    found = await refused(ward, report, numbered(1), numbered(2), one=numbers)

    assert [place for place, _rule in found] == ["patient"]


async def test_another_reference_beside_a_part_that_differs_is_named_as_well(
    ward: Ward, report: Version
) -> None:
    numbers = person((HOSPITAL, "x"), (NATIONAL, "1"), name=called("Birch"))
    subject = {"reference": "Patient/p1", "type": "Patient"}

    found = await refused(ward, report, numbered(1), numbered(2), one=numbers, subject=subject)

    assert [place for place, _rule in found] == ["DiagnosticReport.subject", "patient"]
