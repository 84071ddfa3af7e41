"""Bodies of updates of a report with two documents, and the issues they are refused with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.fhir.document import marker
from fhirpub.interactions.patch_formats import Fields, Form, fields_of
from fhirpub.plugin_host.loader import load
from fhirpub.problems import OperationProblem, Problem

REPORT = load(["diagnosticreport"])["DiagnosticReport"]
CHOICE = replace(REPORT, updatable=frozenset({"status", "value[x]", "code"}))
KEPT, OTHER = marker("a" * 64, 3), marker("b" * 64, 4)
FIELDS = "conclusion, presentedForm, status"
NOTHING_THERE = "there is nothing at its path, or not what it takes"
TEST_FAILED = "the test failed; what a document holds cannot be tested"
HASH_STAYS = "belongs to data that stay as they are: replace the whole attachment"
DATA_STAY = "the data of a document cannot be moved or copied by themselves"


def before() -> dict[str, Any]:
    return {
        "resourceType": "DiagnosticReport",
        "status": "final",
        "_status": {"id": "s"},
        "conclusion": "Old",
        "code": {"text": "Blood count"},
        "presentedForm": [
            {"data": KEPT, "hash": "h1", "title": "One"},
            {"data": OTHER, "hash": "h2", "title": "Two"},
        ],
    }


def fields(form: Form, content: Any, *, most: int = 10**6, of: Any = REPORT) -> Fields:
    return fields_of(form, content, before(), of, most=most)


def partial(**named: Any) -> Fields:
    return fields("fhir", {"resourceType": "DiagnosticReport", **named})


def merge(**named: Any) -> Fields:
    return fields("merge-patch", named)


def patch(*operations: Any, most: int = 10**6) -> Fields:
    return fields("json-patch", list(operations), most=most)


def put(path: str, value: Any, op: str = "replace") -> dict[str, Any]:
    return {"op": op, "path": path, "value": value}


def issues(refusal: pytest.ExceptionInfo[Any]) -> list[tuple[str, Problem, str]]:
    return [(issue.expression, issue.details, issue.diagnostics) for issue in refusal.value.issues]


def not_updatable(name: str, at: str = "") -> tuple[str, Problem, str]:
    return (
        f"DiagnosticReport.{at or name}",
        OperationProblem.ELEMENT_NOT_UPDATABLE,
        f"{name} cannot be updated; fields that can: {FIELDS}",
    )


def operation_failed(rule: str) -> tuple[str, Problem, str]:
    return "DiagnosticReport", OperationProblem.PATCH_FAILED, rule


def divided(rule: str, at: str = "") -> tuple[str, Problem, str]:
    return f"DiagnosticReport{at}", OperationProblem.ATTACHMENT_DIVIDED, rule
