"""``fhirpub publish`` reports what was published, what was refused and why, and retries."""

from __future__ import annotations

import json
import logging
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

BODY = {
    "resourceType": "Parameters",
    "parameter": [{"name": "diagnosticReport", "resource": {"resourceType": "DiagnosticReport"}}],
}
ADDRESS = "https://fhir.example.org/fhir/r4/DiagnosticReport/7e10"
LOCATION = f"{ADDRESS}/_history/1"
ISSUE = {"severity": "warning", "code": "invalid", "diagnostics": "odd", "expression": ["a.b"]}
CODED = {**ISSUE, "diagnostics": "bad", "details": {"coding": [{"code": "element-required"}]}}
OUTCOME = {"resourceType": "OperationOutcome", "issue": [ISSUE, CODED]}
DUPLICATE = {**OUTCOME, "issue": [{**ISSUE, "code": "duplicate"}, CODED]}
PUBLISHED = (
    201,
    {"Location": LOCATION},
    {"resourceType": "Parameters", "parameter": [{"name": "issues", "resource": OUTCOME}]},
)
LATER: tuple[int, dict[str, str], Any] = (503, {"Retry-After": "0"}, {})
AFTER = {"Retry-After": "61"}
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
    assert done.stdout.splitlines() == [
        "report.json: published as DiagnosticReport 7e10 version 1",
        "  warning      a.b: odd  (invalid)",
        "  warning      a.b: bad  (element-required)",
        "",
        "file         result   id    version  address",
        f"report.json  created  7e10  1        {ADDRESS}",
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


def test_it_leaves_the_level_of_the_library_as_it_was(run: Any, stub: Any, report: str) -> None:
    stub.answers = [PUBLISHED]
    level = logging.getLogger("tornado").level

    run("publish", report, "--url", stub.address, **CREDENTIALS)

    assert len(sent(stub)) == 1
    assert logging.getLogger("tornado").level == level


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
        "entries": [],
        "issues": OUTCOME["issue"],
    }


REPLAYED = {"Location": LOCATION, "Idempotent-Replayed": "true"}
DIFFERENT = {**REPLAYED, "Idempotent-Content": "different"}


def test_a_replay_of_the_same_content_is_no_failure(run: Any, stub: Any, report: str) -> None:
    stub.answers = [(201, REPLAYED, PUBLISHED[2])]

    done = run("publish", report, "--url", stub.address, **CREDENTIALS)

    assert done.returncode == 0, done.stderr
    heading = "report.json: already published as DiagnosticReport 7e10 version 1"
    assert done.stdout.splitlines()[:3] == [
        f"{heading}, nothing new was stored",
        "  warning      a.b: bad  (element-required)",
        "",
    ]


def test_other_content_has_its_own_exit_status(run: Any, stub: Any, report: str) -> None:
    stub.answers = [(201, DIFFERENT, PUBLISHED[2])]

    done = run("publish", report, "--url", stub.address, **CREDENTIALS)

    assert done.returncode == 3
    other = "Error: report.json: DiagnosticReport 7e10 has this identifier with OTHER content"
    assert done.stderr.splitlines() == [
        f"{other}: what you sent was not stored",
        "  Use another identifier for another report; send a correction by PATCH or $revise.",
    ]
    assert "report.json  other content  7e10  1" in done.stdout


def test_json_reports_other_content(run: Any, stub: Any, report: str) -> None:
    stub.answers = [(201, DIFFERENT, PUBLISHED[2])]

    done = run("publish", report, "--url", stub.address, "--json", **CREDENTIALS)

    known = json.loads(done.stdout)
    assert done.returncode == 3
    assert (known["id"], known["replayed"], known["different_content"]) == ("7e10", True, True)


def test_a_conflict_has_the_exit_status_of_other_content(run: Any, stub: Any, report: str) -> None:
    stub.answers = [(409, {}, DUPLICATE)]

    done = run("publish", report, "--url", stub.address, **CREDENTIALS)

    assert done.returncode == 3
    assert done.stderr.splitlines()[1:3] == [
        "  warning      a.b: odd  (duplicate)",
        "  warning      a.b: bad  (element-required)",
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
        f"Error: report.json: refused: 422 {HTTPStatus(422).phrase}",
        "  warning      a.b: odd  (invalid)",
        "  warning      a.b: bad  (element-required)",
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
    stub.token_answer = (401, {}, {"error": "invalid_client"})

    done = run("publish", report, "--url", stub.address, **CREDENTIALS)

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "Error: no token: 401 invalid_client",
        "Are FHIRPUB_CLIENT_ID and FHIRPUB_CLIENT_SECRET those of this service and environment?",
    ]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((403, {}, {"error": "insufficient_scope"}), "insufficient_scope\nIs --audience right?"),
        ((429, AFTER, {"error": "slow_down"}), "429 slow_down\nWait, and check the credentials"),
        ((404, {}, {}), "is not a service of this kind: no token, but 404"),
        ((301, {"Location": "https://b.example/"}, {}), "redirects to https://b.example/ (301"),
        ((400, {}, {"error": "a\x1b[2J"}), "400 a\N{REPLACEMENT CHARACTER}[2J"),
    ],
)
def test_what_to_do_without_a_token_is_said(
    run: Any, stub: Any, report: str, answer: Any, message: str
) -> None:
    stub.token_answer = answer

    done = run("publish", report, "--url", stub.address, **CREDENTIALS)

    assert done.returncode == 1
    assert message in done.stderr


def test_a_token_that_expires_between_files_is_renewed(
    run: Any, stub: Any, report: str, tmp_path: Path
) -> None:
    (tmp_path / "second.json").write_text(json.dumps(BODY))
    stub.answers = [PUBLISHED, (401, {}, OUTCOME), PUBLISHED]

    done = run("publish", report, "second.json", "--url", stub.address, **CREDENTIALS)

    paths = [path.rpartition("/")[2] for path, _, _ in stub.requests]
    assert done.returncode == 0, done.stderr
    assert paths == ["token", "$register", "$register", "token", "$register"]


def test_a_new_token_that_is_refused_is_not_renewed(run: Any, stub: Any, report: str) -> None:
    stub.answers = [(401, {}, OUTCOME)]

    done = run("publish", report, "--url", stub.address, **CREDENTIALS)

    assert done.returncode == 1
    assert len(stub.requests) == 2
    assert "does not accept the token that it issued" in done.stderr


def test_a_file_that_cannot_be_sent_does_not_stop_the_others(
    run: Any, stub: Any, report: str, tmp_path: Path
) -> None:
    (tmp_path / "bad.json").write_text("{")
    stub.answers = [PUBLISHED]

    done = run("publish", "bad.json", report, "--url", stub.address, **CREDENTIALS)

    assert done.returncode == 1
    assert done.stderr.startswith("Error: bad.json: not sent: ")
    assert [line.split()[1:3] for line in done.stdout.splitlines()[-2:]] == [
        ["not", "sent"],
        ["created", "7e10"],
    ]


@pytest.mark.parametrize("worst", [(409, {}, DUPLICATE), (201, DIFFERENT, PUBLISHED[2])])
def test_of_several_files_the_highest_exit_status_counts(
    run: Any, stub: Any, report: str, tmp_path: Path, worst: Any
) -> None:
    (tmp_path / "bad.json").write_text("{")
    stub.answers = [worst, PUBLISHED]

    done = run("publish", "bad.json", report, report, "--url", stub.address, **CREDENTIALS)

    assert done.returncode == 3


def test_json_has_one_line_for_each_of_several_files(
    run: Any, stub: Any, report: str, tmp_path: Path
) -> None:
    (tmp_path / "second.json").write_text(json.dumps(BODY))
    stub.answers = [PUBLISHED, (422, {}, OUTCOME)]

    done = run("publish", report, "second.json", "--json", "--url", stub.address, **CREDENTIALS)

    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(item["file"], item["result"], item["id"]) for item in found] == [
        ("report.json", "created", "7e10"),
        ("second.json", "refused", ""),
    ]
    assert found[1]["issues"] == OUTCOME["issue"]


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
        (["report.json", "--cacert", "none.pem"], CREDENTIALS, "none.pem"),
        (["report.json", "--cacert", "report.json"], CREDENTIALS, "no certificate in PEM form"),
        (["report.json", "report.json", "--document", "a.pdf"], CREDENTIALS, "one FILE.json"),
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
    assert done.stderr.startswith("Error: bad.json: not sent: must be a Parameters resource")
