"""Hands records of one process to the store: at once and awaited, or together within a second."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

from fhirpub.audit.chain import ENTRY_SPAN_MS
from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.logging import logger
from fhirpub.storage.audit_contract import AuditStore
from fhirpub.storage.batching import GroupCommit

FLUSH_SECONDS = 1.0
MAX_WAITING = 10_000
"""The maximum number of records of one tenant that wait while the store cannot be written."""
_ENOUGH = 1_000
"""So many are handed in before the second is over."""

_log = logger()
_Line = tuple[str, int, bytes]


class Recorder:
    """Takes records of one process; for one event loop.

    `note` keeps a record in memory until the next flush, at most about a second: a crash may lose
    it. `write` returns once the record is durable.
    """

    def __init__(self, store: AuditStore, *, deadline_seconds: float) -> None:
        self._store = store
        self._waiting: dict[int, dict[str, list[bytes]]] = {}
        self._counts: Counter[str] = Counter()
        self._full = asyncio.Event()
        self._flushing = asyncio.Lock()
        self._is_failing = False
        self._written: GroupCommit[_Line, None] = GroupCommit(
            self._commit, deadline_seconds=deadline_seconds
        )

    def note(self, tenant: str, record: bytes, *, at: int) -> None:
        """Keep a record until the next flush.

        Raises StoreUnavailable if as many of the tenant wait already as are held: what is not
        recorded must not be answered.
        """
        if self._counts[tenant] >= MAX_WAITING:
            raise StoreUnavailable("too many audit records are waiting")
        spans = self._waiting.setdefault(at // ENTRY_SPAN_MS, {})
        spans.setdefault(tenant, []).append(record)
        self._counts[tenant] += 1
        if self._counts[tenant] >= _ENOUGH and not self._is_failing:
            self._full.set()

    async def write(self, tenant: str, record: bytes, *, at: int) -> None:
        """Store a record durably. Raises StoreUnavailable."""
        await self._written.add((tenant, at, record), size=len(record))

    async def run(self) -> None:
        """Flush about once a second, for ever."""
        while True:
            try:
                async with asyncio.timeout(FLUSH_SECONDS):
                    await self._full.wait()
            except TimeoutError:
                pass
            self._full.clear()
            await self.flush()

    async def flush(self) -> None:
        """Store what waits; it goes on waiting if the store cannot be written."""
        async with self._flushing:  # else two would store the same
            while self._waiting and await self._flush_span():
                pass

    async def _flush_span(self) -> bool:
        """Store the records of one span of time; return whether they are stored."""
        span, records = next(iter(self._waiting.items()))
        taken = {tenant: len(lines) for tenant, lines in records.items()}
        try:
            await self._store.add_audit_records(_joined(records))
        except StoreUnavailable as problem:
            if not self._is_failing:
                _log.warning("audit records wait for the store", reason=problem.reason)
            self._is_failing = True
            return False
        self._is_failing = False
        self._forget(span, taken)
        return True

    def _forget(self, span: int, taken: Mapping[str, int]) -> None:
        """Forget what is stored; others may have been added to it since."""
        left = self._waiting[span]
        for tenant, count in taken.items():
            del left[tenant][:count]
            if not left[tenant]:
                del left[tenant]
            self._counts[tenant] -= count
            if not self._counts[tenant]:
                del self._counts[tenant]
        if not left:
            del self._waiting[span]

    async def finish(self) -> None:
        """Store what waits, once; what cannot be stored is logged as lost."""
        await self._written.drain()
        await self.flush()
        lost = self._counts.total()
        if lost:
            _log.error("audit records lost", records=lost)

    async def _commit(self, batch: Sequence[_Line]) -> Sequence[None]:
        spans: dict[int, dict[str, list[bytes]]] = {}
        for tenant, at, record in batch:
            spans.setdefault(at // ENTRY_SPAN_MS, {}).setdefault(tenant, []).append(record)
        for records in spans.values():
            await self._store.add_audit_records(_joined(records))
        return [None] * len(batch)


def _joined(records: Mapping[str, Sequence[bytes]]) -> dict[str, bytes]:
    return {tenant: b"\n".join(lines) + b"\n" for tenant, lines in records.items()}
