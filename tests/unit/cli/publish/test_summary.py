"""What is printed of a submission, for people and for programs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fhirpub.cli.publish.outcome import Outcome, Result
from fhirpub.cli.publish.summary import code_of, line_of, print_outcome, print_summary

ISSUE = {
    "severity": "error",
    "code": "value",
    "diagnostics": "is no date",
    "expression": ["Patient.birthDate"],
}
SECOND = {"severity": "warning", "code": "informational", "diagnostics": "is unusual"}
OTHER_CONTENT = (
    "DiagnosticReport 1 has this identifier with OTHER content: what you sent was not stored"
)
ADVICE = "  Use another identifier for another report; send a correction by PATCH or $revise.\n"


def outcome(result: Result = "created", **changes: Any) -> Outcome:
    usual: dict[str, Any] = {"type_name": "DiagnosticReport", "id": "1", "version": "2"}
    if result in ("refused", "not sent"):
        usual |= {"id": "", "version": "", "reason": "400 Bad Request"}
    return Outcome(file="a.json", result=result, **usual | changes)


@pytest.mark.parametrize(
    ("result", "line"),
    [
        ("created", "published as DiagnosticReport 1 version 2"),
        (
            "replayed",
            "already published as DiagnosticReport 1 version 2, nothing new was stored",
        ),
    ],
)
def test_what_is_published_is_printed_on_standard_output(
    capsys: pytest.CaptureFixture[str], result: Result, line: str
) -> None:
    print_outcome(outcome(result), as_json=False, is_only=True)

    assert capsys.readouterr() == (f"a.json: {line}\n", "")


@pytest.mark.parametrize(
    ("result", "line"),
    [
        ("refused", "refused: 400 Bad Request\n"),
        ("not sent", "not sent: 400 Bad Request\n"),
        (
            "other content",
            f"{OTHER_CONTENT}\n{ADVICE}",
        ),
    ],
)
def test_what_failed_is_printed_on_standard_error(
    capsys: pytest.CaptureFixture[str], result: Result, line: str
) -> None:
    print_outcome(outcome(result), as_json=False, is_only=True)

    assert capsys.readouterr() == ("", f"Error: a.json: {line}")


def test_an_unknown_resource_with_other_content_is_one_of_its_type(
    capsys: pytest.CaptureFixture[str],
) -> None:
    conflict = outcome("other content", id="", issues=[ISSUE])

    print_outcome(conflict, as_json=False, is_only=True)

    lines = capsys.readouterr().err.splitlines()
    assert "a DiagnosticReport has this identifier" in lines[0]
    assert [line.strip()[:5] for line in lines[1:]] == ["error", "Use a"]


def test_issues_of_the_first_content_are_not_those_of_the_other(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_outcome(outcome("other content", issues=[ISSUE]), as_json=False, is_only=True)

    assert "is no date" not in capsys.readouterr().err


def test_of_a_repetition_the_issue_of_its_creation_is_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_outcome(outcome("replayed", issues=[ISSUE, SECOND]), as_json=False, is_only=True)

    assert capsys.readouterr().out.splitlines()[1:] == [
        "  warning      is unusual  (informational)"
    ]


def test_the_resources_that_came_with_a_report_are_counted_by_type(
    capsys: pytest.CaptureFixture[str],
) -> None:
    references = ("Observation/1", "Patient/1", "Observation/2")
    entries = [{"name": "n", "reference": reference} for reference in references]

    print_outcome(outcome(entries=entries), as_json=False, is_only=True)

    assert capsys.readouterr().out.endswith(", with 2 Observations, 1 Patient\n")


def test_a_name_of_a_file_sends_nothing_to_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_outcome(
        Outcome(file="\x1b[2J", result="not sent", reason="\x07"), as_json=False, is_only=True
    )

    assert "\x1b" not in (printed := capsys.readouterr().err)
    assert "\x07" not in printed


def test_json_of_the_only_file_has_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    print_outcome(outcome(location="l"), as_json=True, is_only=True)

    assert json.loads(capsys.readouterr().out) == {
        "type": "DiagnosticReport",
        "id": "1",
        "version": "2",
        "location": "l",
        "replayed": False,
        "different_content": False,
        "entries": [],
        "issues": [],
    }


@pytest.mark.parametrize(
    ("result", "flags"),
    [
        ("created", (False, False)),
        ("replayed", (True, False)),
        ("other content", (True, True)),
        ("refused", (False, False)),
    ],
)
def test_json_of_one_of_several_files_has_its_result(
    capsys: pytest.CaptureFixture[str], result: Result, flags: tuple[bool, bool]
) -> None:
    print_outcome(outcome(result), as_json=True, is_only=False)

    found = json.loads(capsys.readouterr().out)
    assert (found["file"], found["result"]) == ("a.json", result)
    assert (found["replayed"], found["different_content"]) == flags


def test_of_the_only_file_that_is_refused_there_is_no_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_outcome(outcome("refused"), as_json=True, is_only=True)

    assert capsys.readouterr() == ("", "Error: a.json: refused: 400 Bad Request\n")


def test_with_json_what_is_published_is_not_printed_for_people(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_outcome(outcome(), as_json=True, is_only=False)

    assert len(capsys.readouterr().out.splitlines()) == 1


def test_the_summary_has_a_line_for_each_file(capsys: pytest.CaptureFixture[str]) -> None:
    created = outcome(location="https://api.example/DiagnosticReport/1/_history/2")

    print_summary([created, outcome("refused")])

    _empty, titles, *rows = capsys.readouterr().out.splitlines()
    assert titles.split() == ["file", "result", "id", "version", "address"]
    assert [row.split() for row in rows] == [
        ["a.json", "created", "1", "2", "https://api.example/DiagnosticReport/1"],
        ["a.json", "refused", "-", "-", "-"],
    ]


def test_an_issue_is_one_line_with_its_place_and_code() -> None:
    assert line_of(ISSUE) == "error        Patient.birthDate: is no date  (value)"


def test_an_issue_with_several_places_names_each() -> None:
    assert "a, b: is no date" in line_of({**ISSUE, "expression": ["a", "b"]})


@pytest.mark.parametrize(
    ("details", "code"),
    [
        ({"coding": [{"system": "s"}, {"code": "own"}, {"code": "other"}]}, "own"),
        ({"coding": [{"code": ""}]}, "value"),
        ({"text": "t"}, "value"),
    ],
)
def test_the_code_of_the_service_comes_before_that_of_fhir(
    details: dict[str, Any], code: str
) -> None:
    assert code_of({**ISSUE, "details": details}) == code
