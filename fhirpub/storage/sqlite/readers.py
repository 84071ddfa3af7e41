"""The connections of a SQLite store that read, and their threads.

Reads for the tenants have threads of their own, of which one tenant uses at most half. So a
tenant never waits behind the queue of another, and no other read waits for those of tenants.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from fhirpub.errors import SearchTooCostly
from fhirpub.runtime.fair_executor import FairExecutor
from fhirpub.storage.contract import MAX_SEARCH_SHARE
from fhirpub.storage.sqlite.work_budget import STEPS_BETWEEN_CHECKS, WorkBudget

R = TypeVar("R")
Work = Callable[[sqlite3.Connection], R]

_THREADS, _THREADS_FOR_TENANTS, _THREADS_PER_TENANT = 4, 4, 2


class Readers:
    """Connections for reading, each made by ``connect``, and the threads that use them."""

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], *, deadline_seconds: float
    ) -> None:
        self._deadline = deadline_seconds
        self._most = deadline_seconds * MAX_SEARCH_SHARE
        # One for each thread; the one used last is used next, since it has pages in its cache.
        self._idle = [connect() for _ in range(_THREADS + _THREADS_FOR_TENANTS)]
        self._threads = ThreadPoolExecutor(_THREADS, "sqlite-reader")
        self._threads_for_tenants = FairExecutor(
            max_threads=_THREADS_FOR_TENANTS,
            per_owner=_THREADS_PER_TENANT,
            name_prefix="sqlite-tenant",
        )

    async def read(self, work: Work[R], *, max_seconds: float | None = None) -> R:
        """Return what ``work`` finds, on any event loop.

        Raises SearchTooCostly if it takes longer than ``max_seconds``, or more steps than that is
        worth; TimeoutError at the deadline.
        """
        budget = self._limit(max_seconds)
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._deadline):
            return await loop.run_in_executor(self._threads, self._read, work, budget)

    async def read_for(self, tenant: str, work: Work[R], *, max_seconds: float | None = None) -> R:
        """Return what ``work`` finds for a tenant; always on the same event loop.

        Raises what `read` raises, and Throttled if the tenant used its share of the threads for
        too long.
        """
        budget = self._limit(max_seconds)
        async with asyncio.timeout(self._deadline):
            return await self._threads_for_tenants.run(
                tenant, partial(self._read, work, budget), max_wait_seconds=self._most
            )

    async def drain(self) -> None:
        """Return when the reads for tenants have ended, after which there must be no new ones."""
        await self._threads_for_tenants.drain()

    def close(self) -> None:
        """Finish all other reads and release the threads."""
        self._threads.shutdown()
        self._threads_for_tenants.close()

    def _limit(self, max_seconds: float | None) -> WorkBudget:
        limit = None if max_seconds is None else min(max_seconds, self._most)
        return WorkBudget(time.monotonic() + self._deadline, limit)

    def _read(self, work: Work[R], budget: WorkBudget) -> R:
        connection = self._idle.pop()
        budget.start()
        try:
            # Work without a waiter must not delay the others.
            connection.set_progress_handler(budget.check, STEPS_BETWEEN_CHECKS)
            return work(connection)
        except sqlite3.OperationalError as problem:
            if budget.is_exceeded:
                raise SearchTooCostly.beyond_budget() from None
            if _code_of(problem) == sqlite3.SQLITE_INTERRUPT:  # nothing but the budget does it
                raise TimeoutError from None
            raise
        finally:
            self._idle.append(connection)


def _code_of(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
