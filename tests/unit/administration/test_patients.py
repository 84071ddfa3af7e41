"""Reports are moved to other Patients, and what reports state of one is shown."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration import patients
from fhirpub.audit.record import BEGUN
from fhirpub.errors import FhirpubError, InvalidContent
from fhirpub.interactions.relinking.relink import NotMovable
from fhirpub.storage.contract import Version
from fhirpub.testing.samples import new_id
from tests.panels import panel
from tests.unit.administration.declared import declared
from tests.unit.administration.office import AGENT, Office
from tests.unit.interactions.erasure.registered import patient_of, registered

REASON = "wrong label"


async def published(office: Office, tenant: str, value: str = "R-1") -> Version:
    owner = await office.administration.tenant(tenant)
    store: Any = office.store
    return await registered(store, panel(value), tenant=owner)


async def patient_now(office: Office, tenant: str, version: Version) -> str:
    latest: Any = await office.store.latest(tenant, version.id)
    return patient_of(latest)


async def relink(office: Office, tenant: str, *reports: str, **given: Any) -> Any:
    usual = {"reports": [*reports], "reason": REASON}
    return await office.run(patients.RELINK, tenant=tenant, **{**usual, **given})


async def test_a_report_gets_a_patient_of_its_own(office: Office, lab: str) -> None:
    report = await published(office, lab)
    before = patient_of(report)

    done = await relink(office, "Lab", report.id, report.id, apart=True)

    after = await patient_now(office, lab, report)
    (moved,) = done["moved"]
    assert after != before
    assert (moved["report"], moved["from"], moved["to"], moved["is_needed"]) == (
        f"{report.type}/{report.id}",
        f"Patient/{before}",
        f"Patient/{after}",
        True,
    )
    assert done["left"] == []


async def test_a_dry_run_moves_nothing_and_leaves_no_record(office: Office, lab: str) -> None:
    report = await published(office, lab)
    before = await office.records()

    done = await relink(office, lab, report.id, apart=True, dry_run=True)

    assert len(done["moved"]) == 1
    assert await patient_now(office, lab, report) == patient_of(report)
    assert await office.records() == before


async def test_a_move_is_recorded_with_the_report_and_both_patients(
    office: Office, lab: str
) -> None:
    report = await published(office, lab)
    before = len(await office.records())

    await relink(office, lab, report.id, apart=True)

    after = await patient_now(office, lab, report)
    names = [f"{report.type}/{report.id}", f"Patient/{patient_of(report)}", f"Patient/{after}"]
    records = [one for one in (await office.records())[before:] if one[1] == "patient.relink"]
    assert records == [(lab, "patient.relink", status, names) for status in (BEGUN, 200)]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"apart": False},
        {"apart": True, "patient": new_id()},
        {"identifier": "s|v", "patient": new_id()},
    ],
    ids=[0, 1, 2, 3],
)
async def test_the_patient_is_named_in_exactly_one_way(
    office: Office, lab: str, given: dict[str, Any]
) -> None:
    report = await published(office, lab)

    with pytest.raises(InvalidContent, match="by exactly one of identifier, patient, apart"):
        await relink(office, lab, report.id, **given)


async def test_only_one_report_at_a_time_gets_a_patient_of_its_own(
    office: Office, lab: str
) -> None:
    reports = [(await published(office, lab, f"R-{number}")).id for number in range(2)]

    with pytest.raises(InvalidContent, match="apart takes one report"):
        await relink(office, lab, *reports, apart=True)


async def test_nothing_is_moved_if_one_of_the_reports_is_not_there(
    office: Office, lab: str
) -> None:
    first, second = [await published(office, lab, f"R-{number}") for number in range(2)]
    await relink(office, lab, first.id, apart=True)
    target = await patient_now(office, lab, first)

    with pytest.raises(FhirpubError):
        await relink(office, lab, second.id, new_id(), patient=target)

    assert await patient_now(office, lab, second) == patient_of(second)


async def test_a_report_of_another_tenant_is_not_moved(
    office: Office, lab: str, other: str
) -> None:
    report = await published(office, lab)

    with pytest.raises(FhirpubError):
        await relink(office, other, report.id, apart=True)

    assert await patient_now(office, lab, report) == patient_of(report)


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"reports": []}, "reports"),
        ({"reports": ["x"] * 101}, "reports"),
        ({"reason": " "}, "reason"),
        ({"reason": None}, "reason"),
        ({"identifier": "nonsense"}, "identifier"),
    ],
)
async def test_a_move_that_cannot_be_one_is_refused(
    office: Office, lab: str, given: dict[str, Any], place: str
) -> None:
    with pytest.raises(InvalidContent) as refused:
        await relink(office, lab, new_id(), **given)

    assert [issue.expression for issue in refused.value.issues] == [place]


async def test_what_reports_state_about_a_patient_is_shown_without_names(
    office: Office, lab: str
) -> None:
    report = await published(office, lab)
    before = len(await office.records())

    shown = await office.run(patients.SHOW, tenant="Lab", patient=f"Patient/{patient_of(report)}")

    (statement,) = shown["statements"]
    assert shown["patient"] == patient_of(report)
    assert statement["report"] == f"{report.type}/{report.id}"
    assert (statement["moved_to"], statement["operator"], statement["reason"]) == (
        None,
        None,
        None,
    )
    assert not {"name", "birth_date"} & statement.keys()
    assert (await office.records())[before:] == [
        (lab, "read", 200, [f"Patient/{patient_of(report)}"])
    ]


async def test_names_are_shown_if_they_are_asked_for(office: Office, lab: str) -> None:
    report = await published(office, lab)

    shown = await office.run(patients.SHOW, tenant=lab, patient=patient_of(report), names=True)

    assert {"name", "birth_date"} <= shown["statements"][0].keys()


async def gathered(office: Office, tenant: str, count: int) -> tuple[list[Version], str]:
    """Publish reports and move all of them to one Patient; return that."""
    reports = [await published(office, tenant, f"R-{number}") for number in range(count)]
    await relink(office, tenant, reports[0].id, apart=True)
    target = await patient_now(office, tenant, reports[0])
    if count > 1:
        await relink(office, tenant, *[one.id for one in reports[1:]], patient=target)
    return reports, target


async def test_a_statement_that_was_moved_has_where_by_whom_and_why(
    office: Office, lab: str
) -> None:
    (report,), before = await gathered(office, lab, 1)
    other = await published(office, lab, "R-9")
    await relink(office, lab, other.id, apart=True)
    after = await patient_now(office, lab, other)

    await relink(office, lab, report.id, patient=after, reason=f"  {REASON} again ")

    shown = await office.run(patients.SHOW, tenant=lab, patient=before)
    moved = [one for one in shown["statements"] if one["moved_to"]]
    assert {one["moved_to"] for one in moved} == {f"Patient/{after}"}
    shown = await office.run(patients.SHOW, tenant=lab, patient=after)
    stated = {(one["operator"], one["reason"]) for one in shown["statements"]}
    assert (AGENT.user, f"{REASON} again") in stated


@pytest.mark.parametrize("given", [{}, {"patient": "x", "identifier": "s|v"}])
async def test_either_a_patient_or_an_identifier_is_shown(
    office: Office, lab: str, given: dict[str, str]
) -> None:
    with pytest.raises(InvalidContent, match="name either a patient or an identifier"):
        await office.run(patients.SHOW, tenant=lab, **given)


async def test_so_many_statements_are_shown_at_most(
    office: Office, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patients, "MAX_STATEMENTS", 2)
    _reports, target = await gathered(office, lab, 3)

    shown = await office.run(patients.SHOW, tenant=lab, patient=target)

    assert len(shown["statements"]) == 2


async def test_without_conflicts_none_are_listed_and_the_look_is_recorded(
    office: Office, lab: str
) -> None:
    await published(office, lab)
    before = len(await office.records())

    found = await office.run(patients.CONFLICTS, tenant=lab)

    assert (found["conflicts"], found["following"], found["versions"]) == ([], None, 1)
    assert (await office.records())[before:] == [(lab, "patient.conflicts", 200, [])]


@pytest.mark.parametrize("after", ["x", "x/", "x/y", "x/-1"])
async def test_a_place_that_no_response_had_is_refused(
    office: Office, lab: str, after: str
) -> None:
    with pytest.raises(InvalidContent, match="after: "):
        await office.run(patients.CONFLICTS, tenant=lab, after=after)


async def test_an_identifier_of_a_system_without_persons_moves_nothing(
    office: Office, lab: str
) -> None:
    report = await published(office, lab)

    with pytest.raises(NotMovable, match="urn:x is no system of"):
        await relink(office, lab, report.id, identifier="urn:x|7")

    assert await patient_now(office, lab, report) == patient_of(report)


def test_the_operations_are_those_that_clients_know() -> None:
    assert declared(patients.OPERATIONS) == {
        "patient relink": [
            "POST /tenants/{tenant}/patients/relink 200",
            "path tenant! string",
            "body reports! strings >=1 <=100",
            "body identifier string",
            "body patient string",
            "body apart boolean",
            "body reason! string 500 characters",
            "body operator string 500 characters",
            "body dry_run boolean",
        ],
        "patient show": [
            "POST /tenants/{tenant}/patients/show 200",
            "path tenant! string",
            "body patient string",
            "body identifier string",
            "body names boolean",
        ],
        "patient conflicts": [
            "GET /tenants/{tenant}/patients/conflicts 200",
            "path tenant! string",
            "query after string",
        ],
    }
