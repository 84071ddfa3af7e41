"""The line of a request: its form, its time, and what is left out of it."""

from __future__ import annotations

import json

import pytest

from fhirpub.runtime.request_lines import Fact, Level, RequestLines, plain
from fhirpub.testing.clock import HandClock

CLOCK = HandClock(1_795_000_000_007)


class Log:
    """Keeps the lines that are written."""

    def __init__(self, form: str = "json", *, least: int = 20, admits: bool = True) -> None:
        self.counted: list[tuple[str, str, str]] = []
        self.lines: list[str] = []
        self._admits = admits
        self.clock = HandClock(CLOCK.now)
        self.writer = RequestLines(
            lambda render: self.lines.append(render()),
            form=form,
            least=least,
            admits=self._count,
            clock=self.clock,
        )

    def _count(self, *kind: str) -> bool:
        self.counted.append((kind[0], kind[1], kind[2]))
        return self._admits


def test_a_line_of_json_has_its_time_level_event_and_facts() -> None:
    log = Log()

    log.writer.write("info", "request", {"client": "c-1", "status": 200}, kind="x")

    (line,) = log.lines
    assert line == (
        '{"timestamp":"2026-11-18T11:06:40.007Z","level":"info","event":"request",'
        '"client":"c-1","status":200}\n'
    )


def test_a_line_of_text_is_in_columns() -> None:
    log = Log("text")
    facts: dict[str, Fact] = {
        "client": "c-1",
        "ms": 1.5,
        "why": "a b",
        "none": "",
        "ids": ["a", "b"],
    }

    log.writer.write("warning", "request", facts, kind="x")

    (line,) = log.lines
    assert line == (
        "2026-11-18T11:06:40.007Z [warning  ] request                  "
        "client=c-1 ms=1.5 why='a b' none='' ids=a,b\n"
    )


def test_a_traceback_stands_below_its_line() -> None:
    log = Log("text")

    log.writer.write("error", "failed", {"client": "c", "traceback": ["one", "two"]}, kind="x")

    assert log.lines[0].endswith("client=c\n    one\n    two\n")


def test_the_second_of_a_line_is_its_own() -> None:
    log = Log()
    for seconds in (0.0, 0.002, 1.0):
        log.clock.forward(seconds=seconds)
        log.writer.write("info", "request", {"client": "c"}, kind="x")

    times = [json.loads(line)["timestamp"] for line in log.lines]
    assert times == [
        "2026-11-18T11:06:40.007Z",
        "2026-11-18T11:06:40.009Z",
        "2026-11-18T11:06:41.009Z",
    ]


def test_the_second_of_a_line_is_its_own_after_the_clock_was_set_back_too() -> None:
    log = Log()
    for now in (CLOCK.now, CLOCK.now - 1_000):
        log.clock.now = now
        log.writer.write("info", "request", {"client": "c"}, kind="x")

    times = [json.loads(line)["timestamp"] for line in log.lines]
    assert times == ["2026-11-18T11:06:40.007Z", "2026-11-18T11:06:39.007Z"]


@pytest.mark.parametrize(
    ("level", "least", "written"),
    [
        ("debug", 20, 0),
        ("info", 20, 1),
        ("info", 30, 0),
        ("warning", 30, 1),
        ("warning", 40, 0),
        ("error", 40, 1),
        ("debug", 10, 1),
    ],
)
def test_lines_below_the_level_are_not_written(level: Level, least: int, written: int) -> None:
    log = Log(least=least)

    log.writer.write(level, "request", {}, kind="x")

    assert len(log.lines) == len(log.counted) == written


def test_a_line_without_a_client_is_counted_by_its_kind() -> None:
    log = Log(admits=False)

    log.writer.write("warning", "refused", {"status": 401}, kind="no token")
    log.writer.write("warning", "refused", {"client": "", "status": 401}, kind="no token")

    assert log.counted == [("warning", "refused", "no token")]
    assert len(log.lines) == 1


@pytest.mark.parametrize("form", ["json", "text"])
def test_no_fact_begins_a_line_of_its_own(form: str) -> None:
    log = Log(form)

    log.writer.write("info", "request", {"client": "a\nb\x1b", "ids": ["c\u2028"]}, kind="x")

    assert "a\ufffdb\ufffd" in log.lines[0]
    assert log.lines[0].count("\n") == 1
    assert "\u2028" not in log.lines[0]


def test_values_that_are_no_texts_are_plain_already() -> None:
    assert plain({"n": 1}) == {"n": 1}
    assert plain((1, "a\tb", ["\r"])) == [1, "a\ufffdb", ["\ufffd"]]
