"""The part of a wrapped store that erases: a test overrides what it seeds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from fhirpub.storage.contract import Version
from fhirpub.storage.erasure.contract import (
    ErasedDeliveries,
    ErasedStep,
    Erasure,
    ErasureStore,
    Hold,
)
from fhirpub.storage.store import Store


class ErasureWrapper(ErasureStore):
    """Hands every call on to another store."""

    inner: Store

    async def put_erasure(self, erasure: Erasure) -> None:
        await self.inner.put_erasure(erasure)

    async def erasures(
        self,
        *,
        tenant: str | None = None,
        unfinished: bool = False,
        after: tuple[str, str] = ("", ""),
        limit: int = 100,
    ) -> Sequence[Erasure]:
        return await self.inner.erasures(
            tenant=tenant, unfinished=unfinished, after=after, limit=limit
        )

    async def erase_versions(self, tenant: str, tombstone: Version) -> ErasedStep:
        return await self.inner.erase_versions(tenant, tombstone)

    async def erase_documents(self, tenant: str, names: Collection[str]) -> int:
        return await self.inner.erase_documents(tenant, names)

    async def shared_documents(
        self, tenant: str, names: Collection[str], *, besides: Collection[str]
    ) -> frozenset[str]:
        return await self.inner.shared_documents(tenant, names, besides=besides)

    async def erase_deliveries(
        self, tenant: str, events: str, change: Callable[[bytes], bytes]
    ) -> ErasedDeliveries:
        return await self.inner.erase_deliveries(tenant, events, change)

    async def put_hold(self, hold: Hold) -> None:
        await self.inner.put_hold(hold)

    async def delete_hold(self, tenant: str, resource: tuple[str, str]) -> bool:
        return await self.inner.delete_hold(tenant, resource)

    async def holds(self, tenant: str) -> Sequence[Hold]:
        return await self.inner.holds(tenant)

    async def forget_erased(self) -> bool:
        return await self.inner.forget_erased()
