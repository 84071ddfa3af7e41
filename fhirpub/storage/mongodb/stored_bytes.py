"""The bytes that each tenant stores in MongoDB, counted beside the writes and not within them.

A process counts in memory what it adds, and increments the counters of the tenants once a second:
an increment in every batch would wait for those of other processes. What was there before this
release is counted at the start: ``base`` of a tenant is what was added before a moment that the
first process chooses, and is written once, so that the computation may be interrupted, repeated,
and made by several processes at once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from contextlib import suppress
from contextvars import Context
from datetime import UTC, datetime
from typing import Any

import pymongo
from bson.objectid import ObjectId
from pymongo import UpdateOne
from pymongo.errors import BulkWriteError, PyMongoError

from fhirpub.runtime.logging import logger
from fhirpub.storage.mongodb.errors import reason, was_not_executed
from fhirpub.storage.mongodb.schema import (
    BLOB,
    NO_EVENTS,
    STORE,
    STORED_BYTES,
    VERSION,
    Database,
    Filter,
    Pipeline,
    Records,
)

_FLUSH_SECONDS = 1.0
_CHUNK = 10_000
"""So many records are summed at a time: each step ends within any deadline."""
_MEMBER_SIZE = {"$add": [{"$binarySize": "$$this.body"}, len(NO_EVENTS)]}
_ATTACHED_SIZE = {"$binarySize": "$$this.data"}
VERSION_SIZE = {
    "$add": [
        {"$sum": {"$map": {"input": {"$ifNull": ["$members", []]}, "in": _MEMBER_SIZE}}},
        {"$sum": {"$map": {"input": {"$ifNull": ["$attached", []]}, "in": _ATTACHED_SIZE}}},
        *(
            {"$binarySize": {"$ifNull": [f"${name}", ""]}}
            for name in ("events", "body", "response", "parts")
        ),
    ]
}

_log = logger()


class StoredBytes:
    """Counts what this process stores; for one event loop."""

    def __init__(self, records: Records, *, seconds: float) -> None:
        self._records = records
        self._seconds = seconds
        self._pending: Counter[str] = Counter()
        self._leaving: Counter[str] = Counter()
        self._stopping = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None

    def add(self, tenant: str, size: int) -> None:
        """Count bytes of a tenant; negative for those that were deleted."""
        self._pending[tenant] += size
        if self._writing is None or self._writing.done():
            # The deadline of the caller, which is part of its context, is not that of the write.
            self._writing = asyncio.create_task(self._write(), context=Context())

    def add_all(self, sizes: Iterable[tuple[str, int]]) -> None:
        """Count bytes of several tenants."""
        for tenant, size in sizes:
            self.add(tenant, size)

    def unwritten(self, tenant: str) -> int:
        """Return the bytes that are counted but not yet in the database."""
        return self._pending[tenant] + self._leaving[tenant]

    async def drain(self) -> None:
        """Write what was counted."""
        self._stopping.set()
        if self._writing is not None:
            await self._writing

    async def _write(self) -> None:
        while self._pending:
            with suppress(TimeoutError):
                async with asyncio.timeout(_FLUSH_SECONDS):
                    await self._stopping.wait()
            await self._flush()
            if self._stopping.is_set():
                break

    async def _flush(self) -> None:
        self._leaving, self._pending = self._pending, Counter()
        left = [*self._leaving.items()]
        writes = [
            UpdateOne({"_id": tenant}, {"$inc": {"added": size}}, upsert=True)
            for tenant, size in left
        ]
        try:
            with pymongo.timeout(self._seconds):
                await self._records.bulk_write(writes, ordered=False)
        except BulkWriteError as error:
            refused = [left[item["index"]] for item in error.details["writeErrors"]]
            self._pending.update(dict(refused))
        except PyMongoError as error:
            # Where the outcome is unknown, too little is better than too much.
            if was_not_executed(error):
                self._pending.update(self._leaving)
            _log.warning("stored bytes not written", reason=reason(error))
        self._leaving = Counter()


async def count_base(database: Database, *, now: int) -> None:
    """Count what was stored before this release; costs one read if that was done.

    The moment is the next full second: processes that served before this start have ended.
    """
    marker = {"_id": STORED_BYTES}
    store = database[STORE]
    chosen = {"$setOnInsert": {"before": (now // 1000 + 1) * 1000, "counted": False}}
    await store.update_one(marker, chosen, upsert=True)
    found = await store.find_one(marker) or {}
    if found.get("counted"):
        return
    before: int = found["before"]
    since = ObjectId.from_datetime(datetime.fromtimestamp(before // 1000, UTC))
    sums: Counter[str] = Counter()
    async for tenant, size in _sums(database[VERSION], {"_id": {"$lt": since}}, VERSION_SIZE):
        sums[tenant] += size
    async for tenant, size in _sums(database[BLOB], {"added": {"$lt": before}}, "$size"):
        sums[tenant] += size
    for tenant, size in sums.items():
        once: Pipeline = [{"$set": {"base": {"$ifNull": ["$base", size]}}}]
        await database[STORED_BYTES].update_one({"_id": tenant}, once, upsert=True)
    await store.update_one(marker, {"$set": {"counted": True}})
    if sums:
        _log.info("stored bytes counted", tenants=len(sums))


async def _sums(
    records: Records, wanted: Filter, size: Any
) -> AsyncGenerator[tuple[str, int], None]:
    """Yield sums of sizes by tenant, some records after the other in the order of ``_id``."""
    behind: list[Filter] = []
    while True:
        steps: Pipeline = [
            {"$match": {"$and": [wanted, *behind]}},
            {"$sort": {"_id": 1}},
            {"$limit": _CHUNK},
            {"$group": {"_id": "$tenant", "bytes": {"$sum": size}, "last": {"$max": "$_id"}}},
        ]
        found = await records.aggregate(steps).to_list(None)
        if not found:
            return
        for group in found:
            yield group["_id"], group["bytes"]
        behind = [{"_id": {"$gt": max(group["last"] for group in found)}}]
