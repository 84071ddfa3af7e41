"""Group commit and grouped reads: what is asked for together is done together.

A commit costs the same for one record as for a hundred, and so does a look-up in a database
elsewhere. While one batch is in flight the next one collects; no call waits for a timer, so a lone
call costs one turn of the event loop more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from fhirpub.errors import StoreUnavailable

T = TypeVar("T")
R = TypeVar("R")
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much may go together, and how much may wait.

    A batch has at most ``items`` and, unless it is of one item, at most ``size`` bytes. An item of
    more than ``alone`` bytes shares its batch with no other, which would wait for it.
    """

    items: int = 128
    size: int = 8 * 1024 * 1024
    alone: int = 8 * 1024 * 1024
    waiting: int = 4096
    in_flight: int = 1


@dataclass(slots=True)
class Waiting(Generic[T, R]):
    """An item, its size, and the future of its result."""

    item: T
    size: int
    outcome: asyncio.Future[R]


class GroupCommit(Generic[T, R]):
    """Hands items to ``commit`` in batches; for one event loop.

    ``commit`` answers with one result for each item, in their order; an exception among the
    results is raised to the caller of that item alone, one that ``commit`` raises to each of
    the batch. No call waits longer than ``deadline_seconds``: StoreUnavailable then means that it
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
        self._bounds = bounds or Bounds()
        self._deadline = Deadline(deadline_seconds)
        self._waiting: deque[Waiting[T, R]] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        self._starting = False

    def add(self, item: T, *, size: int = 0) -> asyncio.Future[R]:
        """Take an item, which weighs ``size`` bytes; its result is there once it is committed.

        A caller that goes away changes nothing: what was handed in is committed. Raises
        StoreUnavailable, without having taken the item, when too many wait already.
        """
        if len(self._waiting) >= self._bounds.waiting:
            raise StoreUnavailable("too many calls are waiting")
        outcome: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._deadline.watch(outcome)
        self._waiting.append(Waiting(item, size, outcome))
        self._start_worker()
        return outcome

    async def drain(self) -> None:
        """Return when everything that was handed in is committed or has failed."""
        while self._workers:
            await asyncio.wait(self._workers)

    def _start_worker(self) -> None:
        """Let one more batch be in flight, if something waits for it."""
        is_free = not self._starting and len(self._workers) < self._bounds.in_flight
        if self._waiting and is_free:
            self._starting = True
            self._workers.add(asyncio.create_task(self._work()))

    async def _work(self) -> None:
        self._starting = False
        itself = {asyncio.current_task()}  # by the end its loop may be gone
        try:
            while self._waiting:
                batch = self._take()
                self._start_worker()  # for what this batch has no room for
                await self._commit_batch(batch)
        finally:
            # Here and not when the task is seen to be done, a turn of the loop later: an item
            # that arrives in between needs a worker of its own.
            self._workers -= itself

    def _take(self) -> list[Waiting[T, R]]:
        batch: list[Waiting[T, R]] = []
        room = self._bounds.size
        while self._waiting and len(batch) < self._bounds.items:
            if not self._may_join(self._waiting[0], batch, room):
                break
            batch.append(self._waiting.popleft())
            room -= batch[-1].size
        return batch

    def _may_join(self, item: Waiting[T, R], batch: Sequence[Waiting[T, R]], room: int) -> bool:
        """Return whether a batch that has so much room left takes this item too."""
        if not batch:
            return True
        return item.size <= room and max(item.size, batch[0].size) <= self._bounds.alone

    async def _commit_batch(self, batch: list[Waiting[T, R]]) -> None:
        try:
            results = await self._commit([waiting.item for waiting in batch])
            for waiting, result in zip(batch, results, strict=True):
                _resolve(waiting.outcome, result)
        except Exception as problem:  # noqa: BLE001 - it is the callers', each gets it
            for waiting in batch:
                _resolve(waiting.outcome, _detach(problem))
        except BaseException:
            for waiting in batch:
                waiting.outcome.cancel()
            raise


class GroupedReads(Generic[K, R]):
    """Hands keys to ``fetch`` in batches, each key once; for one event loop.

    ``fetch`` returns what it finds by key. No call joins a batch that is in flight, so that
    what a caller gets was read after the call.
    """

    def __init__(
        self,
        fetch: Callable[[Collection[K]], Awaitable[Mapping[K, R]]],
        *,
        deadline_seconds: float,
        bounds: Bounds | None = None,
    ) -> None:
        self._fetch = fetch
        self._group: GroupCommit[K, R | None] = GroupCommit(
            self._read, deadline_seconds=deadline_seconds, bounds=bounds
        )

    def get(self, key: K) -> asyncio.Future[R | None]:
        """Return what there is under a key. Raises StoreUnavailable as GroupCommit does."""
        return self._group.add(key)

    async def _read(self, keys: Sequence[K]) -> Sequence[R | None]:
        found = await self._fetch(set(keys))
        return [found.get(key) for key in keys]


class Deadline:
    """Ends what takes longer than ``seconds``, with StoreUnavailable.

    One timer for all: they have equally long and end in the order in which they began. A timer
    for each call would cost more than the rest of a grouped read.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends: deque[tuple[float, asyncio.Future[Any]]] = deque()
        self._armed = False

    def watch(self, outcome: asyncio.Future[Any]) -> None:
        """End this one too, unless it is done in time."""
        self._forget_done()
        loop = outcome.get_loop()
        self._ends.append((loop.time() + self._seconds, outcome))
        if not self._armed:
            self._armed = True
            loop.call_at(self._ends[0][0], self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._forget_done()
        while self._ends and self._ends[0][0] <= loop.time():
            self._ends.popleft()[1].set_exception(StoreUnavailable("deadline exceeded"))
            self._forget_done()
        self._armed = bool(self._ends)
        if self._armed:
            loop.call_at(self._ends[0][0], self._look, loop)

    def _forget_done(self) -> None:
        while self._ends and self._ends[0][1].done():
            self._ends.popleft()


def _resolve(outcome: asyncio.Future[R], result: R | Exception) -> None:
    if outcome.done():  # its caller has gone away
        return
    if isinstance(result, Exception):
        outcome.set_exception(result)
    else:
        outcome.set_result(result)


def _detach(problem: Exception) -> Exception:
    """Return a copy: one instance raised in many tasks would gather all their tracebacks."""
    own = type(problem).__new__(type(problem), *problem.args)
    own.__dict__.update(vars(problem))
    own.__cause__ = problem
    return own
