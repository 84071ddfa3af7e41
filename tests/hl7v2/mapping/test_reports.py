"""Orders (OBR), patients and headers become a registration for each report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub_hl7v2.problems import Unusable
from fhirpub_hl7v2.settings import Settings
from tests.hl7v2.messages import (
    SETTINGS,
    mapped,
    message,
    obr,
    obx,
    pid,
    report_of,
    resources,
    segment,
)


def test_the_number_of_the_filler_identifies_the_report() -> None:
    found = report_of({2: "P-77^HIS"})

    assert found["identifier"] == [
        {"system": "https://north-quay.example/reports", "value": "NQ-1001"}
    ]


def test_the_number_of_the_placer_is_the_order() -> None:
    (order,) = report_of({2: "P-77^HIS"})["basedOn"]

    assert order["identifier"] == {"system": "https://hospital.example/orders", "value": "P-77"}


def test_a_number_without_an_authority_has_the_system_of_the_settings() -> None:
    settings = replace(SETTINGS, report_system="https://lab.example/reports")

    found = report_of({3: "NQ-1"}, settings=settings)

    assert found["identifier"][0]["system"] == "https://lab.example/reports"


@pytest.mark.parametrize("number", ["NQ-1", "NQ-1^UNKNOWN"])
def test_a_number_without_a_known_system_is_a_problem(number: str) -> None:
    with pytest.raises(Unusable, match=r"OBR\[1\]-3: names no assigning authority"):
        report_of({3: number})


@pytest.mark.parametrize(
    ("states", "status"),
    [
        ("F", "final"),
        ("FUNX", "final"),
        ("XF", "final"),
        ("N", "final"),
        ("FC", "corrected"),
        ("fc", "corrected"),
        ("FD", "corrected"),
        ("AW", "corrected"),
        ("FP", "partial"),
        ("FI", "partial"),
        ("XI", "partial"),
        ("PR", "preliminary"),
        ("S", "preliminary"),
        ("I", "registered"),
        ("IO", "registered"),
        ("X", "cancelled"),
        ("XX", "cancelled"),
        ("", "unknown"),
    ],
)
def test_without_a_status_the_results_have_it(states: str, status: str) -> None:
    results = [obx({4: str(at), 11: state}) for at, state in enumerate(states)]

    (found,) = resources(message(pid(), obr({25: ""}), *results), "diagnosticReport")

    assert found["status"] == status


def test_each_obr_is_a_report_with_its_own_results() -> None:
    raw = message(pid(), obr(), obx(), obr({3: "NQ-2^LIS"}), obx(), obx({4: "2"}))

    first, second = mapped(raw)

    assert first.identifier["value"] == "NQ-1001"
    assert [len(report.resource["result"]) for report in (first, second)] == [1, 2]


def test_each_report_is_of_the_patient_before_it() -> None:
    raw = message(pid(), obr(), obx(), pid({3: "4^^^REG"}), obr({3: "NQ-2^LIS"}), obx())

    numbers = [
        report.body["parameter"][0]["resource"]["identifier"][0]["value"] for report in mapped(raw)
    ]

    assert numbers == ["30111222", "4"]


def test_two_reports_with_one_number_are_a_problem() -> None:
    with pytest.raises(Unusable, match="order-and-code"):
        mapped(message(pid(), obr(), obx(), obr({4: "2^Other^LN"}), obx()))


def test_the_code_of_the_examination_may_be_part_of_the_number() -> None:
    settings = replace(SETTINGS, report_identifier="order-and-code")

    both = mapped(message(pid(), obr(), obx(), obr({4: "2^Other^LN"}), obx()), settings)

    assert [each.identifier["value"] for each in both] == ["NQ-1001/58410-2", "NQ-1001/2"]


def test_the_section_is_the_category() -> None:
    (category,) = report_of({})["category"]

    system = "http://terminology.hl7.org/CodeSystem/v2-0074"
    assert category == {"coding": [{"system": system, "code": "HM"}]}


def test_times_have_the_offset_of_the_header() -> None:
    found = report_of({})

    assert found["effectiveDateTime"] == "2026-03-02T08:15:00+01:00"
    assert found["issued"] == "2026-03-02T10:40:00+01:00"


def test_the_offset_of_the_header_goes_before_the_time_zone() -> None:
    (report,) = resources(message(msh={7: "20260302104500-0330"}), "diagnosticReport")

    assert report["effectiveDateTime"] == "2026-03-02T08:15:00-03:30"


def test_comments_on_the_examination_are_the_conclusion() -> None:
    found = report_of({}, segment("NTE", {3: "All within \\T\\ fine"}))

    assert found["conclusion"] == "All within & fine"


def test_the_patient_has_identifier_name_gender_and_birth_date() -> None:
    raw = message(pid({5: "Ashdown^Juniper^May^Jr^Dr^^L~Juni^^^^^^N"}), obr(), obx())

    (patient,) = resources(raw, "patient")

    assert patient == {
        "resourceType": "Patient",
        "id": "patient",
        "identifier": [
            {
                "type": {
                    "coding": [
                        {
                            "system": "http://terminology.hl7.org/CodeSystem/v2-0203",
                            "code": "MR",
                        }
                    ]
                },
                "system": "https://registry.example/persons",
                "value": "30111222",
            }
        ],
        "name": [
            {
                "use": "official",
                "family": "Ashdown",
                "given": ["Juniper", "May"],
                "prefix": ["Dr"],
                "suffix": ["Jr"],
            },
            {"use": "nickname", "family": "Juni"},
        ],
        "gender": "female",
        "birthDate": "1987-06-05",
    }


@pytest.mark.parametrize(("field", "sent"), [(7, "1987"), (8, "U"), (8, '""')])
def test_what_the_service_refuses_of_a_patient_is_left_out(field: int, sent: str) -> None:
    (patient,) = resources(message(pid({field: sent}), obr(), obx()), "patient")

    assert {7: "birthDate", 8: "gender"}[field] not in patient


def test_the_organization_is_the_sending_facility() -> None:
    (organization,) = resources(message(msh={4: "NQ^2.16.840.1.113883.19.4^ISO"}), "organization")

    assert organization["name"] == "NQ"
    assert organization["identifier"][0]["value"] == "urn:oid:2.16.840.1.113883.19.4"


def test_the_organization_may_be_set() -> None:
    settings = replace(
        SETTINGS,
        organization_name="North Quay Laboratory",
        organization_system="https://registry.example/laboratories",
        organization_value="0042",
    )

    (organization,) = resources(message(), "organization", settings)

    assert organization["name"] == "North Quay Laboratory"
    assert organization["identifier"][0]["value"] == "0042"


def test_a_local_coding_system_may_be_set() -> None:
    settings = replace(SETTINGS, codes={"99LOC": "https://lab.example/codes"})

    found = report_of({4: "CBC^Blood count^99LOC"}, settings=settings)

    assert found["code"]["coding"][0]["system"] == "https://lab.example/codes"


@pytest.mark.parametrize("version", ["2.3", "2.3.1", "2.4", "2.5", "2.5.1"])
def test_five_versions_are_supported(version: str) -> None:
    assert len(mapped(message(msh={12: version}))) == 1


def test_unknown_segments_are_ignored() -> None:
    raw = message(segment("ZPI", {1: "x"}), pid(), obr(), obx(), segment("ZZZ", {1: "x"}))

    assert mapped(raw)[0].body == mapped(message())[0].body


def test_a_registration_cannot_correct_or_withdraw() -> None:
    raw = message(pid(), obr({25: "C"}), obx(), obx({4: "2", 11: "D"}))

    (report,) = mapped(raw)
    registration = report.registration()

    names = [entry["name"] for entry in registration["parameter"]]
    assert report.is_a_later_state
    assert names == ["patient", "organization", "diagnosticReport", "observation"]
    assert registration["parameter"][2]["resource"]["status"] == "final"
    assert len(registration["parameter"][2]["resource"]["result"]) == 1


def test_settings_have_a_time_zone_only_if_it_is_set() -> None:
    assert Settings().zone is None
