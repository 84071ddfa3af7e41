"""The part of the store in MongoDB that keeps quotas: limits, and what each process counted."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pymongo import DeleteOne, ReplaceOne

from fhirpub.storage.mongodb.collections import OnDatabase
from fhirpub.storage.mongodb.errors import within
from fhirpub.storage.mongodb.schema import QUOTA_COUNT, QUOTA_OVERRIDE, STORED_BYTES
from fhirpub.storage.mongodb.stored_bytes import StoredBytes
from fhirpub.storage.quota_contract import QuotaCount, QuotaOverride, QuotaStore, QuotaUse


class MongoQuotas(OnDatabase, QuotaStore):
    """Quotas in the database."""

    @property
    @abstractmethod
    def _stored(self) -> StoredBytes:
        """Return the counter of stored bytes; raises StoreUnavailable as `_collection` does."""

    async def put_quota_overrides(self, overrides: Collection[QuotaOverride]) -> None:
        writes = [_override_write(override) for override in overrides]
        if writes:
            async with within(self._deadline):
                await self._collection(QUOTA_OVERRIDE).bulk_write(writes)

    async def quota_overrides(self) -> Sequence[QuotaOverride]:
        found = await self._list(QUOTA_OVERRIDE, {})
        overrides = [QuotaOverride(d["owner"], d["quota"], d["limit"]) for d in found]
        return sorted(overrides, key=lambda each: (each.owner, each.quota))

    async def put_quota_counts(self, process: str, counts: Collection[QuotaCount]) -> None:
        writes = [_count_write(process, count) for count in counts]
        if writes:
            async with within(self._deadline):
                await self._collection(QUOTA_COUNT).bulk_write(writes, ordered=False)

    async def quota_counts(
        self, owners: Collection[str], *, now: int, besides: str = ""
    ) -> Mapping[QuotaUse, int]:
        wanted = {"owner": {"$in": [*owners]}, "until": {"$gt": now}, "process": {"$ne": besides}}
        sums: Counter[QuotaUse] = Counter()
        for found in await self._list(QUOTA_COUNT, wanted):
            sums[QuotaUse(found["owner"], found["quota"], found["period"])] += found["used"]
        return sums

    async def sweep_quota_counts(self, *, before: int) -> int:
        async with within(self._deadline):
            old = {"until": {"$lt": before}}
            return int((await self._collection(QUOTA_COUNT).delete_many(old)).deleted_count)

    async def stored_bytes(self, tenants: Collection[str]) -> Mapping[str, int]:
        stored = self._stored
        found = {
            document["_id"]: document.get("base", 0) + document.get("added", 0)
            for document in await self._list(STORED_BYTES, {"_id": {"$in": [*tenants]}})
        }
        sizes = {name: found.get(name, 0) + stored.unwritten(name) for name in tenants}
        return {tenant: size for tenant, size in sizes.items() if size > 0}


def _override_write(
    override: QuotaOverride,
) -> ReplaceOne[dict[str, Any]] | DeleteOne:
    key = {"_id": f"{override.owner}/{override.quota}"}
    if override.limit is None:
        return DeleteOne(key)
    return ReplaceOne(key, key | asdict(override), upsert=True)


def _count_write(process: str, count: QuotaCount) -> ReplaceOne[dict[str, Any]]:
    key = {"_id": f"{count.owner}/{count.quota}/{process}"}
    return ReplaceOne(key, key | asdict(count) | {"process": process}, upsert=True)
