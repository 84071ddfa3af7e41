"""The audit trail of a store that is wrapped."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from fhirpub.storage.audit_contract import (
    AuditBlock,
    AuditQuery,
    AuditStore,
    SealedBlock,
    UnsealedAudit,
)
from fhirpub.storage.store import Store


class AuditWrapper(AuditStore):
    """Hands everything on to ``inner``."""

    inner: Store

    async def add_audit_records(self, records: Mapping[str, bytes]) -> None:
        await self.inner.add_audit_records(records)

    async def unsealed_audit(self, *, limit: int, tenants: Collection[str] = ()) -> UnsealedAudit:
        return await self.inner.unsealed_audit(limit=limit, tenants=tenants)

    async def seal_audit(self, blocks: Sequence[SealedBlock], unsealed: UnsealedAudit) -> bool:
        return await self.inner.seal_audit(blocks, unsealed)

    async def put_audit_block(self, sealed: SealedBlock) -> None:
        await self.inner.put_audit_block(sealed)

    async def audit_end(self, tenant: str) -> tuple[int, bytes]:
        return await self.inner.audit_end(tenant)

    async def audit_chain(
        self, tenant: str, *, after: int = 0, limit: int = 100
    ) -> Sequence[AuditBlock]:
        return await self.inner.audit_chain(tenant, after=after, limit=limit)

    async def find_audit_blocks(self, tenant: str, query: AuditQuery) -> Sequence[AuditBlock]:
        return await self.inner.find_audit_blocks(tenant, query)

    async def audited_tenants(self) -> Sequence[str]:
        return await self.inner.audited_tenants()

    async def delete_audit_blocks(self, tenant: str, blocks: Sequence[SealedBlock]) -> None:
        await self.inner.delete_audit_blocks(tenant, blocks)

    async def put_audit_checkpoint(self, tenant: str, number: int, checkpoint: str) -> None:
        await self.inner.put_audit_checkpoint(tenant, number, checkpoint)

    async def audit_checkpoints(
        self, tenant: str, *, after: int = 0, limit: int = 1_000
    ) -> Sequence[tuple[int, str]]:
        return await self.inner.audit_checkpoints(tenant, after=after, limit=limit)
