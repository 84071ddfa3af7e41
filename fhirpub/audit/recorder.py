"""Hands records of one process to the store: at once and awaited, or together within a second."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from fhirpub.audit.chain import ENTRY_SPAN_MS
from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.logging import logger
from fhirpub.storage.audit_contract import MAX_UNSEALED_BYTES, AuditStore
from fhirpub.storage.batching import Bounds, GroupCommit
from fhirpub.storage.page_size import up_to_size

FLUSH_SECONDS = 1.0
MAX_WAITING = 10_000
"""The maximum number of records of one tenant that wait while the store cannot be written."""
MAX_WAITING_BYTES = 4 * 1024 * 1024
"""The size in bytes beyond which no other record of a tenant waits."""
_ENOUGH = 3_000
"""So many of a tenant are handed in, or sealed, before the second is over."""
MAX_TAKEN_BYTES = 1024 * 1024
"""The size in bytes at which no more is taken: to seal often costs more than to seal much."""

_log = logger()
_Line = tuple[str, int, bytes]
Taken = tuple[int, str, list[bytes]]
"""The span of time, the tenant, and the records of what was taken."""


@dataclass(slots=True)
class _Held:
    """How many records of a tenant wait, and their size in bytes."""

    count: int = 0
    size: int = 0


class Recorder:
    """Takes records of one process; for one event loop.

    `note` keeps a record in memory until the next flush, at most about a second: a crash may lose
    it. `write` returns once the record is durable. Where this process seals, it `take`s what was
    noted into the chain directly.
    """

    def __init__(self, store: AuditStore, *, deadline_seconds: float) -> None:
        self._store = store
        self._waiting: dict[int, dict[str, list[bytes]]] = {}
        self._held: dict[str, _Held] = {}
        self._full = asyncio.Event()
        self._flushing = asyncio.Lock()
        self._work: asyncio.Future[None] | None = None
        self._is_failing = False
        self.is_sealed_here = False
        """Whether what is noted is taken, and need not be flushed."""
        self._written: GroupCommit[_Line, None] = GroupCommit(
            self._commit,
            deadline_seconds=deadline_seconds,
            bounds=Bounds(size=MAX_UNSEALED_BYTES),
        )

    def note(self, tenant: str, record: bytes, *, at: int) -> None:
        """Keep a record until the next flush.

        Raises StoreUnavailable if as many of the tenant wait already as are held: what is not
        recorded must not be answered.
        """
        held = self._held.get(tenant) or self._hold(tenant)
        if held.count >= MAX_WAITING or held.size >= MAX_WAITING_BYTES:
            raise StoreUnavailable("too many audit records are waiting")
        span = at // ENTRY_SPAN_MS
        try:
            self._waiting[span][tenant].append(record)
        except KeyError:
            self._waiting.setdefault(span, {})[tenant] = [record]
        held.count += 1
        held.size += len(record)
        if held.count >= _ENOUGH and not self._is_failing:
            self._full.set()

    def _hold(self, tenant: str) -> _Held:
        return self._held.setdefault(tenant, _Held())

    async def write(self, tenant: str, record: bytes, *, at: int) -> None:
        """Store a record durably. Raises StoreUnavailable."""
        await self._written.add((tenant, at, record), size=len(record))

    async def run(self) -> None:
        """Flush about once a second, for ever, unless another takes what is noted."""
        while True:
            if self.is_sealed_here:
                await asyncio.sleep(FLUSH_SECONDS)
            else:
                await self.wait()
                # To cancel this interrupts no commit: what is stored must not be stored again.
                self._work = asyncio.ensure_future(self.flush())
                await asyncio.shield(self._work)

    async def wait(self) -> None:
        """Return after a second, or when much is waiting."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_SECONDS):
                await self._full.wait()
        self._full.clear()

    @property
    def tenants(self) -> Collection[str]:
        """The tenants of what waits."""
        return self._held.keys()

    def take(self, tenants: Collection[str]) -> list[Taken]:
        """Return what waits of some tenants, which does not wait any more; see `give_back`.

        As much as is sealed together. Nothing while a flush is storing it.
        """
        if self._flushing.locked():
            return []
        places = [
            (span, tenant, lines)
            for span, records in self._waiting.items()
            for tenant in tenants
            if (lines := records.get(tenant))
        ]
        taken = _some_of(places, MAX_TAKEN_BYTES)
        for span, tenant, lines in taken:
            self._forget(span, tenant, len(lines))
        return taken

    def give_back(self, taken: Iterable[Taken]) -> None:
        """Let what was taken wait again, before what was noted since."""
        for span, tenant, lines in taken:
            records = self._waiting.setdefault(span, {})
            records[tenant] = [*lines, *records.get(tenant, ())]
            held = self._hold(tenant)
            held.count += len(lines)
            held.size += sum(map(len, lines))

    async def flush(self) -> None:
        """Store what waits; it goes on waiting if the store cannot be written."""
        async with self._flushing:  # else two would store the same
            while self._waiting and await self._flush_some():
                pass

    async def _flush_some(self) -> bool:
        """Store some records of one span of time; return whether they are stored."""
        span, records = next(iter(self._waiting.items()))
        places = ((span, tenant, lines) for tenant, lines in records.items())
        some = _some_of(places, MAX_UNSEALED_BYTES)
        try:
            await self._store.add_audit_records(_joined({name: lines for _, name, lines in some}))
        except StoreUnavailable as problem:
            if not self._is_failing:
                _log.warning("audit records wait for the store", reason=problem.reason)
            self._is_failing = True
            return False
        self._is_failing = False
        for _span, tenant, lines in some:
            self._forget(span, tenant, len(lines))
        return True

    def _forget(self, span: int, tenant: str, count: int) -> None:
        """Forget the first records of a tenant; others may have been added to them since."""
        left, held = self._waiting[span], self._held[tenant]
        held.count -= count
        held.size -= sum(map(len, left[tenant][:count]))
        del left[tenant][:count]
        if not left[tenant]:
            del left[tenant]
        if not left:
            del self._waiting[span]
        if not held.count:
            del self._held[tenant]

    async def finish(self) -> None:
        """Store what waits, once; what cannot be stored is logged as lost."""
        await self._written.drain()
        await self.flush()
        lost = sum(held.count for held in self._held.values())
        if lost:
            _log.error("audit records lost", records=lost)

    async def _commit(self, batch: Sequence[_Line]) -> Sequence[None]:
        spans: dict[int, dict[str, list[bytes]]] = {}
        for tenant, at, record in batch:
            spans.setdefault(at // ENTRY_SPAN_MS, {}).setdefault(tenant, []).append(record)
        for records in spans.values():
            await self._store.add_audit_records(_joined(records))
        return [None] * len(batch)


def _some_of(places: Iterable[Taken], room: int) -> list[Taken]:
    """Return the first lines of what waits, up to a size in bytes."""
    some: list[Taken] = []
    for span, tenant, lines in places:
        if room <= 0:
            break
        first = [*up_to_size(lines, len, most=room)]
        room -= sum(map(len, first))
        some.append((span, tenant, first))
    return some


def _joined(records: Mapping[str, Sequence[bytes]]) -> dict[str, bytes]:
    return {tenant: b"\n".join(lines) + b"\n" for tenant, lines in records.items()}
