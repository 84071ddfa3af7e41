"""Cohort scheduling: what arrived together goes through its stages together.

Validating a body takes more code and tables than a processor's nearest caches hold. Done for one
request after the other, each stage finds them full of all the others; done stage by stage, the
second request finds there what the first has brought (Larus and Parkes, Using Cohort Scheduling
to Enhance Server Performance, USENIX 2002). What it gains stands in bench/README.md.
See ADR 6.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from itertools import count
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
_RESTS = 4
"""So many iterations the loop has for all else between two turns, if one was not enough. They
take no time if nothing else is to be done."""


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


class _Owner:
    """An owner, a tenant, with what it has to compute and how much of the loop it has had."""

    __slots__ = ("cohort", "turn", "used", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[_Running] = deque()
        self.cohort: deque[_Running] = deque()
        self.used = 0.0
        self.turn = 0
        """The number of its last stage among all, or of its beginning."""


class StageScheduler:
    """Goes through the stages of several computations side by side; for one event loop.

    Owners, the tenants, share its time equally (ADR 21): next is a stage of the one that has had
    the least of it, as in `fhirpub.storage.fair_commit`. A computation of an owner that
    was idle waits for one stage of another owner, however many and however slow those are.
    """

    def __init__(
        self,
        *,
        turn_seconds: float = _TURN_SECONDS,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._turn_seconds = turn_seconds
        self._clock = clock
        self._owners: dict[str, _Owner] = {}
        self._now = 0.0
        """How much an owner has had that was never idle and had as little as any other."""
        self._turns = count(1)
        self._is_scheduled = False

    def run(self, stages: Stages[T], *, owner: str = "") -> asyncio.Future[T]:
        """Take a computation; what comes of it, or the exception, is there a turn later."""
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[T] = loop.create_future()
        own = self._owners.setdefault(owner, _Owner())
        if not own.cohort and not own.waiting:  # it was idle, and gets nothing for that
            own.used = max(own.used, self._now)
            own.turn = next(self._turns)
        own.waiting.append((stages, outcome))
        if not self._is_scheduled:
            self._is_scheduled = True
            loop.call_soon(self._go, loop)
        return outcome

    def _go(self, loop: asyncio.AbstractEventLoop) -> None:
        self._admit()
        turns = [(own.used, own.turn, own) for own in self._owners.values() if own.cohort]
        heapq.heapify(turns)
        moment = self._clock()
        until = moment + self._turn_seconds
        while turns and moment < until:
            self._now, _turn, own = turns[0]
            _go_on(own.cohort)  # round and round: that is stage by stage
            began, moment = moment, self._clock()
            own.used += moment - began
            own.turn = next(self._turns)
            if own.cohort:
                heapq.heapreplace(turns, (own.used, own.turn, own))
            else:
                heapq.heappop(turns)
        self._is_scheduled = not self._forget_idle()
        if self._is_scheduled:
            self._rest(loop, _RESTS if turns else 0)

    def _rest(self, loop: asyncio.AbstractEventLoop, left: int) -> None:
        """Go on after some iterations of the loop: a request needs several to be read."""
        if left:
            loop.call_soon(self._rest, loop, left - 1)
        else:
            loop.call_soon(self._go, loop)

    def _admit(self) -> None:
        """Begin what waits, of all owners in turn; each may have one begun in any case."""
        owners = self._owners.values()
        room = _TOGETHER - sum(len(own.cohort) for own in owners)
        in_turn = deque(sorted((own for own in owners if own.waiting), key=_had))
        while in_turn and room > -_TOGETHER:
            own = in_turn.popleft()
            if room > 0 or not own.cohort:
                own.cohort.append(own.waiting.popleft())
                room -= 1
                if own.waiting:
                    in_turn.append(own)

    def _forget_idle(self) -> bool:
        """Forget idle owners, unless they have had more than others; return whether all are."""
        is_idle = not any(own.waiting or own.cohort for own in self._owners.values())
        if is_idle:
            self._owners.clear()
        for name, own in [*self._owners.items()]:
            if not own.waiting and not own.cohort and own.used <= self._now:
                del self._owners[name]
        return is_idle


def _had(own: _Owner) -> tuple[float, int]:
    return own.used, own.turn


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
