"""A response is read without trust in its form."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from tornado.httpclient import HTTPRequest, HTTPResponse
from tornado.httputil import HTTPHeaders

from fhirpub.cli.publish.outcome import issues_of, outcome_of
from fhirpub.cli.publish.retries import Answered
from fhirpub.fhir.strict_json import dumps


def response(status: int, body: bytes, **headers: str) -> HTTPResponse:
    request = HTTPRequest("https://a.example/")
    return HTTPResponse(request, status, HTTPHeaders(headers), BytesIO(body))


LOCATION = "https://a.example/fhir/r4/DiagnosticReport/7/_history/1"


@pytest.mark.parametrize(
    "entries",
    [
        "x",
        [1],
        [{"valueReference": 3}],
        [{"name": "issues", "resource": "x"}],
        [{"name": "issues", "resource": {"resourceType": "OperationOutcome", "issue": "x"}}],
    ],
)
def test_a_body_of_another_form_has_no_entries_and_issues(entries: Any) -> None:
    body = dumps({"resourceType": "Parameters", "parameter": entries})

    outcome = outcome_of(Answered(response(201, body, Location=LOCATION), 1), "a.json", "X")

    assert (outcome.id, outcome.entries, outcome.issues) == ("7", [], [])


def test_fields_of_issues_that_have_another_form_are_left_out() -> None:
    odd: dict[str, Any] = {
        "severity": 3,
        "code": ["x"],
        "expression": "x",
        "details": {"coding": "x"},
        "diagnostics": {},
    }

    assert issues_of({"resourceType": "OperationOutcome", "issue": [odd]}) == [{}]


def test_another_body_has_no_issues() -> None:
    assert issues_of({"resourceType": "Bundle", "issue": [{"severity": "error"}]}) == []


def test_fields_of_issues_that_have_their_form_are_kept() -> None:
    whole: dict[str, Any] = {
        "severity": "error",
        "code": "invalid",
        "expression": ["a", "b"],
        "details": {"coding": [{"code": "x"}]},
        "diagnostics": "why",
        "extension": 7,
    }

    assert issues_of({"resourceType": "OperationOutcome", "issue": [whole]}) == [whole]


@pytest.mark.parametrize("odd", [{"expression": ["a", 1]}, {"details": {"coding": []}}])
def test_lists_with_something_else_or_nothing_are_left_out(odd: dict[str, Any]) -> None:
    assert issues_of({"resourceType": "OperationOutcome", "issue": [odd]}) == [{}]
