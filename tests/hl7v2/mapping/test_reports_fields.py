"""The fields of a report: its number, its times, its category and what it refers to."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest

from fhirpub_hl7v2.problems import Unusable
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

START, END = "2026-03-02T08:15:00+01:00", "2026-03-02T08:30:00+01:00"
NUMBERS = {"OBR-3": "F1^LIS", "ORC-3": "F2^LIS", "OBR-2": "P1^HIS", "ORC-2": "P2^HIS"}


@pytest.mark.parametrize(
    ("left_out", "value"),
    [
        ([], "F1"),
        (["OBR-3"], "F2"),
        (["OBR-3", "ORC-3"], "P1"),
        (["OBR-3", "ORC-3", "OBR-2"], "P2"),
    ],
)
def test_the_number_of_the_filler_goes_before_that_of_the_placer_wherever_it_is(
    left_out: list[str], value: str
) -> None:
    sent = {name: "" if name in left_out else text for name, text in NUMBERS.items()}
    order = segment("ORC", {2: sent["ORC-2"], 3: sent["ORC-3"]})
    request = obr({2: sent["OBR-2"], 3: sent["OBR-3"]})

    (report,) = resources(message(pid(), order, request, obx()), "diagnosticReport")

    assert report["identifier"][0]["value"] == value


@pytest.mark.parametrize(
    ("end", "effective"),
    [
        ("202603020815", {"effectiveDateTime": START}),
        ("", {"effectiveDateTime": START}),
        ("202603020830", {"effectivePeriod": {"start": START, "end": END}}),
    ],
)
def test_the_time_of_an_examination_is_a_moment_or_a_period(
    end: str, effective: dict[str, Any]
) -> None:
    report = report_of({7: "202603020815", 8: end})

    assert {name: report[name] for name in report if name.startswith("effective")} == effective


@pytest.mark.parametrize(("sent", "code"), [("", "MB"), ("HM", "HM")])
def test_the_category_is_that_of_the_message_or_of_the_settings(sent: str, code: str) -> None:
    report = report_of({24: sent}, settings=replace(SETTINGS, category="MB"))

    assert report["category"][0]["coding"][0]["code"] == code


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("58410-2^Blood count^LN", "NQ-1001/58410-2"),
        ("^Blood count^^BC^Count^99LOC", "NQ-1001/BC"),
        ("^Blood count", "NQ-1001/Blood count"),
    ],
)
def test_a_number_with_the_code_has_that_of_the_sender_or_else_its_text(
    code: str, value: str
) -> None:
    settings = replace(SETTINGS, report_identifier="order-and-code")

    assert report_of({4: code}, settings=settings)["identifier"][0]["value"] == value


def test_a_problem_that_a_report_and_its_results_have_is_reported_once() -> None:
    with pytest.raises(Unusable) as refused:
        mapped(message(pid(), obr({7: "x"}), obx(), obx({4: "2"})))

    assert [problem.place for problem in refused.value.problems] == ["OBR[1]-7"]


def test_two_requests_without_a_number_are_no_duplicates() -> None:
    with pytest.raises(Unusable) as refused:
        mapped(message(pid(), obr({3: ""}), obx(), obr({3: ""}), obx()))

    assert [problem.place for problem in refused.value.problems] == ["OBR[1]-3", "OBR[2]-3"]


def test_results_beside_the_message_are_remarked_in_its_rendered_document() -> None:
    (report,) = mapped(message())

    body = report.with_others([{"reference": "Observation/o-1"}], [], {})

    resource = body["parameter"][2]["resource"]
    text = base64.b64decode(resource["presentedForm"][0]["data"]).decode()
    assert text.endswith("\nThe report has other results, which were sent before.\n")
    assert resource["result"][-1] == {"reference": "Observation/o-1"}
    assert b"before" not in base64.b64decode(report.resource["presentedForm"][0]["data"])


def test_a_registration_leaves_the_report_as_it_is() -> None:
    (report,) = mapped(message(pid(), obr({25: "C"}), obx({11: "D"}), obx({4: "2"})))

    body = report.registration()

    assert report.resource["status"] == "corrected"
    assert len(report.resource["result"]) == 2
    assert body["parameter"][2]["resource"]["status"] == "final"
    assert body["parameter"][2]["resource"]["result"] == [{"reference": "Observation/result-2"}]


def test_all_that_is_wrong_with_a_header_is_reported() -> None:
    with pytest.raises(Unusable) as refused:
        mapped(message(msh={9: "ADT^A01", 11: "T", 12: "2.8"}))

    assert [problem.place for problem in refused.value.problems] == [
        "MSH[1]-9",
        "MSH[1]-12",
        "MSH[1]-11",
    ]


@pytest.mark.parametrize("msh", [{9: "ORU"}, {11: ""}, {9: "ORU^R01^ORU_R01"}])
def test_a_header_may_leave_out_event_and_purpose(msh: dict[int, str]) -> None:
    assert len(mapped(message(msh=msh))) == 1


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ("A", "partial"),
        ("C", "corrected"),
        ("F", "final"),
        ("f", "final"),
        ("I", "registered"),
        ("O", "registered"),
        ("P", "preliminary"),
        ("R", "partial"),
        ("S", "registered"),
        ("X", "cancelled"),
    ],
)
def test_a_report_has_the_status_of_obr_25(sent: str, status: str) -> None:
    assert report_of({25: sent})["status"] == status


def test_a_result_without_a_state_proves_none() -> None:
    raw = message(pid(), obr({25: ""}), obx(), obx({4: "2", 11: ""}))

    assert resources(raw, "diagnosticReport")[0]["status"] == "unknown"
