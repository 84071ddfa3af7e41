"""The rules of reports beyond FHIR's own, and which status may follow; without a service."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.plugin_api import Entry
from fhirpub_diagnosticreport.rules import DIAGNOSTIC_REPORT, report_rules
from tests.unit.interactions.updating import CONTEXT, TENANT

RULES = CONTEXT.rules_for(TENANT.id)
CODED = {"coding": [{"system": "urn:s", "code": "a"}]}
RIGHT: dict[str, Any] = {
    "resourceType": "DiagnosticReport",
    "category": [CODED],
    "code": {"text": "Blood count", "coding": [{"system": "urn:s", "code": "a"}]},
}
DRAFTS = ("registered", "partial", "preliminary")
FINAL = ("final", "amended", "corrected", "appended")


def places(**changes: Any) -> list[str]:
    report = {name: value for name, value in {**RIGHT, **changes}.items() if value is not None}
    found = [*report_rules(Entry(report, "at"), RULES)]
    assert {(one.severity, one.details) for one in found} <= {("error", "element-required")}
    return [one.expression for one in found]


def test_nothing_is_wrong_with_a_report_that_is_right() -> None:
    assert places() == []


@pytest.mark.parametrize(
    ("category", "expected"),
    [
        (None, ["at.category"]),
        ([CODED, {"text": "x"}], ["at.category[1]"]),
        ([{"coding": []}], ["at.category[0]"]),
        ([CODED, {"coding": [{"code": "a"}]}], ["at.category[1].coding[0].system"]),
        (
            [{"coding": [{"system": "urn:s", "code": "a"}, {}]}],
            ["at.category[0].coding[1].system", "at.category[0].coding[1].code"],
        ),
    ],
)
def test_each_category_has_codings_with_system_and_code(
    category: Any, expected: list[str]
) -> None:
    assert places(category=category) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (None, ["at.code.text"]),
        ({"coding": RIGHT["code"]["coding"]}, ["at.code.text"]),
        ({"text": " \t"}, ["at.code.text"]),
        ({"text": "x"}, []),
        (
            {"text": "x", "coding": [{"code": "a"}, {"system": "urn:s"}]},
            ["at.code.coding[1].code"],
        ),
    ],
)
def test_a_report_has_a_code_with_a_text(code: Any, expected: list[str]) -> None:
    assert places(code=code) == expected


def test_a_report_begins_as_a_draft_or_final() -> None:
    assert DIAGNOSTIC_REPORT.create_statuses == {*DRAFTS, "final", "unknown"}
    assert DIAGNOSTIC_REPORT.update_statuses == {
        *DRAFTS[1:],
        *FINAL,
        "cancelled",
        "entered-in-error",
        "unknown",
    }


@pytest.mark.parametrize("status", DRAFTS)
def test_a_draft_is_not_amended_before_it_is_final(status: str) -> None:
    following = DIAGNOSTIC_REPORT.update_statuses - {"amended", "corrected", "appended"}

    assert DIAGNOSTIC_REPORT.state_flow[status] == following


@pytest.mark.parametrize("status", FINAL)
def test_what_was_final_stays_final(status: str) -> None:
    following = {"amended", "corrected", "appended", "entered-in-error"}

    assert DIAGNOSTIC_REPORT.state_flow[status] == following


def test_what_is_over_ends_there() -> None:
    flow = DIAGNOSTIC_REPORT.state_flow

    assert flow["cancelled"] == {"entered-in-error"}
    assert flow["entered-in-error"] == frozenset()
    assert flow["unknown"] == DIAGNOSTIC_REPORT.update_statuses


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"category": None}, "is required"),
        ({"category": [{"text": "x"}]}, "must have a coding"),
        ({"category": [{"coding": [{"code": "a"}]}]}, "is required"),
        ({"code": None}, "is required and must not be blank"),
        ({"code": {"text": "x", "coding": [{}]}}, "is required"),
    ],
)
def test_a_problem_of_a_report_is_an_exception_with_its_rule(
    changes: dict[str, Any], rule: str
) -> None:
    report = {name: value for name, value in {**RIGHT, **changes}.items() if value is not None}

    found = {(one.code, one.diagnostics) for one in report_rules(Entry(report, "at"), RULES)}

    assert found == {("exception", rule)}
