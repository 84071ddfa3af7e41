"""Cohort scheduling: what arrived together goes through its stages together.

Validating a body takes more code and tables than a processor's nearest caches hold. Done for one
request after the other, each stage finds them full of all the others; done stage by stage, the
second request finds there what the first has brought (Larus and Parkes, Using Cohort Scheduling
to Enhance Server Performance, USENIX 2002). What it gains stands in bench/README.md.
See ADR 6.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Generator, Iterable
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")
Stages = Generator[None, None, T]
"""A pure computation that pauses where something else begins; it returns its result."""

_Running = tuple[Stages[Any], asyncio.Future[Any]]
_TOGETHER = 16
"""Small bodies that are right take three milliseconds together."""
_STEPS_BETWEEN_PAUSES = 10
_TURN_SECONDS = 0.005
"""How long the loop is held at most; explaining a refusal may take far longer."""


def run_to_completion(stages: Stages[T]) -> T:
    """Go through all stages at once, in any thread, and return what comes of them."""
    while True:
        try:
            next(stages)
        except StopIteration as end:
            result: T = end.value
            return result


def collect(groups: Iterable[Iterable[T]], *, most: int = 100) -> Stages[list[T]]:
    """Collect the items of lazy groups, ``most`` of them, with a pause after some steps.

    Each item and each group is a step: together they may take longer than the loop may be held.
    """
    found: list[T] = []
    steps = 0
    for group in groups:
        for item in group:
            found.append(item)
            if len(found) == most:
                return found
            steps += 1
            if steps % _STEPS_BETWEEN_PAUSES == 0:
                yield
        steps += 1
        if steps % _STEPS_BETWEEN_PAUSES == 0:
            yield
    return found


async def yield_to_loop() -> None:
    """Return one loop iteration later, when requests that arrived together have come as far."""
    await asyncio.sleep(0)


class StageScheduler:
    """Goes through the stages of several computations side by side; for one event loop."""

    def __init__(self, *, turn_seconds: float = _TURN_SECONDS) -> None:
        self._turn_seconds = turn_seconds
        self._waiting: dict[str, deque[_Running]] = {}
        self._cohort: deque[_Running] = deque()

    def run(self, stages: Stages[T], *, owner: str = "") -> asyncio.Future[T]:
        """Take a computation; what comes of it, or the exception, is there a turn later.

        If more wait than a cohort has room for, owners, the tenants, are taken in turn (ADR 21).
        """
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[T] = loop.create_future()
        if not self._waiting and not self._cohort:
            loop.call_soon(self._go, loop)
        self._waiting.setdefault(owner, deque()).append((stages, outcome))
        return outcome

    def _go(self, loop: asyncio.AbstractEventLoop) -> None:
        until = loop.time() + self._turn_seconds
        cohort = self._cohort
        while self._waiting and len(cohort) < _TOGETHER:
            cohort.append(self._next())
        while cohort and loop.time() < until:
            _go_on(cohort)  # round and round: that is stage by stage
        if self._waiting or cohort:
            loop.call_soon(self._go, loop)

    def _next(self) -> _Running:
        """Take the first that waits of the next owner, which comes last then."""
        owner = next(iter(self._waiting))
        queue = self._waiting.pop(owner)
        running = queue.popleft()
        if queue:
            self._waiting[owner] = queue
        return running


def _go_on(cohort: deque[_Running]) -> None:
    """Go through one stage of the first; it comes last then, if there are more."""
    stages, outcome = cohort.popleft()
    try:
        next(stages)
    except StopIteration as end:
        if not outcome.done():  # the waiter has gone
            outcome.set_result(end.value)
    except (KeyboardInterrupt, SystemExit):  # all ends
        raise
    except BaseException as problem:  # noqa: BLE001 - it is the caller's, not the others'
        if not outcome.done():
            outcome.set_exception(problem.with_traceback(_without_this_frame(problem)))
    else:
        cohort.append((stages, outcome))
    finally:
        # From a traceback a way leads to all frames below. They and the outcome would keep one
        # another, and what the caller sent, until the collector comes by.
        del stages, outcome


def _without_this_frame(problem: BaseException) -> TracebackType | None:
    return problem.__traceback__.tb_next if problem.__traceback__ else None
