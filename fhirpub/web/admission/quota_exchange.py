"""Exchanges the use of quotas with the other processes on the store, about once a second.

Each process stores its own totals, and reads the sums of the others. A request never waits for
it. While the store is unavailable, a process goes on with what it knows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.clock import Clock
from fhirpub.runtime.faults import where
from fhirpub.runtime.logging import logger
from fhirpub.storage.quota_contract import QuotaStore
from fhirpub.web.admission.quota_usage import Usage
from fhirpub.web.admission.quotas import Quotas

EXCHANGE_SECONDS = 1.0
_GATHER_SECONDS = 0.05
"""How long callers gather whose use by other processes is unknown."""
_SLICE = 256
"""So many tenants and clients at a time: the event loop is not held for long."""
OVERRIDE_SECONDS = 10.0
"""How often the overrides are read: a change is in effect within half a minute."""

_log = logger()


class QuotaExchange:
    """The task that exchanges the counts of one process."""

    def __init__(self, quotas: Quotas, store: QuotaStore, *, clock: Clock) -> None:
        self._quotas = quotas
        self._store = store
        self._clock = clock
        self._read_at = 0.0
        self._has_failed = False

    async def start(self) -> None:
        """Read the overrides. Raises StoreUnavailable."""
        self._quotas.set_overrides(await self._store.quota_overrides())
        self._read_at = asyncio.get_running_loop().time()

    async def run(self) -> None:
        """Exchange counts until cancelled."""
        while True:
            await self._pause()
            try:
                await self._step()
                self._has_failed = False
            except Exception as problem:  # noqa: BLE001 - the next round may succeed
                self._log_failure(problem)

    async def finish(self) -> None:
        """Store the last counts, if the store is available."""
        with suppress(StoreUnavailable):
            await self._put(self._quotas.recent())

    async def exchange(self) -> None:
        """Store what this process has counted, and read what others have. Raises StoreUnavailable.

        Nothing is stored if nothing was counted, and nothing is read if there was no request.
        """
        recent = self._quotas.recent()
        for start in range(0, len(recent), _SLICE):
            part = recent[start : start + _SLICE]
            await self._put(part)
            await self._read(part)
            await self._read_stored([usage for usage in part if usage.limits.stored_bytes])

    async def _step(self) -> None:
        if asyncio.get_running_loop().time() >= self._read_at + OVERRIDE_SECONDS:
            await self.start()
        await self.exchange()

    async def _pause(self) -> None:
        news = self._quotas.news
        with suppress(TimeoutError):
            async with asyncio.timeout(EXCHANGE_SECONDS):
                await news.wait()
                await asyncio.sleep(_GATHER_SECONDS)
        news.clear()

    async def _put(self, usages: Sequence[Usage]) -> None:
        now = self._clock()
        unsent = [item for usage in usages for item in usage.unsent(now)]
        if unsent:
            await self._store.put_quota_counts(
                self._quotas.process, [count for _counter, count in unsent]
            )
        for counter, count in unsent:
            counter.mark_sent(count)

    async def _read(self, usages: Sequence[Usage]) -> None:
        owners, process = [usage.owner for usage in usages], self._quotas.process
        uses = await self._store.quota_counts(owners, now=self._clock(), besides=process)
        for usage in usages:
            usage.learn(uses, self._clock())

    async def _read_stored(self, asked: Sequence[Usage]) -> None:
        if not asked:
            return
        for usage in asked:
            usage.begin_learning_stored()
        found = await self._store.stored_bytes([usage.owner for usage in asked])
        for usage in asked:
            usage.learn_stored(found.get(usage.owner, 0))

    def _log_failure(self, problem: Exception) -> None:
        """Log the first failure of several."""
        if self._has_failed:
            return
        self._has_failed = True
        if isinstance(problem, StoreUnavailable):
            _log.warning("quotas not exchanged", reason=problem.reason)
        else:
            _log.error("quotas not exchanged", **where(problem))
