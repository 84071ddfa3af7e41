"""The part of the store in MongoDB that erases.

The server keeps what was replaced for a while: in its journal, its oplog and in free blocks of its
files (`docs/operators.md` says for how long).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from typing import Any

from fhirpub.runtime.clock import Clock
from fhirpub.storage.contract import Version
from fhirpub.storage.erasure.contract import (
    ErasedDeliveries,
    ErasedStep,
    Erasure,
    ErasureStore,
    Hold,
)
from fhirpub.storage.erasure.tombstones import erased_type, member_body
from fhirpub.storage.mongodb.documents import Document, blob_id
from fhirpub.storage.mongodb.errors import within
from fhirpub.storage.mongodb.removal.blob_sweep import BlobSweep
from fhirpub.storage.mongodb.removal.reuse import Reuse
from fhirpub.storage.mongodb.schema import (
    BLOB,
    BY_ID,
    DELIVERY,
    ENDPOINT,
    ERASURE,
    HOLD,
    NO_EVENTS,
    PIECE,
    VERSION,
    VERSION_KEY,
    Pipeline,
)
from fhirpub.storage.mongodb.stored_bytes import VERSION_SIZE

_FRESH_MS = 3_600_000
"""A document that was added within the last hour may belong to a version on its way."""
_KEPT_OF_A_MEMBER = ("id", "version", "type", "created")
_GONE = ("documents", "attached", "digest", "unrelayed", "member_types")


class MongoErasure(BlobSweep, ErasureStore):
    """Erasure in the database."""

    _clock: Clock

    @property
    @abstractmethod
    def _reuse(self) -> Reuse:
        """Return what remembers whether tenants have reuse; raises StoreUnavailable as well."""

    async def put_erasure(self, erasure: Erasure) -> None:
        key = f"{erasure.tenant}/{erasure.id}"
        await self._put(ERASURE, {"_id": key, **asdict(erasure)})
        self._reuse.forget(erasure.tenant)

    async def erasures(
        self,
        *,
        tenant: str | None = None,
        unfinished: bool = False,
        after: tuple[str, str] = ("", ""),
        limit: int = 100,
    ) -> Sequence[Erasure]:
        wanted: dict[str, Any] = {"_id": {"$gt": "/".join(after)}} if any(after) else {}
        if tenant is not None:
            wanted["tenant"] = tenant
        if unfinished:
            wanted["finished"] = None
        in_order = [("_id", 1)]
        found = await self._list(ERASURE, wanted, {"_id": False}, sort=in_order, limit=limit)
        return [Erasure(**document) for document in found]

    async def erase_versions(self, tenant: str, tombstone: Version) -> ErasedStep:
        below = {"id": tombstone.id, "version": {"$lt": tombstone.version}, "tenant": tenant}
        looking: Pipeline = [
            {"$match": {**below, "body": {"$ne": tombstone.body}}},
            {"$sort": {"version": 1}},
            {"$limit": 1},
            {
                "$project": {
                    **dict.fromkeys(("id", "version", "type", "documents"), 1),
                    **dict.fromkeys((f"members.{name}" for name in _KEPT_OF_A_MEMBER), 1),
                    "size": VERSION_SIZE,
                }
            },
        ]
        versions = self._collection(VERSION)
        found = await self._primary.answer(
            lambda: versions.aggregate(looking, hint=VERSION_KEY).to_list(None)
        )
        if not found:
            return ErasedStep()
        (version,) = found
        # Before nothing leads to them any more: what is loose and named by a version stays.
        await self._loosen(tenant, version.get("documents", ()))
        body = member_body(tombstone)
        members = [_erased_member(member, body) for member in version.get("members", ())]
        change = {
            "$set": _erased_fields(version["type"], tombstone, members),
            "$unset": dict.fromkeys(_GONE, True),
        }
        async with within(self._deadline):
            unchanged = {"_id": version["_id"], "body": {"$ne": tombstone.body}}
            erased = await versions.update_one({**below, **unchanged}, change)
        if erased.modified_count:
            left = len(tombstone.body) + len(NO_EVENTS)
            left += len(members) * (len(member_body(tombstone)) + len(NO_EVENTS))
            self._stored.add(tenant, left - version["size"])
        return ErasedStep(1, len(members), version["size"])

    async def _loosen(self, tenant: str, names: Collection[str]) -> None:
        """Let the next sweep look for versions that refer to documents."""
        if not names:
            return
        loose = {"$set": {"loose": True}}
        async with within(self._deadline):
            ids = [blob_id(tenant, name) for name in names]
            await self._collection(BLOB).update_many({"_id": {"$in": ids}}, loose)
            for name in ids:  # every piece of it: "0" follows "/"
                pieces = {"_id": {"$gt": f"{name}/", "$lt": f"{name}0"}}
                await self._collection(PIECE).update_many(pieces, loose)

    async def erase_documents(self, tenant: str, names: Collection[str]) -> int:
        # Again: a sweep may have looked at them before the last version of them was erased.
        await self._loosen(tenant, names)
        await self.sweep_blobs(tenant, before=self._clock() - _FRESH_MS)
        ids = [blob_id(tenant, name) for name in names]
        stored = await self._list(BLOB, {"_id": {"$in": ids}}, {"_id": False, "sha256": True})
        shared = await self.shared_documents(tenant, names, besides=())
        return len({*names} - {document["sha256"] for document in stored} - shared)

    async def shared_documents(
        self, tenant: str, names: Collection[str], *, besides: Collection[str]
    ) -> frozenset[str]:
        others = {"documents": {"$in": [*names]}, "tenant": tenant, "id": {"$nin": [*besides]}}
        found = await self._list(VERSION, others, {"_id": False, "documents": True})
        return frozenset(name for document in found for name in document["documents"]) & {*names}

    async def erase_deliveries(
        self, tenant: str, events: str, change: Callable[[bytes], bytes]
    ) -> ErasedDeliveries:
        changed, leased = 0, 0
        deliveries = self._collection(DELIVERY)
        for endpoint in await self._list(ENDPOINT, {"tenant": tenant}, {"_id": True}):
            key = f"{endpoint['_id']}/{events}"
            range_ = {"_id": {"$gte": key, "$lt": f"{key}\U0010ffff"}, "endpoint": endpoint["_id"]}
            shown = {"body": True, "attempts.answer": True, "leased": True}
            for found in await self._list(DELIVERY, range_, shown, hint=BY_ID):
                after, leased = change(found["body"]), max(leased, found["leased"])
                is_silent = not any(attempt["answer"] for attempt in found["attempts"])
                if after == found["body"] and is_silent:
                    continue
                async with within(self._deadline):
                    one = {"_id": found["_id"], "endpoint": endpoint["_id"]}
                    erased = {"body": after, "attempts.$[].answer": b""}
                    await deliveries.update_one(one, {"$set": erased})
                changed += 1
        return ErasedDeliveries(changed, leased)

    async def put_hold(self, hold: Hold) -> None:
        key = f"{hold.tenant}/{hold.type}/{hold.id}"
        await self._put(HOLD, {"_id": key, **asdict(hold)})

    async def delete_hold(self, tenant: str, resource: tuple[str, str]) -> bool:
        key = "/".join((tenant, *resource))
        async with within(self._deadline):
            return bool((await self._collection(HOLD).delete_one({"_id": key})).deleted_count)

    async def holds(self, tenant: str) -> Sequence[Hold]:
        found = await self._list(HOLD, {"tenant": tenant}, {"_id": False})
        holds = [Hold(**document) for document in found]
        return sorted(holds, key=lambda each: (each.since, each.type, each.id))


def _erased_fields(
    type_name: str, tombstone: Version, members: Sequence[Document]
) -> dict[str, Any]:
    """Return the fields of an erased version; see `tombstones.husk_of`."""
    fields: dict[str, Any] = {
        "type": erased_type(type_name),
        "system": "",
        "value": "",
        "status": "",
        "events": NO_EVENTS,
        "body": tombstone.body,
        "response": b"",
        "parts": b"",
        "search": [],
    }
    return fields | ({"members": members} if members else {})


def _erased_member(member: Document, body: bytes) -> dict[str, Any]:
    return {
        "id": member["id"],
        "version": member["version"],
        "type": erased_type(member["type"]),
        "system": "",
        "value": "",
        "status": "",
        "created": member["created"],
        "body": body,
        "search": [],
    }
