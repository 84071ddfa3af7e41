"""Reports of messages: what a registration has of them, and what a revision adds."""

from __future__ import annotations

import base64
import copy
import hashlib
from dataclasses import replace
from typing import Any

import pytest

from fhirpub_hl7v2.mapping.documents import add_remark
from fhirpub_hl7v2.mapping.reports import Report
from fhirpub_hl7v2.problems import Code, Unsupported, Unusable
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

REFERENCE = {"reference": "Observation/other"}


def made(*segments: str) -> Report:
    (report,) = mapped(message(*segments))
    return report


def parts(body: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [entry["resource"] for entry in body["parameter"] if entry["name"] == name]


# Registrations


@pytest.mark.parametrize(
    ("status", "registered"),
    [("C", "final"), ("X", "unknown"), ("F", "final"), ("P", "preliminary"), ("A", "partial")],
)
def test_a_registration_has_a_status_that_it_may_have(status: str, registered: str) -> None:
    body = made(pid(), obr({25: status}), obx()).registration()

    assert parts(body, "diagnosticReport")[0]["status"] == registered


@pytest.mark.parametrize(
    ("report", "result", "is_later"),
    [
        ("F", "F", False),
        ("P", "P", False),
        ("C", "F", True),
        ("X", "F", True),
        ("F", "D", True),
        ("F", "W", True),
        ("F", "C", False),
    ],
)
def test_what_corrects_cancels_or_withdraws_is_a_later_state(
    report: str, result: str, *, is_later: bool
) -> None:
    assert made(pid(), obr({25: report}), obx({11: result})).is_a_later_state is is_later


def test_a_registration_leaves_the_report_as_it_is() -> None:
    report = made(pid(), obr({25: "C"}), obx(), obx({4: "2", 11: "D"}))
    before = copy.deepcopy(report.body)

    report.registration()

    assert report.body == before


def test_a_registration_refers_to_no_result_that_was_withdrawn() -> None:
    body = made(pid(), obr(), obx({11: "D"}), obx({4: "2"})).registration()

    (kept,) = parts(body, "observation")
    assert parts(body, "diagnosticReport")[0]["result"] == [
        {"reference": f"Observation/{kept['id']}"}
    ]
    assert kept["identifier"][0]["value"].endswith("/2")


def test_a_registration_without_results_has_no_list_of_them() -> None:
    body = made(pid(), obr(), obx({11: "D"})).registration()

    assert "result" not in parts(body, "diagnosticReport")[0]
    assert parts(body, "observation") == []


def test_a_registration_keeps_its_specimens() -> None:
    body = made(pid(), obr(), obx(), segment("SPM", {4: "BLD"})).registration()

    assert len(parts(body, "specimen")) == 1


# Revisions


def test_results_and_specimens_that_are_not_repeated_stand_behind_those_that_are() -> None:
    report = made(pid(), obr(), obx(), segment("SPM", {4: "BLD"}))

    body = report.with_others([REFERENCE], [{"reference": "Specimen/other"}], {})

    (resource,) = parts(body, "diagnosticReport")
    assert resource["result"] == [{"reference": "Observation/result-1"}, REFERENCE]
    assert resource["specimen"] == [
        {"reference": "Specimen/specimen-1"},
        {"reference": "Specimen/other"},
    ]


def test_a_report_without_anything_of_its_own_takes_what_is_stored() -> None:
    report = made(pid(), obr())

    (resource,) = parts(
        report.with_others([REFERENCE], [{"reference": "Specimen/s"}], {}), "diagnosticReport"
    )

    assert resource["result"] == [REFERENCE]
    assert resource["specimen"] == [{"reference": "Specimen/s"}]


def test_a_revision_leaves_the_report_as_it_is() -> None:
    report = made(pid(), obr(), obx({5: "", 6: ""}))
    before = copy.deepcopy(report.body)

    report.with_others([REFERENCE], [REFERENCE], {"NQ-1001/718-7": {"valueString": "x"}})
    report.with_stored_patient("Patient/p1")

    assert report.body == before


def test_only_a_result_without_a_value_takes_the_one_that_is_stored() -> None:
    report = made(
        pid(),
        obr(),
        obx({5: "", 6: ""}),
        obx({3: "777-3^Platelets^LN", 5: "248"}),
        obx({3: "1^Other^L", 5: "", 6: "", 11: "N"}),
        obx({3: "2^New^L", 5: "", 6: ""}),
    )
    numbers = ("718-7", "777-3", "1")
    known = {f"NQ-1001/{number}": {"valueString": number} for number in numbers}

    body = report.with_others([], [], known)

    assert [one.get("valueString") for one in parts(body, "observation")] == [
        "718-7",
        *[None] * 3,
    ]


def test_without_other_results_the_document_has_no_remark() -> None:
    report = made(pid(), obr(), obx())

    body = report.with_others([], [{"reference": "Specimen/s"}], {})

    assert parts(body, "diagnosticReport") == [
        {**report.resource, "specimen": [{"reference": "Specimen/s"}]}
    ]


def test_a_document_that_was_sent_gets_no_remark() -> None:
    report = made(pid(), obr(), obx({2: "ED", 5: "^AP^PDF^Base64^QUJD"}))

    body = report.with_others([REFERENCE], [], {})

    (resource,) = parts(body, "diagnosticReport")
    assert resource["presentedForm"] == report.resource["presentedForm"]


def test_a_remark_leaves_the_title_and_gives_a_hash_of_the_whole() -> None:
    (document,) = report_of({})["presentedForm"]

    remarked = add_remark(document)

    text = base64.b64decode(remarked["data"])
    assert text.startswith(base64.b64decode(document["data"]))
    assert text.endswith(b"The report has other results, which were sent before.\n")
    assert remarked["hash"] == hashlib.sha256(text).hexdigest()
    assert remarked["title"] == document["title"] == "Blood count"
    assert remarked["contentType"] == document["contentType"]


# The patient


@pytest.mark.parametrize(
    ("identifier", "is_theirs"),
    [
        ({"system": "https://registry.example/persons", "value": "30111222"}, True),
        ({"system": "https://registry.example/persons", "value": "4"}, False),
        ({"system": "https://hospital.example/orders", "value": "30111222"}, False),
        ({"value": "30111222"}, False),
        ({}, False),
    ],
)
def test_a_patient_is_the_same_by_system_and_value(
    identifier: dict[str, str], *, is_theirs: bool
) -> None:
    assert made(pid(), obr(), obx()).is_of_patient(identifier) is is_theirs


def test_each_identifier_of_a_patient_counts() -> None:
    report = made(pid({3: "1^^^REG~2^^^HIS"}), obr(), obx())

    assert report.is_of_patient({"system": "https://hospital.example/orders", "value": "2"})


def test_a_stored_patient_takes_the_place_of_the_one_that_was_sent() -> None:
    report = made(pid(), obr(), obx(), segment("SPM", {4: "BLD"}))

    changed = report.with_stored_patient("Patient/p1")

    names = [entry["name"] for entry in changed.body["parameter"]]
    assert names == ["organization", "diagnosticReport", "observation", "specimen"]
    subjects = [entry["resource"].get("subject") for entry in changed.body["parameter"]]
    assert subjects == [None, *[{"reference": "Patient/p1"}] * 3]


# Headers


@pytest.mark.parametrize(
    ("msh", "code", "problem"),
    [
        ({9: "ADT^A01"}, "200", "MSH[1]-9: must be ORU^R01: other messages are not supported"),
        ({9: "ORU^R30"}, "201", "MSH[1]-9: must be ORU^R01: other events are not supported"),
        ({11: "T"}, "202", "MSH[1]-11: must be P: see [message] processing_ids"),
        ({12: "2.8"}, "203", "MSH[1]-12: must be one of 2.3, 2.3.1, 2.4, 2.5, 2.5.1"),
        ({12: ""}, "203", "MSH[1]-12: must be one of 2.3, 2.3.1, 2.4, 2.5, 2.5.1"),
    ],
)
def test_a_header_that_is_not_supported_is_named_with_its_field(
    msh: dict[int, str], code: str, problem: str
) -> None:
    with pytest.raises(Unsupported) as refused:
        mapped(message(msh=msh))

    assert [(str(one), one.code) for one in refused.value.problems] == [(problem, code)]


def test_everything_that_a_header_must_not_have_is_named_at_once() -> None:
    with pytest.raises(Unsupported) as refused:
        mapped(message(msh={9: "ADT^A01", 11: "T", 12: "2.8"}))

    codes = [problem.code for problem in refused.value.problems]
    assert codes == [Code.TYPE, Code.VERSION, Code.PROCESSING_ID]


def test_the_settings_allow_the_purposes_of_messages() -> None:
    settings = replace(SETTINGS, processing_ids=("P", "T"))

    assert len(mapped(message(msh={11: "T"}), settings)) == 1
    with pytest.raises(Unsupported, match="must be P or T: see"):
        mapped(message(msh={11: "D"}), settings)


@pytest.mark.parametrize("msh", [{9: "ORU"}, {11: ""}, {9: "ORU^R01^ORU_R01"}])
def test_a_header_may_leave_out_its_event_and_its_purpose(msh: dict[int, str]) -> None:
    assert len(mapped(message(msh=msh))) == 1


# Reports


def test_a_state_of_a_report_that_is_unknown_is_named_with_those_that_are_not() -> None:
    with pytest.raises(Unusable) as refused:
        report_of({25: "Q"})

    assert str(refused.value) == "OBR[1]-25: must be one of A, C, F, I, O, P, R, S, X"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({3: "", 2: ""}, "OBR[1]-3: is required: the number of the report (or OBR-2)"),
        ({4: ""}, "OBR[1]-4: is required: the code of the examination"),
        ({7: "morning"}, "OBR[1]-7: must be a time such as 20260302081500+0100"),
        ({8: "morning"}, "OBR[1]-8: must be a time such as 20260302081500+0100"),
        ({22: "morning"}, "OBR[1]-22: must be a time such as 20260302081500+0100"),
    ],
)
def test_what_a_report_lacks_is_named_with_its_field(fields: dict[int, str], problem: str) -> None:
    with pytest.raises(Unusable) as refused:
        mapped(message(pid(), obr(fields), obx({14: "202603020815"})))

    assert problem in [str(each) for each in refused.value.problems]


def test_a_problem_of_all_results_of_an_examination_is_named_once() -> None:
    with pytest.raises(Unusable) as refused:
        mapped(message(pid(), obr({7: "morning"}), obx(), obx({4: "2"})))

    assert len(refused.value.problems) == 1


def test_the_number_of_a_placer_is_of_its_own_authority() -> None:
    raw = message(pid(), segment("ORC", {2: "P-7^HIS", 3: ""}), obr({3: "", 2: ""}), obx())

    (report,) = resources(raw, "diagnosticReport")

    assert report["identifier"] == [{"system": "https://hospital.example/orders", "value": "P-7"}]


def test_an_examination_that_only_ends_has_no_time() -> None:
    found = report_of({7: "", 8: "20260302093000"})

    assert "effectiveDateTime" not in found
    assert "effectivePeriod" not in found


def test_a_body_is_parameters_with_a_resource_of_each_type() -> None:
    body = made(pid(), obr(), obx(), segment("SPM", {4: "BLD"})).body

    assert body["resourceType"] == "Parameters"
    assert [entry["resource"]["resourceType"] for entry in body["parameter"]] == [
        *("Patient", "Organization", "DiagnosticReport", "Observation", "Specimen")
    ]


def test_reports_without_numbers_are_not_taken_for_one_another() -> None:
    none = {3: "", 2: ""}

    with pytest.raises(Unusable) as refused:
        mapped(message(pid(), obr(none), obx(), obr(none), obx()))

    assert {(one.place, one.code) for one in refused.value.problems} == {
        ("OBR[1]-3", Code.REQUIRED),
        ("OBR[2]-3", Code.REQUIRED),
    }
