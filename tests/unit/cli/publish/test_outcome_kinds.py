"""What became of a submission, by the status and the headers of its response."""

from __future__ import annotations

import pytest
from tornado.httpclient import HTTPResponse

from fhirpub.cli.publish.outcome import EXIT_STATUS, Outcome, outcome_of
from fhirpub.cli.publish.retries import Answered
from tests.canned import BASE, conflicting, erased, issue, outcome, response


def created(**headers: str) -> Outcome:
    location = f"{BASE}/fhir/r4/Patient/p-1/_history/3"
    body = {
        "parameter": [
            {"name": "report", "valueReference": {"reference": "DiagnosticReport/d-1"}},
            {"name": "issues", "resource": outcome(issue("a"), issue("b", severity="warning"))},
            {"name": "return", "resource": outcome(issue("c"))},
        ]
    }
    answered = Answered(response(201, body, Location=location, **headers), 2)
    return outcome_of(answered, "a.json", "Patient", line=7)


def test_a_registration_has_where_it_is_and_what_came_with_it() -> None:
    found = created()

    assert (found.result, found.id, found.version) == ("created", "p-1", "3")
    assert found.address == f"{BASE}/fhir/r4/Patient/p-1"
    assert found.location == f"{found.address}/_history/3"
    assert (found.file, found.line, found.type_name) == ("a.json", 7, "Patient")
    assert (found.status, found.attempts) == (201, 2)
    assert found.entries == [{"name": "report", "reference": "DiagnosticReport/d-1"}]
    assert [each["severity"] for each in found.issues] == ["error", "warning"]


@pytest.mark.parametrize(
    ("headers", "result"),
    [
        ({"Idempotent_Replayed": "true"}, "replayed"),
        ({"Idempotent_Replayed": "false"}, "created"),
        ({"Idempotent_Replayed": "true", "Idempotent_Content": "different"}, "other content"),
        ({"Idempotent_Content": "same"}, "created"),
    ],
)
def test_headers_name_a_repetition(headers: dict[str, str], result: str) -> None:
    assert created(**headers).result == result


@pytest.mark.parametrize(
    ("status", "result", "reason"),
    [
        (409, "refused", "409 Conflict"),
        (400, "refused", "400 Bad Request"),
        (200, "refused", "200 OK"),
        (
            401,
            "refused",
            (
                "401 Unauthorized; the service does not accept the token that it issued: is "
                "--audience right?"
            ),
        ),
    ],
)
def test_what_is_not_created_is_refused_with_its_issues(
    status: int, result: str, reason: str
) -> None:
    answered = Answered(response(status, outcome(issue("a", "x.y"))), 1)

    found = outcome_of(answered, "a.json", "Patient")

    assert (found.result, found.reason, found.status) == (result, reason, status)
    assert [each["expression"] for each in found.issues] == [["x.y"]]
    assert (found.id, found.version, found.location) == ("", "", "")


@pytest.mark.parametrize(
    ("answer", "result"), [(conflicting(), "other content"), (erased(), "refused")]
)
def test_of_conflicts_a_duplicate_alone_is_other_content(
    answer: HTTPResponse, result: str
) -> None:
    assert outcome_of(Answered(answer, 1), "a.json", "Patient").result == result


def test_a_duplicate_without_a_conflict_is_refused() -> None:
    duplicate = outcome({**issue("a"), "code": "duplicate"})

    assert outcome_of(Answered(response(400, duplicate), 1), "a", "Patient").result == "refused"


def test_of_several_results_other_content_counts_most() -> None:
    assert EXIT_STATUS == {
        "created": 0,
        "replayed": 0,
        "not sent": 1,
        "refused": 1,
        "other content": 3,
    }


def test_a_refusal_has_its_line_its_type_and_its_attempts() -> None:
    answered = Answered(response(400, outcome(issue("a"))), 3)

    found = outcome_of(answered, "a.ndjson", "Patient", line=7)

    assert (found.file, found.line, found.type_name, found.attempts) == (
        *("a.ndjson", 7, "Patient", 3),
    )
