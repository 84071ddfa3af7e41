"""Reads of a MongoDB store: grouped look-ups by key, histories, and searches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from motor.motor_asyncio import AsyncIOMotorCommandCursor, AsyncIOMotorCursor
from pymongo.read_concern import ReadConcern

from fhirpub.storage.batching import GroupedReads
from fhirpub.storage.contract import Blob, Page, SearchQuery, Version
from fhirpub.storage.mongodb_documents import (
    LARGEST_INTEGER,
    Document,
    Key,
    blob_id,
    blob_of,
    version_of,
)
from fhirpub.storage.mongodb_outcomes import answer, within
from fhirpub.storage.mongodb_schema import VERSION_KEY, Pipeline, Records, by_keys
from fhirpub.storage.mongodb_search import page_and_total
from fhirpub.storage.paging import FEW, page_without_search

Cursor = AsyncIOMotorCursor[dict[str, Any]] | AsyncIOMotorCommandCursor[dict[str, Any]]

_SMALL = 64 * 1024
"""So many bytes may wait for what others read at the same time, and make them wait."""


class Reads:
    """Reads versions; see `mongodb.py` for why none is stale.

    Look-ups by key are grouped without the tenant, which is compared afterwards: an id is
    derived from its tenant's secret, so that hardly ever anybody asks for another's.
    """

    def __init__(
        self, versions: Records, blobs: Records, *, one_moment: ReadConcern, seconds: float
    ) -> None:
        self._versions = versions
        self._blobs = blobs
        self._of_one_moment = versions.with_options(read_concern=one_moment)
        self._seconds = seconds
        self._latest: GroupedReads[str, Document] = GroupedReads(
            self._fetch_latest, deadline_seconds=seconds
        )
        self._small_blobs: GroupedReads[tuple[str, ...], Sequence[Document]] = GroupedReads(
            self._fetch_small_blobs, deadline_seconds=seconds
        )
        self._exact: GroupedReads[Key, Document] = GroupedReads(
            self._fetch_exact, deadline_seconds=seconds
        )

    async def latest(self, tenant: str, resource_id: str) -> Version | None:
        """Return the newest version."""
        found = await self._latest.get(resource_id)
        if found is None:
            return None
        if found["tenant"] == tenant:
            return version_of(found)
        newest = await self.history(tenant, resource_id, below=None, limit=1)
        return newest[0] if newest else None

    async def version(self, tenant: str, resource_id: str, version: int) -> Version | None:
        """Return one version."""
        found = await self._exact.get((resource_id, min(version, LARGEST_INTEGER)))
        return version_of(found) if found is not None and found["tenant"] == tenant else None

    async def history(
        self, tenant: str, resource_id: str, *, below: int | None, limit: int
    ) -> Sequence[Version]:
        """Return versions, newest first."""
        if not limit:
            return []
        wanted = {
            "id": resource_id,
            "tenant": tenant,
            "version": {"$lt": LARGEST_INTEGER if below is None else min(below, LARGEST_INTEGER)},
        }
        newest_first = [("version", -1)]
        found = await self._answer(
            lambda: self._versions.find(wanted, sort=newest_first, limit=limit, hint=VERSION_KEY)
        )
        return [version_of(each) for each in found]

    async def search(self, tenant: str, query: SearchQuery) -> Page:
        """Return a page."""

        async def latest(ids: Collection[str]) -> Sequence[Version | None]:
            return await asyncio.gather(*(self.latest(tenant, each) for each in ids))

        without = await page_without_search(query, latest)
        if without is not None:
            return without
        pipeline, index = page_and_total(tenant, query)
        async with within(self._seconds):
            hint = {} if index is None else {"hint": index}
            found = await self._answer(lambda: self._of_one_moment.aggregate(pipeline, **hint))
            counted = found.pop()["total"] if found and "total" in found[-1] else 0
            keys = [(each["id"], each["version"]) for each in found[: query.limit]]
            # Versions never change: what the page consists of is settled already.
            kept = await self._fetch_exact(keys)
        versions = tuple(version_of(kept[each]) for each in keys)
        total = counted if query.total else None
        return Page(versions, total, more=len(found) > len(versions))

    async def blobs(self, tenant: str, names: Collection[str]) -> Mapping[str, Blob]:
        """Return blobs: small ones together with what others ask for, large ones by themselves."""
        ids = tuple({blob_id(tenant, each) for each in names})
        found: list[Document] = []
        if 0 < len(ids) <= FEW:
            found += await self._small_blobs.get(ids) or ()
        left = set(ids) - {each["_id"] for each in found}
        if left:
            wanted = {"_id": {"$in": list(left)}}
            found += await self._answer(lambda: self._blobs.find(wanted))
        return {each["sha256"]: blob_of(each) for each in found}

    async def _fetch_small_blobs(
        self, groups: Collection[tuple[str, ...]]
    ) -> Mapping[tuple[str, ...], Sequence[Document]]:
        ids = {each for group in groups for each in group}
        small = {"$expr": {"$lte": [{"$binarySize": "$data"}, _SMALL]}}
        wanted = {"_id": {"$in": list(ids)}, **small}
        found = await self._answer(lambda: self._blobs.find(wanted))
        by_id = {each["_id"]: each for each in found}
        return {group: [by_id[each] for each in group if each in by_id] for group in groups}

    async def walk(self, after: Key, limit: int) -> Sequence[tuple[str, Version]]:
        """Return versions of all tenants by the index of their keys."""
        resource_id, version = after
        in_order = [("id", 1), ("version", 1)]
        first: list[tuple[str, Any]] = [("id", resource_id), ("version", version + 1)]
        versions = self._versions
        found = await self._answer(
            lambda: versions.find({}, sort=in_order, limit=limit, hint=VERSION_KEY).min(first)
        )
        return [(each["tenant"], version_of(each)) for each in found]

    async def _fetch_latest(self, ids: Collection[str]) -> Mapping[str, Document]:
        # Answered by one step through the index for each id, however many versions there are.
        newest: Pipeline = [
            {"$match": {"id": {"$in": list(ids)}}},
            {"$sort": {"id": -1, "version": -1}},
            {"$group": {"_id": "$id", "newest": {"$first": "$$ROOT"}}},
        ]
        found = await self._answer(lambda: self._versions.aggregate(newest, hint=VERSION_KEY))
        return {each["_id"]: each["newest"] for each in found}

    async def _fetch_exact(self, keys: Collection[Key]) -> Mapping[Key, Document]:
        if not keys:
            return {}
        wanted = by_keys(keys)
        found = await self._answer(lambda: self._versions.find(wanted, hint=VERSION_KEY))
        return {(each["id"], each["version"]): each for each in found}

    async def _answer(self, ask: Callable[[], Cursor]) -> list[dict[str, Any]]:
        return await answer(lambda: ask().to_list(None), seconds=self._seconds)
