"""Threads for large computations, shared fairly among owners, the tenants.

Threads take turns with the event loop for the interpreter. So each owner runs few at a time, and
an owner that has none running is next: its work never waits behind another's queue.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

_Work = tuple[Callable[[], Any], asyncio.Future[Any]]


class FairExecutor:
    """Runs pure functions in threads, at most ``per_owner`` at a time for each owner."""

    def __init__(self, *, max_threads: int = 16, per_owner: int = 2) -> None:
        self._threads = ThreadPoolExecutor(max_threads, "large")
        self._free = max_threads
        self._per_owner = per_owner
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[_Work]] = {}

    async def run(self, owner: str, work: Callable[[], T]) -> T:
        """Run a function in a thread and return its result, or raise what it raises."""
        turn: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append((work, turn))
        self._start()
        try:
            return await turn
        finally:
            # An exception leads to this frame, and the future to the exception: a cycle that
            # would keep what the caller sent until the next collection.
            del turn

    def close(self) -> None:
        """Release the threads; work in progress is finished."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _start(self) -> None:
        """Start what waits as far as threads are free, owners with fewest running first."""
        while self._free and (owner := self._next_owner()) is not None:
            queue = self._waiting[owner]
            work, turn = queue.popleft()
            if not queue:
                del self._waiting[owner]
            if turn.done():  # the request was cancelled
                continue
            self._free -= 1
            self._running[owner] += 1
            done = asyncio.get_running_loop().run_in_executor(self._threads, work)
            done.add_done_callback(partial(self._end, owner, turn))

    def _next_owner(self) -> str | None:
        ready = [name for name in self._waiting if self._running[name] < self._per_owner]
        return min(ready, key=self._running.__getitem__, default=None)

    def _end(self, owner: str, turn: asyncio.Future[Any], ended: asyncio.Future[Any]) -> None:
        self._free += 1
        self._running[owner] -= 1
        if not self._running[owner]:
            del self._running[owner]
        problem = None if ended.cancelled() else ended.exception()
        if turn.done():
            pass
        elif ended.cancelled():
            turn.cancel()
        elif problem is not None:
            turn.set_exception(problem)
        else:
            turn.set_result(ended.result())
        self._start()
