"""The quota part of a store that delegates to another one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from fhirpub.storage.quota_contract import QuotaCount, QuotaOverride, QuotaStore, QuotaUse
from fhirpub.storage.store import Store


class QuotasWrapper(QuotaStore):
    """The methods that :class:`tests.faults.broken_stores.StoreWrapper` delegates unchanged."""

    inner: Store

    async def put_quota_overrides(self, overrides: Collection[QuotaOverride]) -> None:
        await self.inner.put_quota_overrides(overrides)

    async def quota_overrides(self) -> Sequence[QuotaOverride]:
        return await self.inner.quota_overrides()

    async def put_quota_counts(self, process: str, counts: Collection[QuotaCount]) -> None:
        await self.inner.put_quota_counts(process, counts)

    async def quota_counts(
        self, owners: Collection[str], *, now: int, besides: str = ""
    ) -> Mapping[QuotaUse, int]:
        return await self.inner.quota_counts(owners, now=now, besides=besides)

    async def sweep_quota_counts(self, *, before: int) -> int:
        return await self.inner.sweep_quota_counts(before=before)

    async def stored_bytes(self, tenants: Collection[str]) -> Mapping[str, int]:
        return await self.inner.stored_bytes(tenants)
