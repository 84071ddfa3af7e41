"""The part of the store in MongoDB that keeps the audit trail.

A block names what it was made of, the versions and what was handed in, by their ``_id``. These are
released once it is stored, and always before the next block of its tenant is made: so what a
process leaves behind that is killed in between, the last block of the tenant shows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bson.objectid import ObjectId
from pymongo.errors import DuplicateKeyError

from fhirpub.storage.audit_contract import (
    HASH_BYTES,
    MAX_BLOCK_SPAN_MS,
    MAX_UNSEALED_BYTES,
    AuditBlock,
    AuditedVersion,
    AuditQuery,
    AuditStore,
    SealedBlock,
    UnsealedAudit,
    UnsealedEntry,
)
from fhirpub.storage.erasure.tombstones import fhir_type
from fhirpub.storage.mongodb.collections import OnDatabase
from fhirpub.storage.mongodb.errors import within
from fhirpub.storage.mongodb.schema import (
    AUDIT_BLOCK,
    AUDIT_BY_KEY,
    AUDIT_BY_NUMBER,
    AUDIT_BY_TIME,
    AUDIT_CHECKPOINT,
    AUDIT_PENDING,
    BY_ID,
    UNSEALED,
    VERSION,
    Pipeline,
)
from fhirpub.storage.page_size import up_to_size

Found = Mapping[str, Any]

_WRITTEN = ("type", "id", "version", "updated")
_BLOCK_FIELDS = ("tenant", "number", "first", "last", "records", "hashes")


class MongoAudit(OnDatabase, AuditStore):
    """The audit trail in the database."""

    async def add_audit_records(self, records: Mapping[str, bytes]) -> None:
        pending = [
            {"_id": ObjectId(), "tenant": tenant, "records": lines}
            for tenant, lines in records.items()
        ]
        if pending:
            async with within(self._deadline):
                await self._collection(AUDIT_PENDING).insert_many(pending, ordered=False)

    async def unsealed_audit(self, *, limit: int, tenants: Collection[str] = ()) -> UnsealedAudit:
        waiting = await self._read_waiting(limit, {"tenant": 1})
        needed = {*tenants}.union(found["tenant"] for some in waiting for found in some)
        if not needed:
            return UnsealedAudit(entries=[], ends={}, place=None, is_complete=True)
        # The last blocks are read before what they are compared with: what was sealed by then is
        # in them or released, and what is sealed afterwards takes their next numbers.
        last = await self._last_blocks(needed)
        held = {source for found in last.values() for source in found["sources"]}
        shown = dict.fromkeys(("tenant", "audit", "records", *_WRITTEN), 1)
        written, handed_in = await self._read_waiting(limit, shown)
        versions = [*up_to_size(written, _record_size, most=MAX_UNSEALED_BYTES)]
        pending = [*up_to_size(handed_in, _record_size, most=MAX_UNSEALED_BYTES)]
        count = await self._count_pending(limit)
        is_complete = len(versions) == len(written) < limit and len(pending) == count < limit
        is_complete = is_complete and needed.issuperset(
            found["tenant"] for found in (*versions, *pending)
        )
        await self._release(
            [found["_id"] for found in versions if found["_id"] in held],
            [found["_id"] for found in pending if found["_id"] in held],
        )
        versions, pending = (_new(some, needed, held) for some in (versions, pending))
        named = {found["tenant"] for found in (*versions, *pending)}.union(tenants)
        return UnsealedAudit(
            entries=[*map(_version_entry, versions), *map(_pending_entry, pending)],
            ends={tenant: _end_of(last.get(tenant)) for tenant in named},
            place=None,
            is_complete=is_complete,
        )

    async def _read_waiting(
        self, limit: int, shown: dict[str, Any]
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the versions and what was handed in that are not known to be sealed."""
        versions = await self._list(
            VERSION,
            {"unsealed": True},
            shown,
            sort=[("updated", 1), ("id", 1), ("version", 1)],
            limit=limit,
            hint=UNSEALED,
        )
        # The first batch: the server ends it at the size of a page.
        pending = await self._list(
            AUDIT_PENDING,
            {},
            shown,
            sort=[("_id", 1)],
            hint=BY_ID,
            limit=-limit,
            batch_size=limit,
        )
        return versions, pending

    async def _count_pending(self, limit: int) -> int:
        """Return how much was handed in: a page may have less, up to its size."""
        pending = self._collection(AUDIT_PENDING)
        return await self._primary.answer(lambda: pending.count_documents({}, limit=limit))

    async def _last_blocks(self, tenants: Collection[str]) -> dict[str, Found]:
        """Return what is needed of the last block of each tenant, by tenant."""
        first = {name: {"$first": f"${name}"} for name in ("number", "hashes", "sources")}
        # Answered by one step through the index for each tenant, however long its chain is.
        newest: Pipeline = [
            {"$match": {"tenant": {"$in": sorted(tenants)}}},
            {"$sort": {"tenant": -1, "number": -1}},
            {"$group": {"_id": "$tenant", **first}},
        ]
        blocks = self._collection(AUDIT_BLOCK)
        found = await self._primary.answer(
            lambda: blocks.aggregate(newest, hint=AUDIT_BY_NUMBER).to_list(None)
        )
        return {document["_id"]: document for document in found}

    async def seal_audit(
        self,
        blocks: Sequence[SealedBlock],
        unsealed: UnsealedAudit,  # noqa: ARG002 - the blocks name their entries
    ) -> bool:
        for sealed in blocks:
            versions = [each.source for each in sealed.entries if each.version]
            pending = [each.source for each in sealed.entries if not each.version]
            if not await self._add_block(sealed, [*versions, *pending]):
                return False
            await self._release(versions, pending)
        return True

    async def _add_block(self, sealed: SealedBlock, sources: Sequence[object]) -> bool:
        document = asdict(sealed.block) | {
            "_id": f"{sealed.block.tenant}/{sealed.block.number}",
            "keys": sorted(sealed.keys),
            "sources": sources,
        }
        async with within(self._deadline):
            try:
                await self._collection(AUDIT_BLOCK).insert_one(document)
            except DuplicateKeyError:
                return False
        return True

    async def _release(self, versions: Sequence[object], pending: Sequence[object]) -> None:
        async with within(self._deadline):
            if versions:
                await self._collection(VERSION).update_many(
                    {"_id": {"$in": versions}}, {"$unset": {"unsealed": ""}}, hint=BY_ID
                )
            if pending:
                await self._collection(AUDIT_PENDING).delete_many({"_id": {"$in": pending}})

    async def put_audit_block(self, sealed: SealedBlock) -> None:
        await self._add_block(sealed, [])

    async def audit_end(self, tenant: str) -> tuple[int, bytes]:
        return _end_of((await self._last_blocks([tenant])).get(tenant))

    async def audit_chain(
        self, tenant: str, *, after: int = 0, limit: int = 100
    ) -> Sequence[AuditBlock]:
        wanted = {"tenant": tenant, "number": {"$gt": after}}
        return await self._blocks(wanted, [("number", 1)], limit, AUDIT_BY_NUMBER)

    async def find_audit_blocks(self, tenant: str, query: AuditQuery) -> Sequence[AuditBlock]:
        hint = AUDIT_BY_KEY if query.keys else AUDIT_BY_TIME
        order = [("first", -1), ("number", -1)]
        found = await self._blocks(_filter_of(tenant, query), order, query.limit, hint)
        return [*up_to_size(found, _records_size, most=query.size)]

    async def _blocks(
        self, wanted: dict[str, Any], order: list[tuple[str, int]], limit: int, hint: str
    ) -> list[AuditBlock]:
        """Return blocks, up to the size of a page."""
        blocks = self._collection(AUDIT_BLOCK)
        shown = dict.fromkeys(_BLOCK_FIELDS, 1)

        async def look() -> list[dict[str, Any]]:
            # The first batch: the server ends it at the size of a page.
            options = {"sort": order, "limit": -limit, "batch_size": limit, "hint": hint}
            return await blocks.find(wanted, shown, **options).to_list(None)

        found = await self._primary.answer(look)
        return [*up_to_size(map(_block_of, found), _records_size)]

    async def audited_tenants(self) -> Sequence[str]:
        blocks = self._collection(AUDIT_BLOCK)
        return sorted(await self._primary.answer(lambda: blocks.distinct("tenant")))

    async def delete_audit_blocks(self, tenant: str, blocks: Sequence[SealedBlock]) -> None:
        numbers = [sealed.block.number for sealed in blocks]
        async with within(self._deadline):
            await self._collection(AUDIT_BLOCK).delete_many(
                {"tenant": tenant, "number": {"$in": numbers}}
            )
            await self._collection(AUDIT_CHECKPOINT).delete_many(
                {"tenant": tenant, "number": {"$lt": max(numbers, default=0)}}
            )

    async def put_audit_checkpoint(self, tenant: str, number: int, checkpoint: str) -> None:
        name = f"{tenant}/{number}"
        fields = {"_id": name, "tenant": tenant, "number": number, "checkpoint": checkpoint}
        await self._put(AUDIT_CHECKPOINT, fields)

    async def audit_checkpoints(
        self, tenant: str, *, after: int = 0, limit: int = 1_000
    ) -> Sequence[tuple[int, str]]:
        wanted = {"tenant": tenant, "number": {"$gt": after}}
        found = await self._list(AUDIT_CHECKPOINT, wanted, sort=[("number", 1)], limit=limit)
        return [(document["number"], document["checkpoint"]) for document in found]


def _new(
    found: Sequence[dict[str, Any]], known: Collection[str], held: Collection[ObjectId]
) -> list[dict[str, Any]]:
    """Return records of chains whose last blocks are known, and do not hold them."""
    return [one for one in found if one["tenant"] in known and one["_id"] not in held]


def _filter_of(tenant: str, query: AuditQuery) -> dict[str, Any]:
    """Return the condition for blocks that may have what is wanted."""
    since = query.since or 0
    wanted: dict[str, Any] = {
        "tenant": tenant,
        "first": {"$gte": since - MAX_BLOCK_SPAN_MS},
        "last": {"$gte": since},
    }
    if query.until is not None:
        wanted["first"]["$lte"] = query.until
    if query.before is not None:
        first, number = query.before
        behind = [{"first": {"$lt": first}}, {"first": first, "number": {"$lt": number}}]
        wanted["first"]["$lte"] = min(first, wanted["first"].get("$lte", first))
        wanted["$or"] = behind
    if query.keys:
        wanted["keys"] = {"$all": [*query.keys]}
    return wanted


def _version_entry(found: Found) -> UnsealedEntry:
    fields = {name: found[name] for name in _WRITTEN} | {"type": fhir_type(found["type"])}
    written = AuditedVersion(**fields)
    return UnsealedEntry(
        tenant=found["tenant"], records=found["audit"], version=written, source=found["_id"]
    )


def _pending_entry(found: Found) -> UnsealedEntry:
    return UnsealedEntry(
        tenant=found["tenant"], records=found["records"], version=None, source=found["_id"]
    )


def _end_of(last: Found | None) -> tuple[int, bytes]:
    return (last["number"], last["hashes"][-HASH_BYTES:]) if last else (0, b"")


def _block_of(found: Found) -> AuditBlock:
    return AuditBlock(**{name: found[name] for name in _BLOCK_FIELDS})


def _records_size(block: AuditBlock) -> int:
    return len(block.records)


def _record_size(found: Found) -> int:
    """Return the size of what waits: the record of a version, or what was handed in."""
    return len(found["audit"] if "audit" in found else found["records"])
