"""Seals records into the chains of their tenants, and signs checkpoints (ADR 35).

One process at a time works, by lease. It may be killed anywhere: what is not sealed is found
again, and a process that comes too late finds the numbers of its blocks taken.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

from fhirpub.audit.chain import next_blocks
from fhirpub.audit.checkpoint import Checkpoint, Sign
from fhirpub.audit.retention import delete_expired
from fhirpub.config.audit import AuditConfig
from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.clock import DAY_MS, Clock
from fhirpub.runtime.logging import logger, where
from fhirpub.storage.audit_contract import AuditStore, SealedBlock, UnsealedAudit
from fhirpub.storage.leases import Leases

LEASE = "audit"
PAUSE_SECONDS = 1.0
_RETENTION_SECONDS, _PAUSE_OF_RETENTION = 3_600.0, 0.1
_BATCH_SIZE = 500
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
    ) -> None:
        self._store = store
        self._leases = leases
        self._sign = sign
        self._config = config
        self._clock = clock
        self._uncovered: dict[str, tuple[int, bytes]] = {}
        """The ends of the chains that have grown since their last checkpoint."""
        self._checkpoint_due = 0
        self._was_leading = False
        self._sealing = asyncio.Lock()

    async def run(self) -> None:
        """Seal about once a second, for ever."""
        failing = False
        while True:
            try:
                while not await self.seal():
                    pass
                failing = False
            except StoreUnavailable as problem:
                if not failing:
                    _log.warning("audit trail waits for the store", reason=problem.reason)
                failing = True
            except Exception as problem:  # noqa: BLE001 - the next round may succeed
                if not failing:
                    _log.error("audit trail not sealed", **where(problem))
                failing = True
            await asyncio.sleep(PAUSE_SECONDS)

    async def seal(self) -> bool:
        """Seal some records, and sign checkpoints when they are due.

        Returns whether nothing is left to do now. Raises StoreUnavailable.
        """
        async with self._sealing:
            return await self._seal_some() if await self._leads() else True

    async def _seal_some(self) -> bool:
        unsealed = await self._store.unsealed_audit(limit=_BATCH_SIZE)
        blocks = await _compute(next_blocks, unsealed)
        if not await self._store.seal_audit(blocks, unsealed):
            return True  # another process works: what is left, it seals
        for sealed in blocks:
            self._uncovered[sealed.block.tenant] = (sealed.block.number, sealed.block.end)
        if unsealed.is_complete and self._clock() >= self._checkpoint_due:
            await self.sign_checkpoints()
        return unsealed.is_complete

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

    async def sign_checkpoints(self) -> None:
        """Sign a checkpoint for each chain that has grown. Raises StoreUnavailable."""
        now = self._clock()
        self._checkpoint_due = now + round(self._config.checkpoint_seconds * 1000)
        for tenant, (number, end) in [*self._uncovered.items()]:
            checkpoint = Checkpoint(tenant=tenant, number=number, hash=end, at=now)
            signed = await self._sign(checkpoint.claims())
            await self._store.put_audit_checkpoint(tenant, number, signed)
            if self._config.checkpoints_file:
                await asyncio.to_thread(self._append, checkpoint, signed)
            if self._uncovered.get(tenant) == (number, end):
                del self._uncovered[tenant]

    def _append(self, checkpoint: Checkpoint, signed: str) -> None:
        """Append a checkpoint to the file outside; a failure is logged."""
        line = json.dumps({**checkpoint.claims(), "checkpoint": signed})
        try:
            with Path(self._config.checkpoints_file).open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as problem:
            _log.error("checkpoint not written to the file", reason=problem.strerror)

    async def _leads(self) -> bool:
        """Renew the lease, and find the chains without a checkpoint when it is new."""
        if self._leases.due(LEASE):
            await self._leases.take([LEASE])
        leads = self._leases.held(LEASE)
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


async def _compute(
    work: Callable[[UnsealedAudit], list[SealedBlock]], unsealed: UnsealedAudit
) -> list[SealedBlock]:
    """Call a pure function, in a thread if it has much to do."""
    size = sum(len(entry.records) for entry in unsealed.entries)
    return work(unsealed) if size <= _FEW_BYTES else await asyncio.to_thread(work, unsealed)
