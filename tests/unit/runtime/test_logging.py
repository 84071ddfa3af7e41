"""Lines that callers without a token can cause are sampled; all others are written."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from fhirpub.runtime.log_sampling import LINES_PER_MINUTE, WINDOW_MS
from fhirpub.runtime.logging import configure, logger, request_lines
from fhirpub.runtime.request_lines import Fact


@dataclass
class Log:
    """A log in memory, with a clock that stands still."""

    now: int = 1_800_000_000_000
    stream: io.StringIO = field(default_factory=io.StringIO)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]

    def count(self, event: str) -> int:
        return sum(line["event"] == event for line in self.lines)


@pytest.fixture
def log(log_as_before: None) -> Log:
    """Send log lines to memory for the time of a test."""
    log = Log()
    configure(level="info", form="json", stream=log.stream, clock=lambda: log.now)
    return log


def write_line(event: str, *, kind: str = "401", **facts: Fact) -> None:
    """Write the line of a request."""
    lines = request_lines()
    assert lines is not None
    lines.write("info", event, facts, kind=kind)


@pytest.mark.parametrize(
    ("event", "facts"),
    [
        ("address not permitted", {"client_id": "c-1", "address": "192.0.2.1"}),
        ("administration refused", {"reason": "expired"}),
        ("keys of a caller not read", {"file": "a.json"}),
        ("failed", {"place": "a.py:1", "error": "ValueError"}),
    ],
)
def test_of_equal_lines_without_a_client_some_are_written(
    log: Log, event: str, facts: dict[str, Any]
) -> None:
    for number in range(1_000):
        logger().info(event, **facts, request_id=f"{number}")

    assert log.count(event) == LINES_PER_MINUTE


@pytest.mark.parametrize("event", ["answered", "refused", "cut off"])
def test_of_equal_lines_of_requests_without_a_client_some_are_written(
    log: Log, event: str
) -> None:
    for number in range(1_000):
        write_line(event, request_id=f"{number}")

    assert log.count(event) == LINES_PER_MINUTE


def test_every_line_of_a_request_with_a_client_is_written(log: Log) -> None:
    for _ in range(100):
        write_line("refused", client="c-1")

    assert log.count("refused") == 100


@pytest.mark.parametrize("event", ["address not permitted", "failed"])
def test_every_line_with_a_client_is_written(log: Log, event: str) -> None:
    for _ in range(100):
        logger().info(event, status=422, reason="x", place="y", client="c-1")

    assert log.count(event) == 100


def test_every_line_of_another_event_is_written(log: Log) -> None:
    for _ in range(100):
        logger().info("token granted", client=None)

    assert log.count("token granted") == 100


def test_a_reason_that_is_frequent_hides_no_other(log: Log) -> None:
    for _ in range(1_000):
        write_line("refused", kind="expired")
    write_line("refused", kind="signature", reason="signature")

    assert log.lines[-1]["reason"] == "signature"


def test_the_next_line_after_a_minute_reports_how_many_were_left_out(log: Log) -> None:
    for _ in range(1_000):
        write_line("refused", kind="no primary")
    log.now += WINDOW_MS
    write_line("refused", kind="no primary")

    report, line = log.lines[-2:]
    del report["timestamp"]
    assert report == {
        "event": "lines left out",
        "line": "refused",
        "reason": "no primary",
        "count": 1_000 - LINES_PER_MINUTE,
        "level": "info",
    }
    assert line["event"] == "refused"


async def test_the_end_of_the_minute_reports_it_without_another_line(log: Log) -> None:
    log.now += WINDOW_MS - 50
    for _ in range(1_000):
        write_line("refused", kind="expired")
    assert log.count("lines left out") == 0

    await until(lambda: log.count("lines left out") > 0)

    assert log.lines[-1]["count"] == 1_000 - LINES_PER_MINUTE


async def test_the_end_of_a_minute_reports_it_after_the_clock_was_set_back_too(log: Log) -> None:
    log.now += WINDOW_MS - 50
    for _ in range(1_000):
        write_line("refused", kind="expired")
    await until(lambda: log.count("lines left out") == 1)
    log.now -= 60 * WINDOW_MS
    write_line("refused", kind="expired")  # begins another minute

    log.now += WINDOW_MS - 50
    for _ in range(999):
        write_line("refused", kind="expired")

    await until(lambda: log.count("lines left out") == 2)
    assert log.lines[-1]["count"] == 1_000 - LINES_PER_MINUTE


async def test_what_is_left_out_of_a_minute_is_reported_by_one_timer(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, timers = asyncio.get_running_loop(), list[str]()
    call_later = loop.call_later

    def noted(delay: float, callback: Callable[..., None], *given: Any) -> asyncio.TimerHandle:
        timers.append(callback.__name__)
        return call_later(delay, callback, *given)

    monkeypatch.setattr(loop, "call_later", noted)
    for _ in range(LINES_PER_MINUTE + 50):
        write_line("refused", kind="expired")
        log.now += 1

    assert timers.count("_report") == 1


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


def test_of_equal_lines_of_a_library_some_are_written(log: Log) -> None:
    for _ in range(1_000):
        logging.getLogger("tornado.general").warning("a connection failed")

    assert log.count("a library logged") == LINES_PER_MINUTE
