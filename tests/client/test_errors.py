"""What an exception of the client shows of a response that is an error."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from fhirpub_client.errors import Problem, Refused, problems_in


def outcome(*issues: dict[str, Any]) -> dict[str, Any]:
    return {"resourceType": "OperationOutcome", "issue": list(issues)}


ISSUE = {
    "severity": "warning",
    "code": "required",
    "details": {"coding": [{"code": "value-required"}, {"code": "other"}]},
    "diagnostics": "A status is required.",
    "expression": ["DiagnosticReport.status", "DiagnosticReport.code"],
}


def test_an_issue_has_its_code_text_places_and_severity() -> None:
    assert problems_in(outcome(ISSUE)) == (
        Problem(
            "value-required",
            "A status is required.",
            ("DiagnosticReport.status", "DiagnosticReport.code"),
            "warning",
        ),
    )


@pytest.mark.parametrize(
    "issue", [{}, {"details": {}}, {"details": {"coding": []}}, {"details": {"coding": [{}]}}]
)
def test_an_issue_without_anything_is_an_error_without_a_code(issue: dict[str, Any]) -> None:
    assert problems_in(outcome(issue)) == (Problem("", "", (), "error"),)


def test_an_error_of_oauth_is_a_problem() -> None:
    body = {"error": "invalid_scope", "error_description": "The scope is not granted."}

    assert problems_in(body) == (
        Problem("invalid_scope", "The scope is not granted.", (), "error"),
    )


def test_an_error_of_oauth_without_a_description_is_its_code() -> None:
    assert problems_in({"error": "invalid_client"})[0].text == "invalid_client"


def test_a_body_without_issues_has_no_problems() -> None:
    assert problems_in({}) == ()


def test_the_text_of_an_error_is_its_status_and_first_problem() -> None:
    refused = Refused(httpx.Response(422, json=outcome(ISSUE)))

    assert str(refused) == "422: A status is required."
    assert (refused.status, len(refused.problems)) == (422, 1)


@pytest.mark.parametrize(("issues", "more"), [(2, " (and 1 more)"), (3, " (and 2 more)")])
def test_the_text_of_an_error_counts_the_other_problems(issues: int, more: str) -> None:
    refused = Refused(httpx.Response(422, json=outcome(*[ISSUE] * issues)))

    assert str(refused) == f"422: A status is required.{more}"


def test_an_error_names_its_request() -> None:
    headers = {"X-Request-Id": "r-7"}

    assert Refused(httpx.Response(500, headers=headers)).request_id == "r-7"
    assert Refused(httpx.Response(500)).request_id == ""


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b'"text"', b"null"])
def test_an_error_of_a_proxy_has_the_reason_of_its_status(body: bytes) -> None:
    refused = Refused(httpx.Response(403, content=body))

    assert str(refused) == "403: Forbidden"
    assert refused.problems == ()
