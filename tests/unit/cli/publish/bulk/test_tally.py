"""What is not published is grouped by its cause."""

from __future__ import annotations

import time
from typing import Any, get_args

from fhirpub.cli.publish.bulk.tally import Tally
from fhirpub.cli.publish.outcome import Outcome, Result


def issue(code: str, path: str, severity: str = "error") -> dict[str, Any]:
    coding = [{"code": code}]
    return {
        "severity": severity,
        "details": {"coding": coding},
        "diagnostics": f"about {code}",
        "expression": [path],
    }


def test_causes_are_counted_once_a_report_with_the_first_place() -> None:
    tally = Tally()
    for number in (1, 2):
        issues = [issue("a", f"x[{number}]"), issue("a", "y"), issue("w", "z", "warning")]
        tally.add(Outcome(file="f", line=number, result="refused", issues=issues))
    tally.add(Outcome(file="g", result="created"))
    tally.add(Outcome(file="h", result="not sent", reason="is not a regular file"))

    assert tally.grouped() == [
        {
            "code": "a",
            "message": "about a",
            "count": 2,
            "example": {"file": "f", "line": 1, "path": "x[1]"},
        },
        {
            "code": "",
            "message": "is not a regular file",
            "count": 1,
            "example": {"file": "h", "line": None, "path": None},
        },
    ]
    assert (tally.total, tally.failed, tally.exit_status) == (4, 3, 1)


def test_other_content_has_a_cause_and_the_highest_exit_status() -> None:
    tally = Tally()
    tally.add(Outcome(file="f", result="other content", id="7e10"))

    assert tally.grouped()[0]["code"] == "other-content"
    assert tally.exit_status == 3


def test_the_causes_that_are_kept_are_limited() -> None:
    tally = Tally()
    for number in range(600):
        tally.add(Outcome(file="f", result="not sent", reason=f"reason {number}"))

    assert len(tally.grouped()) == 501
    assert tally.grouped()[0]["message"] == "other causes"


def test_a_cause_that_is_kept_is_counted_on_when_there_are_too_many() -> None:
    tally = Tally()
    for number in range(600):
        tally.add(Outcome(file="f", result="not sent", reason=f"reason {number}"))
    for _ in range(200):
        tally.add(Outcome(file="f", result="not sent", reason="reason 7"))

    assert [(one["message"], one["count"]) for one in tally.grouped()[:2]] == [
        ("reason 7", 201),
        ("other causes", 100),
    ]


def test_the_rate_is_that_of_each_second_since_the_load_began() -> None:
    tally = Tally(begun=time.monotonic() - 100)
    for _ in range(400):
        tally.add(Outcome(file="f", result="created"))

    assert 3.5 < tally.rate <= 4.0


def test_a_load_that_has_just_begun_has_a_rate() -> None:
    assert Tally(begun=time.monotonic() + 60).rate == 0.0


def test_a_report_that_was_there_has_not_failed() -> None:
    tally = Tally()
    results: tuple[Result, ...] = get_args(Result)
    for result in results:
        tally.add(Outcome(file="f", result=result))

    assert (tally.total, tally.failed) == (5, 3)


def test_a_problem_that_is_fatal_is_a_cause() -> None:
    tally = Tally()

    tally.add(Outcome(file="f", result="refused", issues=[issue("a", "x", "fatal")]))

    assert [(one["code"], one["example"]["path"]) for one in tally.grouped()] == [("a", "x")]


def test_other_content_that_was_refused_has_the_causes_of_the_refusal() -> None:
    tally = Tally()

    tally.add(Outcome(file="f", result="other content", issues=[issue("duplicate", "x")]))

    assert [one["code"] for one in tally.grouped()] == ["duplicate"]


def test_the_exit_status_stays_that_of_the_worst_result() -> None:
    tally = Tally()
    results: tuple[Result, ...] = ("other content", "refused", "created")

    for result in results:
        tally.add(Outcome(file="f", result=result))

    assert tally.exit_status == 3


def test_a_problem_without_a_place_is_a_cause_without_one() -> None:
    tally = Tally()
    placeless = {"severity": "error", "details": {"coding": [{"code": "a"}]}}

    tally.add(Outcome(file="f", result="refused", issues=[placeless]))

    (cause,) = tally.grouped()
    assert (cause["code"], cause["message"], cause["example"]["path"]) == ("a", "", None)
