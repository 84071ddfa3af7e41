"""Which workers a supervisor replaces, when, and when it gives up."""

from __future__ import annotations

import itertools
import os
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from fhirpub.runtime import supervisor
from fhirpub.runtime.supervisor import _run


class Workers:
    """Workers that end as a test has it: each by its place among all that were started."""

    def __init__(self, *ends: tuple[int, int], starts: bool = True) -> None:
        self.numbers: dict[int, int] = {}
        self.stopping = self.replacing = False
        self.started: list[tuple[int, float]] = []
        self._starts = starts
        self._ends = [*ends]
        self._pids = itertools.count(1)

    def start(self, number: int, *, after: float = 0.0) -> None:
        self.started.append((number, after))
        self.numbers[next(self._pids)] = number

    def stop(self) -> None:
        self.stopping = True

    def all_started(self, _count: int) -> bool:
        return self._starts

    def wait(self) -> tuple[int, int]:
        if self._ends and not self.stopping:
            pid, code = self._ends.pop(0)
            return pid, code << 8
        self.stopping = True
        return next(iter(self.numbers)), 0


def run(workers: Workers, count: int = 2) -> tuple[bool, int]:
    """Return whether a supervisor of them ends well, and how often it announced its start."""
    announced: list[Any] = []
    given: Any = workers
    well = _run(given, count, lambda: announced.append(workers.replacing))
    return well, len(announced)


def test_a_start_is_announced_once_all_have_started() -> None:
    workers = Workers()

    assert run(workers, 3) == (True, 1)
    assert workers.started == [(0, 0.0), (1, 0.0), (2, 0.0)]
    assert workers.replacing


def test_a_start_that_fails_is_not_announced_and_replaces_nothing() -> None:
    workers = Workers((1, 1), starts=False)

    assert run(workers) == (False, 0)
    assert workers.started == [(0, 0.0), (1, 0.0)]


def test_a_start_that_is_stopped_is_not_announced() -> None:
    workers = Workers()
    workers.stop()

    assert run(workers) == (True, 0)


@pytest.mark.parametrize("pid", [1, 2, 3])
def test_a_worker_that_dies_is_replaced_under_its_number_and_logged(pid: int) -> None:
    workers = Workers((pid, 3))

    with capture_logs() as lines:
        assert run(workers, 3) == (True, 1)

    assert workers.started[3:] == [(pid - 1, 0.0)]
    (line,) = lines
    assert (line["event"], line["pid"], line["status"]) == ("worker died", pid, 3)


def test_a_child_that_is_no_worker_is_not_replaced() -> None:
    workers = Workers((99, 1))

    with capture_logs() as lines:
        assert run(workers) == (True, 1)

    assert len(workers.started) == 2
    assert lines == []


def test_a_worker_without_a_store_is_started_again_later_however_often() -> None:
    deaths = [(pid, os.EX_TEMPFAIL) for pid in range(2, 30)]
    workers = Workers(*deaths)

    with capture_logs():
        assert run(workers) == (True, 1)

    assert workers.started[2:] == [(1, 2.0)] * len(deaths)


def test_starts_without_a_store_are_no_deaths_that_make_it_give_up() -> None:
    ends = [(pid, os.EX_TEMPFAIL) for pid in range(2, 40)] + [(pid, 1) for pid in range(40, 59)]
    workers = Workers(*ends)

    with capture_logs():
        assert run(workers) == (True, 1)

    assert workers.started[-1] == (1, 0.0)


@pytest.mark.parametrize(
    ("deaths", "seconds", "is_over"),
    [(20, 0.0, True), (19, 0.0, False), (20, 3.125, True), (20, 3.25, False), (50, 3.25, False)],
)
def test_a_supervisor_gives_up_after_twenty_deaths_in_a_minute(
    monkeypatch: pytest.MonkeyPatch, deaths: int, seconds: float, *, is_over: bool
) -> None:
    times = itertools.count()
    workers = Workers(*((pid, 1) for pid in range(2, 2 + deaths)))

    with monkeypatch.context() as patched, capture_logs():
        clock = SimpleNamespace(monotonic=lambda: next(times) * seconds)
        patched.setattr(supervisor, "time", clock)
        assert run(workers) == (not is_over, 1)

    assert len(workers.started) == 2 + deaths - is_over
