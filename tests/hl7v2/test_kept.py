"""What a revision cannot change stays as registered, if it is the same report all the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub_hl7v2.delivery import deliver
from fhirpub_hl7v2.kept import Stored, keep_stored
from fhirpub_hl7v2.mapping.reports import Report
from tests.canned import Canned, different, found, issue, outcome, response, stored
from tests.hl7v2.messages import SETTINGS, mapped, message, obr, obx, pid

PERSON = {"system": "https://registry.example/persons", "value": "30111222"}
LOINC = {"system": "http://loinc.org", "code": "58410-2"}


def report(obr_fields: dict[int, str] | None = None) -> Report:
    (made,) = mapped(message(pid(), obr(obr_fields), obx()))
    return made


def kept(refused: str, resource: dict[str, Any], *others: dict[str, Any]) -> Report | None:
    return keep_stored(report(), Stored(stored(**resource), [*others]), [refused])


def test_a_patient_of_the_same_identifier_is_that_of_the_service() -> None:
    subject = {"reference": "Patient/p-1", "identifier": PERSON}

    made = kept("patient", {"subject": subject})

    assert made is not None
    assert [entry["name"] for entry in made.body["parameter"]] == [
        "organization",
        "diagnosticReport",
        "observation",
    ]
    subjects = [entry["resource"].get("subject") for entry in made.body["parameter"]]
    assert subjects == [None, {"reference": "Patient/p-1"}, {"reference": "Patient/p-1"}]


@pytest.mark.parametrize(
    "subject",
    [
        {"reference": "Patient/p-1", "identifier": {**PERSON, "value": "4"}},
        {"reference": "Patient/p-1", "identifier": {**PERSON, "system": "urn:x:1"}},
        {"reference": "Patient/p-1", "identifier": {"value": "30111222"}},
        {"reference": "Patient/p-1"},
        {"identifier": PERSON},
        {},
    ],
)
def test_another_patient_is_not_kept(subject: dict[str, Any]) -> None:
    assert kept("patient", {"subject": subject}) is None


def test_the_organization_is_the_one_that_is_stored() -> None:
    known = {
        "resourceType": "Organization",
        "id": "o-1",
        "meta": {"versionId": "1"},
        "name": "Old name",
    }

    made = kept("organization", {}, known)

    assert made is not None
    assert made.body["parameter"][1]["resource"] == {
        "resourceType": "Organization",
        "id": "organization",
        "name": "Old name",
    }


def test_an_organization_that_is_stored_without_an_identifier_stays_without_one() -> None:
    settings = replace(SETTINGS, organization_name="North", organization_system="urn:x:1")
    settings = replace(settings, organization_value="7")
    (made,) = mapped(message(), settings)
    known = {"resourceType": "Organization", "id": "o-1", "name": "Old name"}

    changed = keep_stored(made, Stored(stored(), [known]), ["organization"])

    assert changed is not None
    assert changed.body["parameter"][1]["resource"] == {**known, "id": "organization"}


@pytest.mark.parametrize("count", [0, 2])
def test_no_organization_is_kept_unless_there_is_one(count: int) -> None:
    known = [{"resourceType": "Organization", "id": f"o-{at}"} for at in range(count)]

    assert kept("organization", {}, *known) is None


def test_the_category_is_the_one_that_is_stored() -> None:
    made = kept("DiagnosticReport.category", {"category": [{"text": "x"}]})

    assert made is not None
    assert made.resource["category"] == [{"text": "x"}]


@pytest.mark.parametrize(
    ("codings", "same"),
    [
        ([LOINC], True),
        ([{"code": "other"}, LOINC], True),
        ([{**LOINC, "code": "1-8"}], False),
        ([{**LOINC, "system": "urn:x:1"}], False),
        ([], False),
    ],
)
def test_a_code_is_kept_if_one_coding_is_the_same(
    codings: list[dict[str, str]], *, same: bool
) -> None:
    made = kept("DiagnosticReport.code", {"code": {"coding": codings, "text": "old"}})

    assert (made is not None) is same
    if made is not None:
        assert made.resource["code"]["text"] == "old"


@pytest.mark.parametrize(
    ("known", "same"),
    [
        ({"effectiveDateTime": "2026-03-02T08:15:00+01:00"}, True),
        ({"effectiveDateTime": "2026-03-02T07:15:00Z"}, True),
        ({"effectivePeriod": {"start": "2026-03-02T07:15:00Z"}}, True),
        ({}, True),
        ({"effectivePeriod": {"end": "2026-03-03"}}, True),
        ({"effectiveDateTime": "2026-03-02T08:15:01+01:00"}, False),
        ({"effectivePeriod": {"start": "2026-03-02T07:15:01Z"}}, False),
        ({"effectiveDateTime": "2026-03-02"}, False),
    ],
)
def test_a_time_is_kept_if_it_begins_at_the_same_moment(
    known: dict[str, Any], *, same: bool
) -> None:
    made = kept("DiagnosticReport.effective", known)

    assert (made is not None) is same
    if made is not None:
        left = {name: made.resource[name] for name in made.resource if name.startswith("eff")}
        assert left == known


def test_what_else_was_refused_is_not_kept() -> None:
    assert kept("DiagnosticReport.subject", {}) is None


@pytest.mark.parametrize(
    "refused",
    [["DiagnosticReport.category", "patient"], ["patient", "DiagnosticReport.category"]],
)
def test_one_refusal_that_stands_ends_all(refused: list[str]) -> None:
    known = Stored(stored(category=[], subject={}), [])

    assert keep_stored(report(), known, refused) is None


def test_the_report_of_the_message_is_not_changed() -> None:
    made = report()
    before = made.resource["category"]

    keep_stored(made, Stored(stored(category=[]), []), ["DiagnosticReport.category"])

    assert made.resource["category"] == before


def fixed(*places: str, **more: str) -> dict[str, Any]:
    return issue("element-not-updatable", *places, **more)


async def test_what_is_fixed_is_sent_again_as_registered() -> None:
    known = stored(category=[{"text": "old"}])
    refusal = outcome(fixed("DiagnosticReport.category"), fixed("DiagnosticReport.category"))
    service = Canned(
        different(), found(known), response(422, refusal), response(200, ETag='W/"2"')
    )

    delivery = await deliver(service.publisher, report())

    assert (delivery.result, delivery.kept) == ("revised", ("DiagnosticReport.category",))
    assert service.sent(3)["parameter"][2]["resource"]["category"] == [{"text": "old"}]
    assert service.calls[3].headers["If-Match"] == 'W/"1"'


async def test_a_warning_beside_what_is_fixed_does_not_count() -> None:
    known = stored(category=[{"text": "old"}])
    refusal = outcome(
        issue("value-unknown", "x", severity="warning"), fixed("DiagnosticReport.category")
    )
    service = Canned(
        different(), found(known), response(422, refusal), response(200, ETag='W/"2"')
    )

    delivery = await deliver(service.publisher, report())

    assert delivery.kept == ("DiagnosticReport.category",)


@pytest.mark.parametrize(
    "refusal",
    [
        response(422, outcome(fixed("DiagnosticReport.category"), issue("value-required"))),
        response(400, outcome(fixed("DiagnosticReport.category"))),
        response(422, outcome(fixed("DiagnosticReport.subject"))),
        response(422, outcome()),
    ],
)
async def test_other_refusals_stand(refusal: Any) -> None:
    service = Canned(different(), found(stored(category=[])), refusal)

    delivery = await deliver(service.publisher, report())

    assert delivery.result == "refused"
    assert len(service.calls) == 3
