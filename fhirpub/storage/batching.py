"""Group commit: writes that arrive together are committed together, whatever the engine.

A commit costs the same for one record as for a hundred. While one batch is under way the next
gathers; nobody waits for a timer, so a lone write costs one turn of the event loop more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from fhirpub.errors import StoreUnavailable

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much may go together, and how much may wait.

    A batch has at most ``items`` and, unless it is of one item, at most ``size`` bytes.
    """

    items: int = 128
    size: int = 8 * 1024 * 1024
    waiting: int = 4096
    in_flight: int = 1


@dataclass(slots=True)
class _Waiting(Generic[T, R]):
    item: T
    size: int
    outcome: asyncio.Future[R]


class GroupCommit(Generic[T, R]):
    """Hands items to ``commit`` in batches; for one event loop.

    ``commit`` answers with one result for each item, in their order; an exception among the
    results is raised to the caller of that item alone, one that ``commit`` raises to each of
    the batch. Nobody waits longer than ``deadline_seconds``: StoreUnavailable says then that it
    is not known whether the item was committed.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[T]], Awaitable[Sequence[R | Exception]]],
        *,
        deadline_seconds: float,
        bounds: Bounds | None = None,
    ) -> None:
        self._commit = commit
        self._deadline = deadline_seconds
        self._promised: deque[tuple[float, asyncio.Future[R]]] = deque()
        self._looking = False
        self._bounds = bounds or Bounds()
        self._waiting: deque[_Waiting[T, R]] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        self._starting = False

    def add(self, item: T, *, size: int = 0) -> asyncio.Future[R]:
        """Take an item, which weighs ``size`` bytes; its result is there once it is committed.

        A caller that goes away changes nothing: what was handed in is committed. Raises
        StoreUnavailable, without having taken the item, when too many wait already.
        """
        if len(self._waiting) >= self._bounds.waiting:
            raise StoreUnavailable("too many writes are waiting")
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[R] = loop.create_future()
        self._waiting.append(_Waiting(item, size, outcome))
        self._promise(outcome, loop)
        if not self._starting and len(self._workers) < self._bounds.in_flight:
            self._starting = True
            self._workers.add(asyncio.create_task(self._work()))
        return outcome

    def _promise(self, outcome: asyncio.Future[R], loop: asyncio.AbstractEventLoop) -> None:
        """Remember by when the outcome is due: one timer for all, since they are due in turn."""
        while self._promised and self._promised[0][1].done():
            self._promised.popleft()
        self._promised.append((loop.time() + self._deadline, outcome))
        if not self._looking:
            self._looking = True
            loop.call_later(self._deadline, self._look)

    def _look(self) -> None:
        """Tell those whose time is over, and look again when the next one's is."""
        loop = asyncio.get_running_loop()
        while self._promised:
            due, outcome = self._promised[0]
            if not outcome.done() and due > loop.time():
                loop.call_at(due, self._look)
                return
            self._promised.popleft()
            _tell(outcome, StoreUnavailable("deadline exceeded"))
        self._looking = False

    async def drain(self) -> None:
        """Return when everything that was handed in is committed or has failed."""
        while self._workers:
            await asyncio.wait(self._workers)

    async def _work(self) -> None:
        self._starting = False
        try:
            while self._waiting:
                await self._settle(self._take())
        finally:
            # Here and not when the task is seen to be done, a turn of the loop later: an item
            # that arrives in between needs a worker of its own.
            self._workers -= {asyncio.current_task()}

    def _take(self) -> list[_Waiting[T, R]]:
        batch = [self._waiting.popleft()]
        room = self._bounds.size - batch[0].size
        while self._waiting and len(batch) < self._bounds.items:
            room -= self._waiting[0].size
            if room < 0:
                break
            batch.append(self._waiting.popleft())
        return batch

    async def _settle(self, batch: list[_Waiting[T, R]]) -> None:
        try:
            results = await self._commit([each.item for each in batch])
            for each, result in zip(batch, results, strict=True):
                _tell(each.outcome, result)
        except Exception as problem:  # noqa: BLE001 - it is the callers', each gets it
            for each in batch:
                _tell(each.outcome, _own(problem))
        except BaseException:
            for each in batch:
                each.outcome.cancel()
            raise


def _tell(outcome: asyncio.Future[R], result: R | Exception) -> None:
    if outcome.done():  # its caller has gone away
        return
    if isinstance(result, Exception):
        outcome.set_exception(result)
    else:
        outcome.set_result(result)


def _own(problem: Exception) -> Exception:
    """Return a copy: one instance raised in many tasks would gather all their tracebacks."""
    own = type(problem).__new__(type(problem), *problem.args)
    own.__dict__.update(vars(problem))
    own.__cause__ = problem
    return own
