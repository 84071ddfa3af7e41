"""``fhirpub publish`` reports what was published, what was refused and why, and retries."""

from __future__ import annotations

import json
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

BODY = {
    "resourceType": "Parameters",
    "parameter": [{"name": "diagnosticReport", "resource": {"resourceType": "DiagnosticReport"}}],
}
LOCATION = "https://fhir.example.org/fhir/r4/DiagnosticReport/7e10/_history/1"
ISSUE = {"severity": "warning", "code": "invalid", "diagnostics": "odd", "expression": ["a.b"]}
OUTCOME = {"resourceType": "OperationOutcome", "issue": [ISSUE, {**ISSUE, "diagnostics": "bad"}]}
PUBLISHED = (
    201,
    {"Location": LOCATION},
    {"resourceType": "Parameters", "parameter": [{"name": "issues", "resource": OUTCOME}]},
)
LATER: tuple[int, dict[str, str], Any] = (503, {"Retry-After": "0"}, {})
CREDENTIALS = {"FHIRPUB_CLIENT_ID": "the-id", "FHIRPUB_CLIENT_SECRET": "the-secret"}


@pytest.fixture
def report(tmp_path: Path) -> str:
    (tmp_path / "report.json").write_text(json.dumps(BODY))
    (tmp_path / "a.pdf").write_bytes(b"%PDF-")
    return "report.json"


def sent(stub: Any) -> list[Any]:
    return [json.loads(body) for path, _, body in stub.requests if path.endswith("$register")]


def test_it_prints_the_id_the_version_and_the_issues(run: Any, stub: Any, report: str) -> None:
    stub.answers = [PUBLISHED]

    done = run("publish", report, "--url", stub.address, "--document", "a.pdf", **CREDENTIALS)

    assert done.returncode == 0, done.stderr
    first, *issues = done.stdout.splitlines()
    assert first == "Published DiagnosticReport 7e10 version 1"
    assert issues == [
        "  warning      invalid        a.b: odd",
        "  warning      invalid        a.b: bad",
    ]
    (body,) = sent(stub)
    (attached,) = body["parameter"][0]["resource"]["presentedForm"]
    assert attached["title"] == "a.pdf"


def test_it_asks_for_a_token_and_sends_it(run: Any, stub: Any, report: str) -> None:
    stub.answers = [PUBLISHED]

    run("publish", report, "--url", f"{stub.address}/", "--audience", "for-me", **CREDENTIALS)

    (token_path, _, form), (path, headers, _) = stub.requests
    assert token_path == "/oauth/token"
    assert b"audience=for-me" in form
    assert b"client_secret=the-secret" in form
    assert path == "/fhir/r4/DiagnosticReport/$register"
    assert headers["Authorization"] == "Bearer a.b.c"
    assert headers["Content-Type"] == "application/fhir+json"


def test_json_is_one_object_and_nothing_else(run: Any, stub: Any, report: str) -> None:
    stub.answers = [LATER, PUBLISHED]

    done = run(
        "publish", "-", "--url", stub.address, "--json", stdin=json.dumps(BODY), **CREDENTIALS
    )

    assert json.loads(done.stdout) == {
        "type": "DiagnosticReport",
        "id": "7e10",
        "version": "1",
        "location": LOCATION,
        "replayed": False,
        "different_content": False,
        "issues": OUTCOME["issue"],
    }


REPLAYED = {"Location": LOCATION, "Idempotent-Replayed": "true"}
DIFFERENT = {**REPLAYED, "Idempotent-Content": "different"}


def test_a_replay_of_the_same_content_is_no_failure(run: Any, stub: Any, report: str) -> None:
    stub.answers = [(201, REPLAYED, PUBLISHED[2])]

    done = run("publish", report, "--url", stub.address, **CREDENTIALS)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "Already published: DiagnosticReport 7e10 version 1, nothing new was stored",
        "  warning      invalid        a.b: bad",
    ]


def test_other_content_has_its_own_exit_status(run: Any, stub: Any, report: str) -> None:
    stub.answers = [(201, DIFFERENT, PUBLISHED[2])]

    done = run("publish", report, "--url", stub.address, **CREDENTIALS)

    assert done.returncode == 3
    assert done.stdout == ""
    other = "Error: DiagnosticReport 7e10 has this identifier with OTHER content"
    assert done.stderr.splitlines() == [
        f"{other}: what you sent was not stored.",
        "Use another identifier for another report; send a correction as an update (PATCH).",
    ]


def test_json_reports_other_content(run: Any, stub: Any, report: str) -> None:
    stub.answers = [(201, DIFFERENT, PUBLISHED[2])]

    done = run("publish", report, "--url", stub.address, "--json", **CREDENTIALS)

    known = json.loads(done.stdout)
    assert done.returncode == 3
    assert (known["id"], known["replayed"], known["different_content"]) == ("7e10", True, True)


def test_a_conflict_has_the_exit_status_of_other_content(run: Any, stub: Any, report: str) -> None:
    stub.answers = [(409, {}, OUTCOME)]

    done = run("publish", report, "--url", stub.address, **CREDENTIALS)

    assert done.returncode == 3
    assert done.stderr.splitlines()[1:3] == [
        "  warning      invalid        a.b: odd",
        "  warning      invalid        a.b: bad",
    ]


def test_a_command_that_is_run_again_sends_the_same(run: Any, stub: Any, report: str) -> None:
    stub.answers = [PUBLISHED, PUBLISHED]

    for _ in range(2):
        run("publish", report, "--url", stub.address, "--document", "a.pdf", **CREDENTIALS)

    first, second = sent(stub)
    assert first == second


def test_a_refusal_lists_its_issues_one_a_line(run: Any, stub: Any, report: str) -> None:
    stub.answers = [(422, {}, OUTCOME)]

    done = run("publish", report, "--url", stub.address, **CREDENTIALS)

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        f"Error: refused: 422 {HTTPStatus(422).phrase}",
        "  warning      invalid        a.b: odd",
        "  warning      invalid        a.b: bad",
    ]


@pytest.mark.parametrize("failure", [LATER, (0, {}, {})], ids=["503", "connection lost"])
def test_it_sends_the_same_body_again(run: Any, stub: Any, report: str, failure: Any) -> None:
    stub.answers = [failure, PUBLISHED]

    done = run("publish", report, "--url", stub.address, "--document", "a.pdf", **CREDENTIALS)

    first, second = sent(stub)
    assert done.returncode == 0, done.stderr
    assert first == second
    assert "sending the same request again in 0.5 s" in done.stderr


def test_wrong_credentials_are_reported_as_such(run: Any, stub: Any, report: str) -> None:
    stub.token_answer = (401, {"error": "invalid_client"})

    done = run("publish", report, "--url", stub.address, **CREDENTIALS)

    assert done.returncode == 1
    assert "no token: 401 invalid_client; are FHIRPUB_CLIENT_ID and" in done.stderr
    assert "the-secret" not in done.stderr


@pytest.mark.parametrize(
    ("words", "environment", "message"),
    [
        (["none.json"], CREDENTIALS, "none.json"),
        (["report.json"], {}, "set FHIRPUB_CLIENT_ID and FHIRPUB_CLIENT_SECRET"),
        (["report.json", "--url", "fhir.example.org"], CREDENTIALS, "must look like https://"),
        (["report.json", "--url", "http://[::1"], CREDENTIALS, "must look like https://"),
        (["report.json", "--url", "http://a..b"], CREDENTIALS, "must look like https://"),
        (["report.json", "--url", "http://a:99999"], CREDENTIALS, "must look like https://"),
        (["report.json", "--document", "none.pdf"], CREDENTIALS, "none.pdf"),
        (["report.json", "--client-secret", "x"], CREDENTIALS, "No such option"),
    ],
)
def test_wrong_usage_has_its_own_exit_status(
    run: Any, report: str, words: list[str], environment: dict[str, str], message: str
) -> None:
    done = run("publish", *words, **environment)

    assert done.returncode == 2
    assert message in done.stderr


def test_a_file_that_is_no_submission_is_named(run: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"resourceType": "Patient"}')

    done = run("publish", "bad.json", **CREDENTIALS)

    assert done.returncode == 1
    assert done.stderr.startswith("Error: bad.json: must be a Parameters resource")
