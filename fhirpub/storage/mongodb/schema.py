"""The collections and indexes of a MongoDB store, and how they come to be.

Shards by `id` (versions, hashed), `_id` (blobs and their pieces) and `endpoint` (deliveries):
every unique index begins with the field that its collection is sharded by, so that it holds on
a cluster, and every frequent question names it, so that one shard answers; but for the relay,
which scans all of them for pending outbox entries. All other collections are small.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from motor.motor_asyncio import (
    AsyncIOMotorCommandCursor,
    AsyncIOMotorCursor,
    AsyncIOMotorDatabase,
)

from fhirpub.errors import ConfigurationError, StoreUnavailable
from fhirpub.storage.mongodb import indexes
from fhirpub.storage.upgrades.versions import SchemaVersion

NO_EVENTS = b"[]"

Filter = dict[str, Any]
Pipeline = list[dict[str, Any]]
Database = AsyncIOMotorDatabase[dict[str, Any]]
Records = indexes.Records
Cursor = AsyncIOMotorCursor[dict[str, Any]] | AsyncIOMotorCommandCursor[dict[str, Any]]

SCHEMA_VERSION = 11
USABLE_FROM = 11
"""The oldest version whose releases may use a database of this one (D-382): the same, unless they
lose nothing, and show nothing that they must not, by not knowing what is new."""

STORE, VERSION, TENANT, CLIENT = "store", "version", "tenant", "client"
BLOB, PIECE = "blob", "blob_piece"
ENDPOINT, DELIVERY, LEASE = "endpoint", "delivery", "lease"
QUOTA_OVERRIDE, QUOTA_COUNT, STORED_BYTES = "quota_override", "quota_count", "stored_bytes"
AUDIT_PENDING, AUDIT_BLOCK, AUDIT_CHECKPOINT = "audit_pending", "audit_block", "audit_checkpoint"
REVOKED_TOKEN, CLIENT_USE = "revoked_token", "client_use"
USED_ASSERTION = "used_assertion"
ERASURE, HOLD = "erasure", "hold"
"""Names of collections; `store` has the documents of which there is one."""
COLLECTIONS = (
    *(STORE, VERSION, BLOB, PIECE, TENANT, CLIENT, ENDPOINT, DELIVERY, LEASE),
    *(QUOTA_OVERRIDE, QUOTA_COUNT, STORED_BYTES),
    *(AUDIT_PENDING, AUDIT_BLOCK, AUDIT_CHECKPOINT),
    *(REVOKED_TOKEN, CLIENT_USE, USED_ASSERTION),
    *(ERASURE, HOLD),
)
SCHEMA, KEYS, PROBE, SEARCH_RULES = "schema", "signing_keys", "probe", "search_rules"
"""Ids in the collection `store`."""

VERSION_KEY, UNRELAYED, UNSEALED = "version_key", "version_unrelayed", "version_unsealed"
BY_SEQUENCE, BY_STATE, ENDED = "delivery_by_sequence", "delivery_by_state", "delivery_ended"
BY_VALUE, BY_SYSTEM, BY_TIME = "version_by_value", "version_by_system", "version_by_time"
BY_SEARCH_VALUE = "version_by_search_value_newest"
BY_MEMBER, BY_MEMBER_TYPE = "version_by_member", "version_by_member_type"
BY_MEMBER_VALUE = "version_by_member_value_newest"
AUDIT_BY_NUMBER, AUDIT_BY_TIME = "audit_block_by_number", "audit_block_by_time"
AUDIT_BY_KEY = "audit_block_by_key"
ERASURE_REUSE = "erasure_reuse"
BY_ID = "_id_"


def _index(name: str, *fields: str, **options: Any) -> dict[str, Any]:
    """Return the definition of an index; a field that begins with a minus is in reverse."""
    keys = {field.removeprefix("-"): -1 if field.startswith("-") else 1 for field in fields}
    return {"name": name, "key": keys, **options}


# The three by tenant and type alone hold all that a search and its total ask for. Those over
# members (ADR 24) have entries for versions that brought some. A query uses one if its filter
# implies that of the index: each has therefore the form that its queries have.
_INDEXES: dict[str, list[dict[str, Any]]] = {
    VERSION: [
        _index(VERSION_KEY, "id", "version", unique=True),
        _index(BY_VALUE, "tenant", "type", "value", "system", "version", "updated", "id"),
        _index(BY_SYSTEM, "tenant", "type", "system", "-updated", "id", "version"),
        _index(BY_TIME, "tenant", "type", "-updated", "id", "version"),
        _index(BY_SEARCH_VALUE, "search.field", "search.key", "-updated"),
        _index(
            "version_documents",
            "documents",
            "tenant",
            partialFilterExpression={"documents": {"$exists": True}},
        ),
        _index(UNRELAYED, "updated", "id", "version", partialFilterExpression={"unrelayed": True}),
        _index(UNSEALED, "updated", "id", "version", partialFilterExpression={"unsealed": True}),
        _index(
            BY_MEMBER,
            "members.id",
            "-version",
            partialFilterExpression={"members.id": {"$exists": True}},
        ),
        _index(
            BY_MEMBER_TYPE,
            "member_types",
            "-updated",
            partialFilterExpression={"member_types": {"$exists": True}},
        ),
        _index(
            BY_MEMBER_VALUE,
            "members.search.field",
            "members.search.key",
            "-updated",
            partialFilterExpression={"members": {"$exists": True}},
        ),
    ],
    BLOB: [_index("blob_loose", "tenant", "added", partialFilterExpression={"loose": True})],
    PIECE: [_index("piece_loose", "tenant", "added", partialFilterExpression={"loose": True})],
    CLIENT: [_index("client_tenant", "tenant", "created")],
    ENDPOINT: [_index("endpoint_tenant", "tenant", "created")],
    DELIVERY: [
        _index(BY_SEQUENCE, "endpoint", "sequence", unique=True),
        _index(BY_STATE, "endpoint", "state", "sequence"),
        _index(ENDED, "state", "ended", partialFilterExpression={"ended": {"$exists": True}}),
    ],
    QUOTA_COUNT: [_index("quota_count_owner", "owner")],
    AUDIT_BLOCK: [
        _index(AUDIT_BY_NUMBER, "tenant", "number"),
        _index(AUDIT_BY_TIME, "tenant", "-first", "-number"),
        _index(AUDIT_BY_KEY, "keys", "-first", "-number"),
    ],
    AUDIT_CHECKPOINT: [_index("audit_checkpoint_by_number", "tenant", "number")],
    REVOKED_TOKEN: [_index("revoked_token_client", "client")],
    USED_ASSERTION: [_index("used_assertion_owner", "owner", "until")],
    ERASURE: [
        _index(ERASURE_REUSE, "tenant", partialFilterExpression={"allows_reuse": True}),
    ],
    HOLD: [_index("hold_tenant", "tenant", "since")],
}


_FORMER_INDEXES = ("version_by_search_value", "version_by_member_value")
"""Those of schema version 5 and before that others have replaced, without the time."""


async def prepare(database: Database, *, upgrade: bool = True) -> None:
    """Make what is missing and check what is there; safe when several processes start at once.

    A database of an older release is brought up to date. One of a newer release that this one may
    use stays as it is.

    Raises ConfigurationError for a database that another program or a newer release has made, and
    UpgradeNeeded for one that would have to be upgraded, unless it is to ``upgrade`` it.
    """
    # In this order: a process that sees what is being made sees also what came first.
    names = set(await database.list_collection_names())
    store: Records = database[STORE]
    anything = await store.find_one({}, {"_id": True})
    others = {item for item in names if not item.startswith("system.")} - {STORE}
    if (anything or others) and await store.find_one({"_id": SCHEMA}) is None:
        raise ConfigurationError("[storage] url: the database is another program's")
    await store.update_one({"_id": SCHEMA}, {"$setOnInsert": _FIELDS}, upsert=True)
    version_in(await store.find_one({"_id": SCHEMA})).require_use(SCHEMA_VERSION, upgrade=upgrade)
    await _upgrade(database)
    found = version_in(await store.find_one({"_id": SCHEMA}))
    found.require_use(SCHEMA_VERSION, upgrade=upgrade)
    if found.number > SCHEMA_VERSION:
        for name, wanted in _INDEXES.items():
            await indexes.require(database[name], wanted)
        return
    await store.update_one({"_id": KEYS}, {"$setOnInsert": {"keys": []}}, upsert=True)
    for name, wanted in _INDEXES.items():
        await indexes.make(database[name], wanted)
    await indexes.drop(database[VERSION], _FORMER_INDEXES)


def require_use(stored: dict[str, Any] | None) -> None:
    """Check the document of the schema while the database is in use.

    Raises StoreUnavailable if a newer release has upgraded the database, and this one must not use
    it.
    """
    if problem := version_in(stored).problem_for(SCHEMA_VERSION):
        raise StoreUnavailable(problem)


_FIELDS = {"version": SCHEMA_VERSION} | (
    {"usable_from": USABLE_FROM} if USABLE_FROM != SCHEMA_VERSION else {}
)


def version_in(stored: dict[str, Any] | None) -> SchemaVersion:
    """Return the version of a database; `usable_from` is missing if it is the same."""
    number = (stored or {}).get("version", 0)
    return SchemaVersion(number, (stored or {}).get("usable_from", number))


async def _upgrade(database: Database) -> None:
    """Bring an older database up to date; safe to interrupt, to repeat, and side by side.

    Nothing in a database of version 1 was ever published. What was published since stays marked as
    such, even if another process is still at this. Large blobs of version 2 stay in one piece.
    What a database of version 3 stores is counted afterwards (`stored_bytes.py`). Version 4 had no
    members: a process of that release would not find them. One of version 5 searches by indexes
    that are dropped afterwards, and one of version 6 expects no documents in a version. One of
    version 7 would accept revoked tokens, and clients from outside of their networks. What one of
    version 8 and before stored has no record of its write (ADR 35). A process of version 9 would
    find no response in the versions that are erased, and repeat an empty one (ADR 36). One of
    version 10 would remove the keys of a client that it changes.
    """
    old = {"_id": SCHEMA, "version": {"$in": [*range(1, SCHEMA_VERSION)]}}
    found = await database[STORE].find_one(old)
    if found is None:
        return
    if found["version"] == 1:
        untold = {"events": {"$ne": NO_EVENTS}, "unrelayed": {"$exists": False}}
        await database[VERSION].update_many(untold, {"$set": {"unrelayed": True}})
    await database[STORE].replace_one(old, {"_id": SCHEMA, **_FIELDS})


def by_keys(keys: Iterable[tuple[str, int]]) -> Filter:
    """Return what finds versions, at least one, by their keys."""
    ids: defaultdict[int, list[str]] = defaultdict(list)
    for resource_id, version in keys:
        ids[version].append(resource_id)
    return {"$or": [{"version": id_, "id": {"$in": of_it}} for id_, of_it in ids.items()]}


def attached_as_blob(blob_id: str) -> Pipeline:
    """Return what finds a document that a version holds, in the form of a blob."""
    tenant, _slash, sha256 = blob_id.rpartition("/")
    return [
        {"$match": {"documents": sha256, "tenant": tenant, "attached.sha256": sha256}},
        {"$limit": 1},
        {"$unwind": "$attached"},
        {"$replaceRoot": {"newRoot": "$attached"}},
        {"$match": {"sha256": sha256}},
        {"$set": {"_id": blob_id, "size": {"$binarySize": "$data"}}},
    ]


def _loose(tenant: str, *, before: int, limit: int) -> Pipeline:
    return [
        {"$match": {"tenant": tenant, "added": {"$lt": before}, "loose": True}},
        {"$limit": limit},
    ]


def loose_pieces(tenant: str, *, before: int, limit: int) -> Pipeline:
    """Return what finds pieces of blobs that were not known to be named, and these blobs."""
    return [
        *_loose(tenant, before=before, limit=limit),
        {
            "$lookup": {
                "from": BLOB,
                "localField": "blob",
                "foreignField": "_id",
                "pipeline": [{"$project": {"loose": 1}}],
                "as": "naming",
            }
        },
        {"$project": {"naming": 1}},
    ]


def loose_blobs(tenant: str, *, before: int, limit: int) -> Pipeline:
    """Return what finds blobs that no version was known to name, and whether one does now."""
    return [
        *_loose(tenant, before=before, limit=limit),
        {"$project": {"sha256": 1, "size": 1}},
        {
            "$lookup": {
                "from": VERSION,
                "localField": "sha256",
                "foreignField": "documents",
                "pipeline": [
                    {"$match": {"tenant": tenant}},
                    {"$limit": 1},
                    {"$project": {"_id": 1}},
                ],
                "as": "naming",
            }
        },
    ]
