"""How a load ends: its summary, its exit status, and what is left."""

from __future__ import annotations

import json
from typing import Any, get_args

import click
import pytest

from fhirpub.cli.publish.bulk.ending import print_ending
from fhirpub.cli.publish.bulk.run import Ending
from fhirpub.cli.publish.bulk.tally import Tally
from fhirpub.cli.publish.outcome import Outcome, Result


def tally(*results: Result) -> Tally:
    made = Tally()
    for number, result in enumerate(results, 1):
        made.add(Outcome(file="a.ndjson", line=number, result=result, reason="400 Bad Request"))
    return made


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        (Ending(tally("created", "replayed")), 0),
        (Ending(tally()), 0),
        (Ending(tally("created", "refused")), 1),
        (Ending(tally("not sent")), 1),
        (Ending(tally("other content", "refused")), 3),
        (Ending(tally("created"), failure=click.ClickException("x")), 1),
        (Ending(tally("other content"), failure=click.ClickException("x")), 3),
        (Ending(tally("created"), interrupted=True), 130),
        (Ending(tally("refused"), interrupted=True), 130),
    ],
)
def test_the_status_is_that_of_the_worst_result(ending: Ending, status: int) -> None:
    assert print_ending(ending, as_json=False) == status


def printed(capsys: pytest.CaptureFixture[str], ending: Ending) -> tuple[str, str]:
    print_ending(ending, as_json=False)
    found = capsys.readouterr()
    return found.out, found.err


def test_results_are_counted_in_one_order(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = printed(capsys, Ending(tally("refused", "created", "created"), skipped=1_234))

    first, second, *causes = out.splitlines()
    assert first.startswith("3 reports in ")
    assert first.endswith(": 2 created, 1 refused")
    assert second == "1,234 left out: the report says that they are published"
    assert causes[1] == "Not published:"
    assert "a.ndjson:1" in causes[3]
    assert err == ""


def test_one_report_is_named_in_the_singular(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = printed(capsys, Ending(tally("created")))

    assert out.startswith("1 report in ")


def test_each_result_has_its_number(capsys: pytest.CaptureFixture[str]) -> None:
    results: tuple[Result, ...] = get_args(Result)

    out, _ = printed(capsys, Ending(tally(*results)))

    first = out.splitlines()[0]
    assert first.endswith(": 1 created, 1 replayed, 1 other content, 1 refused, 1 not sent")


def test_a_load_without_a_problem_lists_no_causes(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = printed(capsys, Ending(tally("created")))

    assert len(out.splitlines()) == 1


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"interrupted": True, "left": 1_500},
            (
                "Interrupted: about 1,500 reports are left. Run the same command again: nothing "
                "is published twice.\n"
            ),
        ),
        (
            {"failure": click.ClickException("no token")},
            (
                "Error: no token\nStopped: some reports are left. Run the same command again: "
                "nothing is published twice.\n"
            ),
        ),
        ({"left": 0, "interrupted": True}, "Interrupted: about 0 reports are left."),
        ({"left": 1, "interrupted": True}, "Interrupted: about 1 report is left."),
        (
            {"left": 2, "interrupted": True, "has_report": True},
            (
                "Interrupted: about 2 reports are left. Run the same command again with --resume: "
                "nothing is published twice.\n"
            ),
        ),
        ({"left": 5}, ""),
    ],
)
def test_what_is_left_is_named_after_a_failure_or_a_signal(
    capsys: pytest.CaptureFixture[str], changes: dict[str, Any], text: str
) -> None:
    _, err = printed(capsys, Ending(tally("created"), **changes))

    assert err.startswith(text)
    assert bool(err) is bool(text)


def test_programs_get_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    ending = Ending(
        tally("created", "other content"), 2, 7, click.ClickException("no token"), interrupted=True
    )

    assert print_ending(ending, as_json=True) == 130

    record = json.loads(capsys.readouterr().out)
    assert record.pop("seconds") >= 0
    assert record.pop("per_second") > 0
    assert [cause.pop("count") for cause in record["causes"]] == [1]
    assert record.pop("causes")
    assert record == {
        "created": 1,
        "replayed": 0,
        "other_content": 1,
        "refused": 0,
        "not_sent": 0,
        "skipped": 2,
        "left": 7,
        "interrupted": True,
        "failure": "no token",
    }


def test_a_cause_has_its_number_and_its_first_place(capsys: pytest.CaptureFixture[str]) -> None:
    made = Tally()
    for line in (2, 3):
        made.add(Outcome(file="a.ndjson", line=line, result="refused", reason="400 Bad Request"))
    made.add(Outcome(file="b.json", result="not sent", reason="is a link"))

    out, _ = printed(capsys, Ending(made))

    titles, *rows = [line.split() for line in out.splitlines()[3:]]
    assert titles == ["count", "code", "message", "first", "in", "at"]
    assert rows == [
        ["2", "-", "400", "Bad", "Request", "a.ndjson:2", "-"],
        ["1", "-", "is", "a", "link", "b.json", "-"],
    ]


def test_what_was_left_out_is_named_after_an_interruption_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, _ = printed(capsys, Ending(tally("created"), skipped=2, interrupted=True))

    assert out.splitlines()[1] == "2 left out: the report says that they are published"


def test_programs_get_null_for_what_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    print_ending(Ending(tally("created")), as_json=True)

    record = json.loads(capsys.readouterr().out)
    assert (record["left"], record["failure"], record["interrupted"]) == (None, None, False)
