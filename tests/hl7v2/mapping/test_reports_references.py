"""What refers to what in a registration, and the specimens of a report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub_hl7v2.problems import Code, Unusable
from tests.hl7v2.messages import (
    SETTINGS,
    mapped,
    message,
    obr,
    observation,
    obx,
    pid,
    report_of,
    resources,
    segment,
)

BLOOD = {2: "^S-9&LIS", 4: "BLD"}


def specimen(fields: dict[int, str], **settings: str) -> dict[str, Any]:
    raw = message(pid(), obr(), obx(), segment("SPM", {**BLOOD, **fields}))
    (made,) = resources(raw, "specimen", replace(SETTINGS, **settings))  # type: ignore[arg-type]
    return made


def test_all_parts_are_of_the_patient_of_the_message() -> None:
    raw = message(pid(), obr(), obx(), segment("SPM", BLOOD))

    for name in ("diagnosticReport", "observation", "specimen"):
        (made,) = resources(raw, name)
        assert made["subject"] == {"reference": "Patient/patient"}


def test_a_report_refers_to_its_performer_results_and_specimens() -> None:
    raw = message(pid(), obr(), obx(), obx({4: "2"}), segment("SPM", BLOOD), segment("SPM", BLOOD))

    (report,) = resources(raw, "diagnosticReport")

    assert report["performer"] == [{"reference": "Organization/organization"}]
    assert report["result"] == [
        {"reference": "Observation/result-1"},
        {"reference": "Observation/result-2"},
    ]
    assert report["specimen"] == [
        {"reference": "Specimen/specimen-1"},
        {"reference": "Specimen/specimen-2"},
    ]


def test_results_without_a_specimen_name_none() -> None:
    assert "specimen" not in observation({})


def test_a_specimen_without_a_number_has_no_identifier() -> None:
    assert "identifier" not in specimen({2: ""})


def test_a_specimen_has_its_period_receipt_and_comments() -> None:
    raw = message(
        pid(),
        obr(),
        obx(),
        segment("SPM", {**BLOOD, 17: "202603020815^202603020820", 18: "202603020900"}),
        segment("NTE", {3: "haemolysed"}),
    )

    (made,) = resources(raw, "specimen")

    assert made["collection"] == {
        "collectedPeriod": {
            "start": "2026-03-02T08:15:00+01:00",
            "end": "2026-03-02T08:20:00+01:00",
        }
    }
    assert made["receivedTime"] == "2026-03-02T09:00:00+01:00"
    assert made["note"] == [{"text": "haemolysed"}]


def test_a_wrong_time_of_a_specimen_is_named() -> None:
    with pytest.raises(Unusable, match=r"SPM\[1\]-17: must be a time"):
        specimen({17: "morning"})
    with pytest.raises(Unusable, match=r"SPM\[1\]-18: must be a time"):
        specimen({18: "morning"})


def test_a_specimen_of_obr_15_has_the_times_of_the_examination() -> None:
    fields = {15: "BLD&Whole blood&HL70070", 8: "20260302081600", 14: "20260302090000"}

    (made,) = resources(message(pid(), obr(fields), obx(), msh={12: "2.3"}), "specimen")

    assert made["id"] == "specimen-1"
    assert made["collection"]["collectedPeriod"]["end"] == "2026-03-02T08:16:00+01:00"
    assert made["receivedTime"] == "2026-03-02T09:00:00+01:00"


def test_a_segment_of_a_specimen_goes_before_obr_15() -> None:
    raw = message(pid(), obr({15: "SER"}), obx(), segment("SPM", BLOOD))

    assert len(resources(raw, "specimen")) == 1
    assert resources(raw, "specimen")[0]["type"]["coding"][0]["code"] == "BLD"


@pytest.mark.parametrize(
    ("fields", "order", "value"),
    [
        ({2: "P-1^HIS"}, {2: "P-2^HIS"}, "P-1"),
        ({2: ""}, {2: "P-2^HIS"}, "P-2"),
    ],
)
def test_the_order_is_that_of_obr_before_orc(
    fields: dict[int, str], order: dict[int, str], value: str
) -> None:
    raw = message(pid(), segment("ORC", order), obr(fields), obx())

    (report,) = resources(raw, "diagnosticReport")

    assert report["basedOn"][0]["identifier"]["value"] == value


def test_an_order_of_an_unknown_authority_has_no_system() -> None:
    assert report_of({2: "P-1^OTHER"})["basedOn"] == [
        {"type": "ServiceRequest", "identifier": {"value": "P-1"}}
    ]


def test_an_order_segment_belongs_to_the_next_examination_alone() -> None:
    raw = message(
        pid(),
        segment("ORC", {2: "P-1^HIS"}),
        obr(),
        obx(),
        obr({3: "NQ-2^LIS"}),
        obx(),
    )

    first, second = mapped(raw)

    assert "basedOn" in first.resource
    assert "basedOn" not in second.resource


def test_comments_stand_behind_what_they_comment_on() -> None:
    raw = message(
        pid(),
        segment("NTE", {3: "of the patient"}),
        obr(),
        segment("NTE", {3: "of the examination"}),
        obx(),
        segment("NTE", {3: "of the result"}),
        segment("ORC", {2: "P-1^HIS"}),
        segment("NTE", {3: "of the order"}),
    )

    (report,) = resources(raw, "diagnosticReport")
    (result,) = resources(raw, "observation")

    assert report["conclusion"] == "of the examination"
    assert result["note"] == [{"text": "of the result"}]


def test_an_issue_without_a_time_of_day_is_left_out() -> None:
    assert "issued" not in report_of({22: "20260302"})


def test_two_reports_with_one_number_are_named_both() -> None:
    with pytest.raises(Unusable) as caught:
        mapped(message(pid(), obr(), obx(), obr({4: "2^Other^LN"}), obx()))

    found = [(problem.place, problem.code) for problem in caught.value.problems]
    assert found == [("OBR[1]-3", Code.DUPLICATE), ("OBR[2]-3", Code.DUPLICATE)]


@pytest.mark.parametrize(
    ("fields", "place"),
    [({4: ""}, "OBR[1]-4"), ({3: "", 2: ""}, "OBR[1]-3"), ({3: ""}, "OBR[1]-3")],
)
def test_a_report_needs_a_number_and_a_code(fields: dict[int, str], place: str) -> None:
    with pytest.raises(Unusable) as caught:
        report_of(fields)

    assert [(each.place, each.code) for each in caught.value.problems] == [(place, Code.REQUIRED)]


def test_a_header_without_a_name_needs_one_of_the_settings() -> None:
    with pytest.raises(Unusable, match=r"MSH\[1\]-4: is empty: set \[organization\] name"):
        mapped(message(msh={3: "", 4: ""}))


def test_a_default_system_is_for_numbers_without_an_authority() -> None:
    settings = replace(SETTINGS, patient_system="https://hospital.example/persons")

    (patient,) = resources(message(pid({3: "4"}), obr(), obx()), "patient", settings)

    assert patient["identifier"] == [{"system": "https://hospital.example/persons", "value": "4"}]


@pytest.mark.parametrize(
    ("sent", "way_out"),
    [
        ("4^^^OTHER", r'set its system in \[authorities\], or "\*" for all'),
        ("4", r"set \[patient\]"),
    ],
)
def test_an_unknown_authority_is_named_with_a_way_out(sent: str, way_out: str) -> None:
    with pytest.raises(Unusable, match=way_out):
        mapped(message(pid({3: sent}), obr(), obx()))


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        ("1987-06-05", "1987-06-05"),
        ("19870605103000", "1987-06-05"),
        ("198706", None),
    ],
)
def test_a_birth_date_is_the_day_of_a_time(sent: str, found: str | None) -> None:
    (patient,) = resources(message(pid({7: sent}), obr(), obx()), "patient")

    assert patient.get("birthDate") == found
