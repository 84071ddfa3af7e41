"""Reads of a MongoDB store: grouped look-ups by key, histories, and searches."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pymongo.read_concern import ReadConcern

from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.fair_turns import FairTurns
from fhirpub.storage.batching import GroupedReads
from fhirpub.storage.contract import (
    MAX_SEARCH_SHARE,
    SMALL_BYTES,
    BlobInfo,
    Page,
    SearchQuery,
    Version,
)
from fhirpub.storage.id_search import FEW, lookup_by_ids
from fhirpub.storage.mongodb.collections import SEVERAL, one_batch
from fhirpub.storage.mongodb.documents import (
    LARGEST_INTEGER,
    NOT_SHOWN,
    PIECE_BYTES,
    Document,
    Key,
    blob_id,
    blob_of,
    piece_id,
    version_key_of,
    version_of,
    version_with_members,
)
from fhirpub.storage.mongodb.errors import within
from fhirpub.storage.mongodb.member_reads import MemberReads
from fhirpub.storage.mongodb.primary import Primary
from fhirpub.storage.mongodb.projections import listed_with
from fhirpub.storage.mongodb.removal.reuse import Reuse
from fhirpub.storage.mongodb.schema import (
    BLOB,
    PIECE,
    VERSION,
    VERSION_KEY,
    Cursor,
    Pipeline,
    Records,
    attached_as_blob,
    by_keys,
)
from fhirpub.storage.mongodb.search.pages import Pages
from fhirpub.tenant import is_member_id

_LARGE_LIMIT = 200
"""A page of more takes a tenth of a second of the server and of this process, or longer."""
_MAX_LARGE, _LARGE_PER_TENANT = 2, 1
"""So many of these are searched at the same time."""

_DRIVER_THREADS = 5 * (os.cpu_count() or 1)
"""What Motor waits for the server in: each read takes one of them while it is in progress."""


def shares_of(threads: int) -> tuple[int, int]:
    """Return how many reads may be in progress that are made for one tenant alone, and for each.

    These are searches, histories, large versions and documents. What many ask for together needs
    few threads. With one turn a tenant would wait for each of its own reads, also on an idle
    machine.
    """
    return threads * 8 // 10, max(2, threads * 3 // 10)


_MAX_READS, READS_PER_TENANT = shares_of(_DRIVER_THREADS)

_IS_SMALL = {"$lte": [{"$bsonSize": "$$ROOT"}, SMALL_BYTES]}
_ITS_KEY = {"id": "$id", "version": "$version", "tenant": "$tenant"}
_IF_SMALL = {"$replaceRoot": {"newRoot": {"$cond": [_IS_SMALL, "$$ROOT", _ITS_KEY]}}}
"""What many ask for together comes together, but for what is large: that takes memory."""
_ATTACHED_AT_ONCE = 16
"""So many documents of versions are searched for by one command."""
_HAS_FEW = {"$lte": [{"$binarySize": {"$ifNull": ["$data", b""]}}, SMALL_BYTES]}
_SHOWN_OF_A_BLOB = {
    "sha256": 1,
    "content_type": 1,
    # Version 2 of the schema had no size, and had the bytes of large blobs here as well.
    "size": {"$ifNull": ["$size", {"$binarySize": {"$ifNull": ["$data", b""]}}]},
    "data": {"$cond": [_HAS_FEW, "$data", "$$REMOVE"]},
}


class Reads:
    """Reads versions; see `mongodb.py` for why none is stale.

    Look-ups by key are grouped without the tenant, which is compared afterwards: an id is
    derived from its tenant's secret, so that requests for another tenant's id are rare. They are
    answered without a second query: its time would reveal that the resource exists.
    """

    def __init__(
        self,
        collections: Mapping[str, Records],
        *,
        primary: Primary,
        one_moment: ReadConcern,
        reuse: Reuse,
        seconds: float,
    ) -> None:
        self._primary = primary
        self._versions = versions = collections[VERSION]
        self._blobs, self._pieces = collections[BLOB], collections[PIECE]
        self._seconds = seconds
        self._most = seconds * MAX_SEARCH_SHARE
        self._turns = FairTurns(max_turns=_MAX_READS, per_owner=READS_PER_TENANT)
        self._large_turns = FairTurns(max_turns=_MAX_LARGE, per_owner=_LARGE_PER_TENANT)
        self._latest: GroupedReads[str, Document] = GroupedReads(
            self._fetch_latest, deadline_seconds=seconds, bounds=SEVERAL
        )
        self._shown: GroupedReads[str, Document] = GroupedReads(
            self._fetch_shown, deadline_seconds=seconds, bounds=SEVERAL
        )
        self._few_blobs: GroupedReads[tuple[str, ...], Sequence[Document]] = GroupedReads(
            self._fetch_few_blobs, deadline_seconds=seconds, bounds=SEVERAL
        )
        self._exact: GroupedReads[Key, Document] = GroupedReads(
            self._fetch_exact_if_small, deadline_seconds=seconds, bounds=SEVERAL
        )
        self._members = MemberReads(versions, self._answer, seconds=seconds)
        self._pages = Pages(
            versions,
            one_moment,
            primary=primary,
            members=self._members,
            reuse=reuse,
            seconds=seconds,
        )

    async def latest(self, tenant: str, resource_id: str) -> Version | None:
        """Return the newest version."""
        grouped = self._members.latest if is_member_id(resource_id) else self._latest
        return await self._whole(tenant, await grouped.get(resource_id))

    async def latest_public(self, tenant: str, resource_id: str) -> Version | None:
        """Return what readers see of the newest version."""
        if is_member_id(resource_id):
            member = await self.latest(tenant, resource_id)
            return member and member.without_internal_fields()
        found = await self._shown.get(resource_id)
        whole = await self._whole(tenant, found)
        if whole is None or (found and "body" in found):
            return whole
        return whole.without_internal_fields()

    async def version(self, tenant: str, resource_id: str, version: int) -> Version | None:
        """Return one version."""
        grouped = self._members.exact if is_member_id(resource_id) else self._exact
        key = (resource_id, min(version, LARGEST_INTEGER))
        return await self._whole(tenant, await grouped.get(key))

    async def _whole(self, tenant: str, found: Document | None) -> Version | None:
        """Return a version that was looked up together with others, all of it, if it is theirs."""
        if found is None or found["tenant"] != tenant:
            return None
        if "body" in found:
            return version_of(found)
        async with self._turn(tenant):
            return await self._pages.read_alone(tenant, found)

    async def history(
        self, tenant: str, resource_id: str, *, below: int | None, limit: int
    ) -> Sequence[Version]:
        """Return versions, newest first."""
        if not limit:
            return []
        look = self._members.history if is_member_id(resource_id) else self._history
        most = LARGEST_INTEGER if below is None else min(below, LARGEST_INTEGER)
        async with self._turn(tenant):
            found = await look(tenant, resource_id, below=most, limit=limit)
        return [version_of(document) for document in found]

    async def _history(
        self, tenant: str, resource_id: str, *, below: int, limit: int
    ) -> Sequence[Document]:
        wanted = {"id": resource_id, "tenant": tenant, "version": {"$lt": below}}
        options = {"sort": [("version", -1)], "hint": VERSION_KEY, **one_batch(limit)}
        return await self._answer(
            lambda: self._versions.find(wanted, listed_with(None), **options)
        )

    async def search(self, tenant: str, query: SearchQuery) -> Page:
        """Return a page; raises SearchTooCostly, and Throttled if the tenant has too many."""

        async def latest(ids: Collection[str]) -> Sequence[Version | None]:
            return await asyncio.gather(*(self.latest(tenant, id_) for id_ in ids))

        without = await lookup_by_ids(query, latest)
        if without is not None:
            return without
        async with self._large_turn(tenant, query), self._turn(tenant):
            return await self._pages.search(tenant, query)

    async def blobs(self, tenant: str, names: Collection[str]) -> Mapping[str, BlobInfo]:
        """Return blobs; requests for a few are answered together."""
        ids = tuple({blob_id(tenant, name) for name in names})
        if not ids:
            return {}
        if len(ids) <= FEW:
            found = await self._few_blobs.get(ids) or ()
        else:
            async with self._turn(tenant):
                found = list((await self._blobs_by_id(ids)).values())
        return {document["sha256"]: blob_of(document) for document in found}

    async def _fetch_few_blobs(
        self, groups: Collection[tuple[str, ...]]
    ) -> Mapping[tuple[str, ...], Sequence[Document]]:
        by_id = await self._blobs_by_id({name for group in groups for name in group})
        return {group: [by_id[name] for name in group if name in by_id] for group in groups}

    async def _blobs_by_id(self, ids: Iterable[str]) -> Mapping[str, Document]:
        wanted = {"_id": {"$in": list(ids)}}
        found = await self._answer(lambda: self._blobs.find(wanted, _SHOWN_OF_A_BLOB))
        by_id: dict[str, Document] = {document["_id"]: document for document in found}
        others = [name for name in wanted["_id"]["$in"] if name not in by_id]
        for start in range(0, len(others), _ATTACHED_AT_ONCE):
            by_id |= await self._attached_by_id(others[start : start + _ATTACHED_AT_ONCE])
        return by_id

    async def _attached_by_id(self, ids: Sequence[str]) -> Mapping[str, Document]:
        """Return documents that versions hold, in the form of blobs."""
        first, *others = map(attached_as_blob, ids)
        union = [{"$unionWith": {"coll": VERSION, "pipeline": other}} for other in others]
        found = await self._answer(lambda: self._versions.aggregate([*first, *union]))
        return {document["_id"]: document for document in found}

    async def blob_pieces(
        self, tenant: str, blob: BlobInfo, part: slice
    ) -> AsyncGenerator[bytes, None]:
        """Yield a part of a blob, piece by piece as they are stored."""
        if blob.data is not None:
            yield blob.data[part]
            return
        start = part.start
        while start < part.stop:
            number, offset = divmod(start, PIECE_BYTES)
            async with self._turn(tenant):
                data = await self._data(self._pieces, piece_id(tenant, blob.sha256, number))
            if data is None:
                async for piece in self._read_undivided(tenant, blob, slice(start, part.stop)):
                    yield piece
                return
            yield data[offset : offset + part.stop - start]
            start += PIECE_BYTES - offset

    async def _read_undivided(
        self, tenant: str, blob: BlobInfo, part: slice
    ) -> AsyncGenerator[bytes, None]:
        """Yield a part of a blob that is small, or was kept when none was divided."""
        async with self._turn(tenant):
            data = await self._data(self._blobs, blob_id(tenant, blob.sha256))
        if data is None:
            raise StoreUnavailable("a document is missing")
        for start in range(part.start, part.stop, PIECE_BYTES):
            yield data[start : min(start + PIECE_BYTES, part.stop)]

    async def _data(self, records: Records, record_id: str) -> bytes | None:
        found = await self._answer(lambda: records.find({"_id": record_id}, {"data": True}))
        return found[0].get("data") if found else None

    async def scan(self, after: Key, limit: int) -> Sequence[tuple[str, Version]]:
        """Return versions of all tenants by the index of their keys."""
        resource_id, version = after
        in_order = [("id", 1), ("version", 1)]
        first: list[tuple[str, Any]] = [("id", resource_id), ("version", version + 1)]
        versions = self._versions
        options = one_batch(limit)
        found = await self._answer(
            lambda: versions.find({}, sort=in_order, hint=VERSION_KEY, **options).min(first)
        )
        return [(document["tenant"], version_with_members(document)) for document in found]

    async def _fetch_latest(self, ids: Collection[str]) -> Mapping[str, Document]:
        return await self._fetch_newest(ids, without=())

    async def _fetch_shown(self, ids: Collection[str]) -> Mapping[str, Document]:
        return await self._fetch_newest(ids, without=NOT_SHOWN)

    async def _fetch_newest(
        self, ids: Collection[str], *, without: Collection[str]
    ) -> Mapping[str, Document]:
        # Answered by one step through the index for each id, however many versions there are.
        newest: Pipeline = [
            {"$match": {"id": {"$in": list(ids)}}},
            {"$sort": {"id": -1, "version": -1}},
            {"$group": {"_id": "$id", "newest": {"$first": "$$ROOT"}}},
        ]
        newest.append({"$unset": [f"newest.{name}" for name in ("members", *without)]})
        newest += [{"$replaceRoot": {"newRoot": "$newest"}}, _IF_SMALL]
        found = await self._answer(lambda: self._versions.aggregate(newest, hint=VERSION_KEY))
        return {document["id"]: document for document in found}

    async def _fetch_exact_if_small(self, keys: Collection[Key]) -> Mapping[Key, Document]:
        those: Pipeline = [{"$match": by_keys(keys)}, {"$unset": "members"}, _IF_SMALL]
        found = await self._answer(lambda: self._versions.aggregate(those, hint=VERSION_KEY))
        return {version_key_of(document): document for document in found}

    @asynccontextmanager
    async def _turn(self, tenant: str) -> AsyncGenerator[None]:
        """Hold a turn of a tenant, within the deadline.

        Raises Throttled if those that it has are in the way for too long.
        """
        async with within(self._seconds), self._turns.turn(tenant, seconds=self._most):
            yield

    @asynccontextmanager
    async def _large_turn(self, tenant: str, query: SearchQuery) -> AsyncGenerator[None]:
        """Hold one of the few turns for large pages, if this is one; raises Throttled."""
        if query.limit <= _LARGE_LIMIT:
            yield
            return
        async with within(self._seconds), self._large_turns.turn(tenant, seconds=self._most):
            yield

    async def _answer(self, ask: Callable[[], Cursor]) -> list[dict[str, Any]]:
        return await self._primary.answer(lambda: ask().to_list(None))
