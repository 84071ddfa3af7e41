"""Tasks that run again and again, and writes that are repeated until the store takes them.

Time passes on a loop whose clock jumps, so that each pause is measured and none is waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from fhirpub.errors import StoreUnavailable
from fhirpub.webhooks.dispatch.periodic import (
    PeriodicTask,
    back_off,
    gather_all,
    log_failure,
    retry_until_stored,
)
from tests.unit.webhooks.dispatch.jumping_loop import run

LOOK_SECONDS = 0.11
"""So often a pause looks whether the task was stopped, which may prolong it."""


def now() -> float:
    return round(asyncio.get_running_loop().time(), 3)


class Steps:
    """A step that returns pauses or fails, one after the other, and stops its task at the end."""

    def __init__(self, *outcomes: float | Exception) -> None:
        self.outcomes = [*outcomes]
        self.times: list[float] = []
        self.task = PeriodicTask("look", self.step)
        self.during: Callable[[], None] = lambda: None

    async def step(self) -> float:
        self.times.append(now())
        self.during()
        outcome = self.outcomes.pop(0)
        if not self.outcomes:
            self.task.stop()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def run(self, *others: Callable[[], Awaitable[None]]) -> float:
        """Run the task beside others, and return when it has ended."""

        async def everything() -> float:
            beside = [asyncio.ensure_future(other()) for other in others]
            await self.task.run()
            ended = now()
            await asyncio.gather(*beside)
            return ended

        return run(everything())


def pauses_of(steps: Steps) -> list[float]:
    return [after - before for before, after in pairwise(steps.times)]


def failures(count: int) -> Sequence[Exception]:
    return [StoreUnavailable("gone") for _ in range(count)]


def test_a_step_is_followed_by_the_pause_that_it_returns() -> None:
    steps = Steps(5, 0.25, 60, 0)

    assert steps.run() == 65.25
    assert steps.times == [0, 5, 5.25, 65.25]


def test_a_task_that_was_stopped_takes_no_step() -> None:
    steps = Steps(5)
    steps.task.stop()

    assert steps.run() == 0
    assert steps.times == []


def test_a_stop_ends_a_pause() -> None:
    steps = Steps(60, 0)

    async def stop() -> None:
        await asyncio.sleep(7)
        steps.task.stop()

    assert steps.run(stop) == 7
    assert steps.times == [0]


def test_a_wake_up_begins_the_next_step_at_once() -> None:
    steps = Steps(60, 60, 0)

    async def wake() -> None:
        await asyncio.sleep(7)
        steps.task.wake()

    steps.run(wake)

    assert steps.times == [0, 7, 67]


def test_a_wake_up_during_a_step_is_not_forgotten() -> None:
    steps = Steps(60, 60, 0)

    def wake_once() -> None:
        if len(steps.times) == 1:
            steps.task.wake()

    steps.during = wake_once
    steps.run()

    assert steps.times == [0, 0, 60]


def test_a_wake_up_before_the_first_step_asks_for_no_second_one() -> None:
    steps = Steps(60, 0)
    steps.task.wake()

    steps.run()

    assert steps.times == [0, 60]


def test_failures_are_followed_by_longer_and_longer_pauses() -> None:
    steps = Steps(*failures(7), 0)

    with capture_logs():
        steps.run()

    expected = [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    assert pauses_of(steps) == pytest.approx(expected, abs=LOOK_SECONDS)


def test_after_a_success_the_pauses_begin_again() -> None:
    steps = Steps(*failures(2), 5, *failures(1), 0)

    with capture_logs() as lines:
        steps.run()

    assert steps.times == [0, 0.1, 0.3, 5.3, 5.4]
    assert len(lines) == 2


def test_no_wake_up_shortens_the_pause_after_a_failure() -> None:
    steps = Steps(*failures(5), 0)

    async def wake() -> None:
        await asyncio.sleep(1)
        steps.task.wake()

    with capture_logs():
        steps.run(wake)

    expected = [0.1, 0.2, 0.4, 0.8, 1.6]
    assert pauses_of(steps) == pytest.approx(expected, abs=LOOK_SECONDS)


def test_a_stop_shortens_the_pause_after_a_failure() -> None:
    steps = Steps(*failures(9))

    async def stop() -> None:
        await asyncio.sleep(5)  # within the pause behind the sixth failure
        steps.task.stop()

    with capture_logs():
        ended = steps.run(stop)

    assert len(steps.times) == 6
    assert ended == pytest.approx(5, abs=LOOK_SECONDS)


def test_a_failure_of_any_kind_ends_no_task() -> None:
    steps = Steps(KeyError("a name"), StoreUnavailable("gone"), 0)

    with capture_logs():
        steps.run()

    assert steps.times == [0, 0.1, 0.3]


# What is logged


def test_the_first_failure_of_a_row_is_logged() -> None:
    with capture_logs() as lines:
        Steps(*failures(3), 0).run()

    assert lines == [
        {
            "event": "webhooks wait for the store",
            "log_level": "warning",
            "work": "look",
            "reason": "gone",
        }
    ]


def test_what_the_store_did_not_cause_is_logged_as_an_error_without_its_text() -> None:
    with capture_logs() as lines:
        log_failure("look", KeyError("a name"), 0)

    assert lines == [
        {
            "event": "webhooks failed",
            "log_level": "error",
            "work": "look",
            "error": "KeyError",
            "place": "",
        }
    ]


@pytest.mark.parametrize("problem", [StoreUnavailable("gone"), KeyError("a name")])
def test_the_second_failure_of_a_row_is_not_logged(problem: Exception) -> None:
    with capture_logs() as lines:
        log_failure("look", problem, 1)

    assert lines == []


# Several tasks in one round


async def test_one_that_fails_leaves_none_to_run_on() -> None:
    done = []
    failed = asyncio.Event()

    async def fail() -> None:
        failed.set()
        raise StoreUnavailable("gone")

    async def write() -> None:
        await failed.wait()
        for _ in range(20):  # far more turns than the failure takes to arrive
            await asyncio.sleep(0)
        done.append("written")

    with pytest.raises(StoreUnavailable):
        await gather_all(fail(), write())

    assert done == ["written"]


async def test_of_several_failures_that_of_the_first_argument_is_raised() -> None:
    second = asyncio.Event()

    async def fail_late() -> None:
        await second.wait()
        raise KeyError("first")

    async def fail_soon() -> None:
        second.set()
        raise KeyError("second")

    async def succeed() -> None:
        pass

    with pytest.raises(KeyError, match="first"):
        await gather_all(succeed(), fail_late(), fail_soon())


async def test_a_cancelled_one_is_a_failure_too() -> None:
    async def cancelled() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await gather_all(cancelled())


async def test_nothing_to_do_is_done() -> None:
    await gather_all()


# Writes that are repeated


def repeated(*outcomes: str | Exception) -> tuple[str, list[float]]:
    """Return what a repeated write returns, and when it was tried."""
    left, times = [*outcomes], list[float]()

    async def write() -> str:
        times.append(now())
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return run(retry_until_stored("finish", write)), times


def test_a_write_that_the_store_takes_is_made_once() -> None:
    assert repeated("stored", "again") == ("stored", [0])


def test_a_write_is_repeated_until_the_store_takes_it() -> None:
    with capture_logs() as lines:
        stored, times = repeated(*failures(4), "stored")

    assert (stored, times) == ("stored", [0, 0.1, 0.3, 0.7, 1.5])
    assert [(line["work"], line["reason"]) for line in lines] == [("finish", "gone")]


def test_a_write_that_fails_otherwise_is_not_repeated() -> None:
    with pytest.raises(KeyError):
        repeated(KeyError("a name"), "stored")


@pytest.mark.parametrize(
    ("before", "seconds"),
    [(0, 0.1), (1, 0.2), (4, 1.6), (5, 2.0), (10, 2.0), (11, 2.0), (100_000, 2.0)],
)
def test_the_wait_doubles_up_to_two_seconds(before: int, seconds: float) -> None:
    assert back_off(before) == seconds
