"""Measures what a request costs, mostly in numbers that do not depend on the machine.

Calls of functions are counted, Python's and native ones, and the most memory at a time. Neither
sees how long one native call takes, such as a regular expression on a long string: for that there
is the processor time of the thread, compared with a loop that is measured beside it.
"""

from __future__ import annotations

import cProfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from fhirpub.errors import FhirpubError
from tests.collector import without_collector

Work = Callable[[], Iterator[None]]
"""Begins a computation that pauses, as `fhirpub.runtime.stages` runs it; each call a new one."""

_CALLS_OF_A_UNIT = 100_000
_ATTEMPTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of one computation.

    ``step_calls`` and ``step_seconds`` are those of its largest step, for which the event loop
    waits. ``memory`` is the peak in bytes.
    """

    calls: int
    step_calls: int
    memory: int
    seconds: float
    step_seconds: float


def measure(work: Work) -> Cost:
    """Run a computation three times: to take the time, to count calls, to trace memory."""
    seconds, step_seconds = time_steps(work)
    calls, step_calls = count_calls(work)
    return Cost(
        calls=calls,
        step_calls=step_calls,
        memory=trace_memory(work),
        seconds=seconds,
        step_seconds=step_seconds,
    )


def time_steps(work: Work) -> tuple[float, float]:
    """Return the processor seconds of all steps and of the longest."""
    steps = []
    with without_collector():
        running = work()
        more = True
        while more:
            begun = time.thread_time()
            more = _step(running)
            steps.append(time.thread_time() - begun)
    return sum(steps), max(steps)


def count_calls(work: Work) -> tuple[int, int]:
    """Return the calls in all steps and in the largest: the same each time."""
    steps = []
    running = work()
    more = True
    while more:
        profile = cProfile.Profile(subcalls=False, builtins=True)
        profile.enable()
        try:
            more = _step(running)
        finally:
            profile.disable()
        steps.append(sum(entry.callcount for entry in profile.getstats()))
    return sum(steps), max(steps)


def trace_memory(work: Work) -> int:
    """Return the most bytes that a computation has allocated at a time."""
    with without_collector():
        tracemalloc.start()
        try:
            running = work()
            while _step(running):
                pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


def takes_longer(work: Work, seconds: float, units: float) -> bool:
    """Return whether a computation that took some seconds takes more than so many units.

    A unit is the time of a loop of 100,000 calls: a few milliseconds. A computation is tried again
    before it is said to take longer, each time beside a loop that is measured then.
    """
    return seconds > units * unit() and all(
        time_steps(work)[0] > units * _fresh_unit() for _ in range(_ATTEMPTS)
    )


def grows_faster(of_size: Callable[[int], Work], small: int, times: int, slack: int) -> bool:
    """Return whether the time for a size grows more than ``slack`` times as fast as the size."""

    def seconds(size: int) -> float:
        work = of_size(size)
        return min(time_steps(work)[0] for _ in range(_ATTEMPTS))

    def is_steep() -> bool:
        return time_steps(of_size(small * times))[0] > slack * (
            times * seconds(small) + _fresh_unit()
        )

    return all(is_steep() for _ in range(_ATTEMPTS))


def _step(running: Iterator[None]) -> bool:
    """Take one step; return whether there may be more. A refusal is an end as any other."""
    try:
        next(running)
    except (StopIteration, FhirpubError):
        return False
    return True


def _fresh_unit() -> float:
    """Return the processor seconds of one unit, the slowest of some: others use the machine."""

    def called(number: int) -> int:
        return number

    measured = []
    for _ in range(5):
        begun = time.thread_time()
        for number in range(_CALLS_OF_A_UNIT):
            called(number)
        measured.append(time.thread_time() - begun)
    return max(measured)


@cache
def unit() -> float:
    """Return the processor seconds of a loop of 100,000 calls, as measured once."""
    return _fresh_unit()
