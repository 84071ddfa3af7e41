"""Seals records into the chains of their tenants, and signs checkpoints (ADR 35).

One process at a time works, by lease. It may be killed anywhere: what is not sealed is found
again, and a process that comes too late finds the numbers of its blocks taken.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from fhirpub.audit.chain import next_blocks
from fhirpub.audit.checkpoint import Checkpoint, Sign
from fhirpub.audit.outlets import outlets_of
from fhirpub.audit.recorder import MAX_TAKEN_BYTES, Recorder, Taken
from fhirpub.audit.retention import delete_expired
from fhirpub.config.audit import AuditConfig
from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.clock import DAY_MS, Clock
from fhirpub.runtime.faults import where
from fhirpub.runtime.logging import logger
from fhirpub.storage.audit_contract import (
    AuditStore,
    SealedBlock,
    UnsealedAudit,
    UnsealedEntry,
)
from fhirpub.storage.leases import Leases

LEASE = "audit"
PAUSE_SECONDS = 1.0
_RETENTION_SECONDS, _PAUSE_OF_RETENTION = 3_600.0, 0.1
_BATCH_SIZE = 500
_MAX_NOTED = 200
"""The maximum number of tenants whose noted records are sealed in one round."""
_FEW_BYTES = 16 * 1024
"""The records of more are sealed in a thread: to hash and index them takes milliseconds."""

_log = logger()


class Sealer:
    """Seals what waits, and signs checkpoints of what is sealed."""

    def __init__(
        self,
        store: AuditStore,
        *,
        leases: Leases,
        sign: Sign,
        config: AuditConfig,
        clock: Clock,
        recorder: Recorder | None = None,
    ) -> None:
        self._store = store
        self._recorder = recorder
        self._leases = leases
        self._sign = sign
        self._config = config
        self._outlets = outlets_of(config)
        self._keeping: set[asyncio.Task[None]] = set()
        self._clock = clock
        self._uncovered: dict[str, tuple[int, bytes]] = {}
        """The ends of the chains that have grown since their last checkpoint."""
        self._checkpoint_due = 0
        self._was_leading = False
        self._sealing = asyncio.Lock()
        self._work: asyncio.Future[bool] | None = None

    async def run(self) -> None:
        """Seal about once a second, for ever."""
        failing = False
        while True:
            try:
                while not await self.seal():
                    pass
                failing = False
            except Exception as problem:  # noqa: BLE001 - the next round may succeed
                if not failing:
                    _log_failure(problem)
                failing = True
                if self._recorder:  # what was noted is not to wait for the sealing
                    self._recorder.is_sealed_here = False
            await self._pause()

    async def _pause(self) -> None:
        """Return after a second, or when much of what this process seals is waiting."""
        if self._recorder and self._recorder.is_sealed_here:
            await self._recorder.wait()
        else:
            await asyncio.sleep(PAUSE_SECONDS)

    async def seal(self) -> bool:
        """Seal some records, and sign checkpoints when they are due.

        Returns whether nothing is left to do now. Raises StoreUnavailable.
        """
        # A caller that is cancelled interrupts no commit: what is sealed must not be given back.
        self._work = asyncio.ensure_future(self._seal_in_turn())
        self._work.add_done_callback(_retrieve)
        return await asyncio.shield(self._work)

    async def wait(self) -> None:
        """Return when what was being sealed by a cancelled call is sealed, or given back."""
        if self._work is not None:
            await asyncio.wait([self._work])

    async def _seal_in_turn(self) -> bool:
        async with self._sealing:
            return await self._seal_some() if await self._leads() else True

    async def _seal_some(self) -> bool:
        recorder = self._recorder
        noted = [*recorder.tenants][:_MAX_NOTED] if recorder else []
        # Taken before the store is read: the announcement of a change is stored before its outcome
        # is noted, and must not come after it in the chain.
        taken = recorder.take(noted) if recorder else []
        blocks: list[SealedBlock] = []
        is_sealed = False
        try:
            unsealed = await self._store.unsealed_audit(limit=_BATCH_SIZE, tenants=noted)
            blocks = await _compute(next_blocks, with_taken(unsealed, taken))
            is_sealed = await self._store.seal_audit(blocks, unsealed)
        finally:
            added = blocks if is_sealed else await self._added(blocks)
            for sealed in added:
                self._uncovered[sealed.block.tenant] = (sealed.block.number, sealed.block.end)
            if recorder and not is_sealed:
                recorder.give_back(left_of(taken, added))
        if not is_sealed:
            return True  # another process works: what is left, it seals
        is_complete = unsealed.is_complete and _size(taken) < MAX_TAKEN_BYTES
        if is_complete and self._clock() >= self._checkpoint_due:
            await self.sign_checkpoints()
        return is_complete

    async def _added(self, blocks: Iterable[SealedBlock]) -> list[SealedBlock]:
        """Return which of these blocks are in the store, although not all could be added.

        Those of which the store does not say it count as not added: better twice than never.
        """
        added = []
        for sealed in blocks:
            block = sealed.block
            try:
                there = await self._store.audit_chain(
                    block.tenant, after=block.number - 1, limit=1
                )
            except Exception:  # noqa: BLE001 - what was taken is to be given back whatever happens
                break
            if block in there:
                added.append(sealed)
        return added

    async def delete_expired_for_ever(self) -> None:
        """Delete once an hour what is past its retention, a little at a time."""
        while self._config.keep_days:
            try:
                if self._leases.held(LEASE):
                    await self.delete_expired()
            except StoreUnavailable as problem:
                _log.warning("audit records not deleted", reason=problem.reason)
            await asyncio.sleep(_RETENTION_SECONDS)

    async def delete_expired(self) -> None:
        """Delete what is past its retention. Raises StoreUnavailable."""
        now = self._clock()
        before = now - self._config.keep_days * DAY_MS
        for tenant in await self._store.audited_tenants():
            total, deleted = 0, 1
            while deleted:
                deleted = await delete_expired(
                    self._store, tenant, before=before, sign=self._sign, now=now
                )
                total += deleted
                await asyncio.sleep(_PAUSE_OF_RETENTION)
            if total:
                _log.info("audit records deleted", blocks=total, tenant=tenant)

    async def finish(self) -> None:
        """Seal and sign what is left before a stop. Raises StoreUnavailable."""
        if self._leases.held(LEASE):
            while not await self.seal():
                pass
            await self.sign_checkpoints()
            await self._leases.release([LEASE])
        if self._keeping:
            await asyncio.wait(self._keeping)

    async def sign_checkpoints(self) -> None:
        """Sign a checkpoint for each chain that has grown. Raises StoreUnavailable."""
        now = self._clock()
        self._checkpoint_due = now + round(self._config.checkpoint_seconds * 1000)
        lines: list[str] = []
        for tenant, (number, end) in [*self._uncovered.items()]:
            checkpoint = Checkpoint(tenant=tenant, number=number, hash=end, at=now)
            signed = await self._sign(checkpoint.claims())
            await self._store.put_audit_checkpoint(tenant, number, signed)
            lines.append(json.dumps({**checkpoint.claims(), "checkpoint": signed}))
            if self._uncovered.get(tenant) == (number, end):
                del self._uncovered[tenant]
        if lines:
            self._keep_outside(lines, at=now)

    def _keep_outside(self, lines: Sequence[str], *, at: int) -> None:
        """Hand checkpoints to the outlets, for which the sealing does not wait."""
        for outlet in self._outlets:
            keeping = asyncio.create_task(outlet.keep(lines, at=at))
            self._keeping.add(keeping)
            keeping.add_done_callback(self._keeping.discard)

    async def _leads(self) -> bool:
        """Renew the lease, and find the chains without a checkpoint when it is new."""
        if self._leases.due(LEASE):
            await self._leases.take([LEASE])
        leads = self._leases.held(LEASE)
        if self._recorder:
            self._recorder.is_sealed_here = leads
        if leads and not self._was_leading:
            await self._find_uncovered()
        self._was_leading = leads
        return leads

    async def _find_uncovered(self) -> None:
        """Find the ends that another process has not signed."""
        for tenant in await self._store.audited_tenants():
            end = await self._store.audit_end(tenant)
            if not await self._store.audit_checkpoints(tenant, after=end[0] - 1, limit=1):
                self._uncovered[tenant] = end


def _retrieve(work: asyncio.Future[bool]) -> None:
    """Take note of how a seal ended of which the caller was cancelled."""
    if not work.cancelled():
        work.exception()


def _log_failure(problem: Exception) -> None:
    if isinstance(problem, StoreUnavailable):
        _log.warning("audit trail waits for the store", reason=problem.reason)
    else:
        _log.error("audit trail not sealed", **where(problem))


def _size(taken: Iterable[Taken]) -> int:
    return sum(len(line) for _span, _tenant, lines in taken for line in lines)


def with_taken(unsealed: UnsealedAudit, taken: Iterable[Taken]) -> UnsealedAudit:
    """Return what is to be sealed with what this process has noted, and never handed in."""
    entries = [
        UnsealedEntry(tenant=tenant, records=_joined(lines), version=None, source=None)
        for _span, tenant, lines in taken
    ]
    return replace(unsealed, entries=[*unsealed.entries, *entries])


def left_of(taken: Iterable[Taken], added: Iterable[SealedBlock]) -> list[Taken]:
    """Return what was taken and is in none of these blocks."""
    sealed = {
        (entry.tenant, entry.records)
        for block in added
        for entry in block.entries
        if entry.source is None
    }
    return [one for one in taken if (one[1], _joined(one[2])) not in sealed]


def _joined(lines: Iterable[bytes]) -> bytes:
    return b"\n".join([*lines, b""])


async def _compute(
    work: Callable[[UnsealedAudit], list[SealedBlock]], unsealed: UnsealedAudit
) -> list[SealedBlock]:
    """Call a pure function, in a thread if it has much to do."""
    size = sum(len(entry.records) for entry in unsealed.entries)
    return work(unsealed) if size <= _FEW_BYTES else await asyncio.to_thread(work, unsealed)
