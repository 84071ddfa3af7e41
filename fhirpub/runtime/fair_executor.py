"""Threads that are shared fairly among owners, the tenants.

Threads take turns with the event loop for the interpreter. So each owner runs few at a time, and
an owner that has none running is next: its work never waits behind another's queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from fhirpub.runtime.fair_turns import FairTurns

T = TypeVar("T")


class FairExecutor:
    """Runs functions in threads, at most ``per_owner`` at a time for each owner."""

    def __init__(
        self, *, max_threads: int = 16, per_owner: int = 2, name_prefix: str = "large"
    ) -> None:
        self._threads = ThreadPoolExecutor(max_threads, name_prefix)
        self._turns = FairTurns(max_turns=max_threads, per_owner=per_owner)

    async def run(
        self, owner: str, work: Callable[[], T], *, max_wait_seconds: float | None = None
    ) -> T:
        """Run a function in a thread and return its result, or raise what it raises.

        If the caller is cancelled, the function keeps its thread until it ends. After
        ``max_wait_seconds`` without a thread it raises what `FairTurns.take` raises.
        """
        await self._turns.take(owner, seconds=max_wait_seconds)
        try:
            running = asyncio.get_running_loop().run_in_executor(self._threads, work)
        except BaseException:  # the system starts no thread, or it is closed
            self._turns.release(owner)
            raise
        running.add_done_callback(lambda _ended: self._turns.release(owner))
        return await asyncio.shield(running)

    async def drain(self) -> None:
        """Return when everything that was handed in has ended."""
        await self._turns.drain()

    def close(self) -> None:
        """Release the threads; work in progress is finished."""
        self._threads.shutdown(wait=False, cancel_futures=True)
