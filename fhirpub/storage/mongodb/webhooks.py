"""The half of the store in MongoDB that keeps webhooks: endpoints, and deliveries in their queues.

Nothing here needs to know what became of a write whose answer was lost: its caller may repeat it.
Should the first arrive after the repeat, as it may where a network held it up, then ``append``
finds its places taken, ``begin`` and ``finish`` find that another attempt was begun or is not due,
and ``mark_published`` has no further effect. A lease that is granted or released late may have two
owners: it is not a lock. Only ``save_health`` may leave an older health than the last.
``begin`` retries under the same token: otherwise a lost answer would use up an attempt.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import Any

from bson.objectid import ObjectId
from pymongo import ReplaceOne, UpdateOne
from pymongo.errors import AutoReconnect, BulkWriteError

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.erasure.tombstones import fhir_type
from fhirpub.storage.mongodb import webhook_documents as documents
from fhirpub.storage.mongodb.errors import DUPLICATE_KEY, reason, within
from fhirpub.storage.mongodb.removal.delivery_sweep import DeliverySweep
from fhirpub.storage.mongodb.schema import (
    BY_ID,
    BY_SEQUENCE,
    BY_STATE,
    DELIVERY,
    ENDPOINT,
    LEASE,
    UNRELAYED,
    VERSION,
    VERSION_KEY,
    Pipeline,
    by_keys,
)
from fhirpub.storage.mongodb.webhook_documents import OPEN
from fhirpub.storage.webhook_contract import (
    MAX_LEASE_MULTIPLE,
    AttemptResult,
    Delivery,
    DeliveryKey,
    DeliveryQuery,
    DeliveryQueueStore,
    DeliveryState,
    Endpoint,
    Endpoints,
    OutboxEntry,
    QueuedDelivery,
)

_OF_UNTOLD = tuple(field.name for field in fields(OutboxEntry))


class MongoWebhooks(DeliverySweep, Endpoints, DeliveryQueueStore):
    """Endpoints and deliveries in the database."""

    async def put_endpoint(self, tenant: str, endpoint: Endpoint) -> bool:
        endpoints = self._collection(ENDPOINT)
        if endpoint.tenant != tenant:
            return False
        if endpoint.revision == 1:
            return await self._add(ENDPOINT, documents.endpoint_document(endpoint))
        async with within(self._deadline):
            over, change = documents.endpoint_change(endpoint)
            return bool((await endpoints.update_one(over, change)).matched_count)

    async def endpoint(self, tenant: str, endpoint_id: str) -> Endpoint | None:
        found = await self._list(ENDPOINT, {"_id": endpoint_id, "tenant": tenant})
        return documents.endpoint_of(found[0]) if found else None

    async def endpoints(self, tenant: str) -> Sequence[Endpoint]:
        return _oldest_first(await self._list(ENDPOINT, {"tenant": tenant}))

    async def deliveries(self, tenant: str, query: DeliveryQuery) -> Sequence[Delivery]:
        if not query.limit:
            return []
        index = BY_STATE if query.states else BY_SEQUENCE
        found = await self._list(
            DELIVERY,
            documents.filter_by_query(tenant, query),
            sort=[("sequence", -1 if query.newest_first else 1)],
            limit=query.limit,
            hint=index if query.event_ids is None else BY_ID,
        )
        return [documents.delivery_of(document) for document in found]

    async def count_deliveries(self, tenant: str, endpoint_id: str) -> Mapping[DeliveryState, int]:
        # All deliveries of an endpoint are its tenant's; to count them the index is enough.
        wanted = {"endpoint": endpoint_id}
        ours = await self._list(DELIVERY, wanted, {"tenant": True}, limit=1, hint=BY_SEQUENCE)
        if [our["tenant"] for our in ours] != [tenant]:
            return {}
        counting: Pipeline = [
            {"$match": wanted},
            {"$group": {"_id": "$state", "count": {"$sum": 1}}},
        ]
        found = await self._aggregate(DELIVERY, counting, hint=BY_STATE)
        return {document["_id"]: document["count"] for document in found}

    async def reopen(
        self, tenant: str, endpoint_id: str, event_ids: Collection[str], *, now: int
    ) -> int:
        deliveries, endpoints = self._collection(DELIVERY), self._collection(ENDPOINT)
        wanted = {**documents.filter_by_endpoint(endpoint_id, event_ids), "tenant": tenant}
        ended = {**wanted, "state": {"$not": OPEN}}
        again = {"state": "pending", "number": 0, "due": now, "leased": 0}
        later = {**wanted, "state": OPEN, "due": {"$gt": now}}
        async with within(self._deadline):
            waited = await deliveries.update_many(later, {"$set": {"due": now}})
            opened = await deliveries.update_many(ended, {"$set": again, "$unset": {"ended": ""}})
            # Even if there was none: a call before this one may have come so far and no further.
            reopened = {"_id": endpoint_id, "tenant": tenant}
            await endpoints.update_one(reopened, {"$inc": {"reopened": 1}})
        return int(waited.modified_count + opened.modified_count)

    async def all_endpoints(self, *, of: Collection[str] | None = None) -> Sequence[Endpoint]:
        tenants = {} if of is None else {"tenant": {"$in": [*of]}}
        return _oldest_first(await self._list(ENDPOINT, {**tenants, "state": {"$ne": "deleted"}}))

    async def save_health(self, endpoint_id: str, condition: bytes) -> None:
        endpoints = self._collection(ENDPOINT)
        async with within(self._deadline):
            await endpoints.update_one({"_id": endpoint_id}, {"$set": {"condition": condition}})

    async def copy_endpoint(self, endpoint: Endpoint, *, over: Endpoint | None) -> bool:
        if over is None:
            return await self._add(ENDPOINT, documents.endpoint_document(endpoint))
        before, after = (documents.endpoint_document(item) for item in (over, endpoint))
        async with within(self._deadline):
            endpoints = self._collection(ENDPOINT)
            return bool((await endpoints.replace_one(before, after)).matched_count)

    async def lease(
        self, names: Collection[str], *, owner: str, now: int, until: int
    ) -> frozenset[str]:
        wanted = list(names)
        ours = {"$set": {"owner": owner, "until": until}}
        too_far = now + MAX_LEASE_MULTIPLE * (until - now)
        free = [{"owner": owner}, {"until": {"$lte": now}}, {"until": {"$gt": too_far}}]
        # Where it is not free, what is inserted instead meets the one that is there.
        taking = [UpdateOne({"_id": name, "$or": free}, ours, upsert=True) for name in wanted]
        refused = await self._insert_unless_taken(LEASE, taking)
        return frozenset(name for number, name in enumerate(wanted) if number not in refused)

    async def release(self, names: Collection[str], *, owner: str) -> None:
        leases = self._collection(LEASE)
        async with within(self._deadline):
            await leases.delete_many({"_id": {"$in": list(names)}, "owner": owner})

    async def pending_outbox(self, *, limit: int) -> Sequence[tuple[str, OutboxEntry]]:
        if not limit:
            return []
        in_order = [("updated", 1), ("id", 1), ("version", 1)]
        shown = {"_id": False} | dict.fromkeys(("tenant", *_OF_UNTOLD), True)
        found = await self._list(
            VERSION, {"unrelayed": True}, shown, sort=in_order, limit=limit, hint=UNRELAYED
        )
        return [
            (
                document.pop("tenant"),
                OutboxEntry(**document | {"type": fhir_type(document["type"])}),
            )
            for document in found
        ]

    async def mark_published(self, keys: Collection[tuple[str, int]]) -> None:
        versions = self._collection(VERSION)
        if keys:
            async with within(self._deadline):
                relayed = {"$set": {"unrelayed": False}}
                await versions.update_many(by_keys(keys), relayed, hint=VERSION_KEY)

    async def outbox_contains(
        self, keys: Collection[tuple[str, int]]
    ) -> frozenset[tuple[str, int]]:
        if not keys:
            return frozenset()
        wanted = {**by_keys(keys), "unrelayed": True}
        found = await self._list(VERSION, wanted, {"id": True, "version": True}, hint=VERSION_KEY)
        return frozenset((document["id"], document["version"]) for document in found)

    async def last_sequences(self, endpoints: Collection[str]) -> Mapping[str, int]:
        # Answered by one step through the index for each endpoint, however long its queue is.
        newest: Pipeline = [
            {"$match": {"endpoint": {"$in": list(endpoints)}}},
            {"$sort": {"endpoint": -1, "sequence": -1}},
            {"$group": {"_id": "$endpoint", "end": {"$first": "$sequence"}}},
        ]
        found = await self._aggregate(DELIVERY, newest, hint=BY_SEQUENCE)
        return {document["_id"]: document["end"] for document in found}

    async def append(self, deliveries: Sequence[Delivery]) -> int:
        queue = self._collection(DELIVERY)
        if not deliveries:
            return 0
        new = [documents.delivery_document(delivery) for delivery in deliveries]
        async with within(self._deadline):
            try:
                await queue.insert_many(new, ordered=True)
            except BulkWriteError as error:
                return min(_conflicting_writes(error))
        return len(new)

    async def existing_deliveries(
        self, endpoint_id: str, event_ids: Collection[str]
    ) -> frozenset[str]:
        wanted = documents.filter_by_endpoint(endpoint_id, event_ids)
        found = await self._list(DELIVERY, wanted, {"event_id": True}, hint=BY_ID)
        return frozenset(document["event_id"] for document in found)

    async def waiting(
        self, endpoint_id: str, *, after: int = 0, limit: int = 1000
    ) -> Sequence[QueuedDelivery]:
        if not limit:
            return []
        behind = {"endpoint": endpoint_id, "sequence": {"$gt": after}}
        shown, in_order = documents.WAITING_FIELDS, [("sequence", 1)]
        found: dict[int, dict[str, Any]] = {}
        # One state after the other, as deliveries change theirs: in one question for both, what
        # changes it in between moves it in the index, behind the cursor, and it is missed.
        for state in ("pending", "retrying"):
            of_state = await self._list(
                DELIVERY,
                {**behind, "state": state},
                shown,
                sort=in_order,
                limit=limit,
                hint=BY_STATE,
            )
            found |= {document["sequence"]: document for document in of_state}
        return [documents.waiting_of(found[number]) for number in sorted(found)[:limit]]

    async def begin(
        self, keys: Collection[DeliveryKey], *, now: int, until: int
    ) -> Sequence[Delivery]:
        deliveries, token = self._collection(DELIVERY), ObjectId()
        wanted = documents.filter_by_keys(keys)
        free = {**wanted, "state": OPEN, "leased": {"$lte": now}, "due": {"$lte": now}}
        beginning = documents.beginning(token, now=now, until=until)
        async with within(self._deadline):
            try:
                await deliveries.update_many(free, beginning, hint=BY_ID)
            except AutoReconnect:  # the driver repeats no write of many; what it took is leased
                await deliveries.update_many(free, beginning, hint=BY_ID)
        found = await self._list(DELIVERY, {**wanted, "taken": token}, hint=BY_ID)
        return [documents.delivery_of(document) for document in found]

    async def finish(self, outcomes: Sequence[AttemptResult]) -> Sequence[bool]:
        deliveries = self._collection(DELIVERY)
        if not outcomes:
            return []
        async with within(self._deadline):
            ending = [documents.ending(outcome) for outcome in outcomes]
            noted = (await deliveries.bulk_write(ending, ordered=False)).matched_count
        if noted == len(outcomes):
            return [True] * noted
        wanted = documents.filter_by_keys(outcome.key for outcome in outcomes)
        found = await self._list(DELIVERY, wanted, documents.LOG_FIELDS, hint=BY_ID)
        logs = dict(map(documents.log_of, found))
        return [outcome.attempt in logs.get(outcome.key, ()) for outcome in outcomes]

    async def scan_deliveries(
        self, *, after: tuple[str, int] = ("", 0), limit: int = 100
    ) -> Sequence[Delivery]:
        endpoint, sequence = after
        found = await self._list(
            DELIVERY,
            {},
            sort=[("endpoint", 1), ("sequence", 1)],
            limit=limit,
            hint=BY_SEQUENCE,
            min={"endpoint": endpoint, "sequence": sequence + 1},
        )
        return [documents.delivery_of(document) for document in found]

    async def put_deliveries(self, deliveries: Collection[Delivery]) -> None:
        queue = self._collection(DELIVERY)
        new = [documents.delivery_document(delivery) for delivery in deliveries]
        over = [{"_id": document["_id"], "endpoint": document["endpoint"]} for document in new]
        putting = [
            ReplaceOne(old, document, upsert=True) for old, document in zip(over, new, strict=True)
        ]
        if putting:
            async with within(self._deadline):
                await queue.bulk_write(putting, ordered=False)

    async def _insert_unless_taken(self, name: str, writes: Sequence[UpdateOne]) -> set[int]:
        """Write and return which of them met at a key that is taken."""
        collection = self._collection(name)
        if not writes:
            return set()
        async with within(self._deadline):
            try:
                await collection.bulk_write(writes, ordered=False)
            except BulkWriteError as error:
                return _conflicting_writes(error)
        return set()

    async def _aggregate(
        self, name: str, pipeline: Pipeline, *, hint: str
    ) -> list[dict[str, Any]]:
        collection = self._collection(name)
        return await self._primary.answer(
            lambda: collection.aggregate(pipeline, hint=hint).to_list(None)
        )


def _conflicting_writes(error: BulkWriteError) -> set[int]:
    """Return the places of writes that were refused for their keys; the others are durable."""
    refused = error.details["writeErrors"]
    if error.details["writeConcernErrors"] or any(
        item["code"] != DUPLICATE_KEY for item in refused
    ):
        raise StoreUnavailable(reason(error)) from None
    return {item["index"] for item in refused}


def _oldest_first(found: Sequence[Mapping[str, Any]]) -> list[Endpoint]:
    endpoints = [documents.endpoint_of(document) for document in found]
    return sorted(endpoints, key=lambda each: (each.created, each.id))
