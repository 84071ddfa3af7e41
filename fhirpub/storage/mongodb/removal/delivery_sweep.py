"""Deletes the deliveries that are past their retention."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fhirpub.storage.mongodb.collections import OnDatabase
from fhirpub.storage.mongodb.errors import within
from fhirpub.storage.mongodb.schema import BY_ID, BY_STATE, DELIVERY, ENDED, ENDPOINT, Filter
from fhirpub.storage.mongodb.webhook_documents import OPEN
from fhirpub.storage.webhook_contract import DeliveryQueueStore

_SWEEP_BATCH_SIZE = 500


class DeliverySweep(OnDatabase, DeliveryQueueStore):
    """The sweep of deliveries in the database."""

    async def sweep_deliveries(self, *, delivered: int, dead: int, open_: int) -> int:
        swept, before = 0, {"$lt": open_}
        inactive = await self._list(ENDPOINT, {"state": {"$ne": "active"}}, {"state": True})
        gone = {document["_id"] for document in inactive if document["state"] == "deleted"}
        for state, moment in (("delivered", delivered), ("dead", dead)):
            swept += await self._sweep({"state": state, "ended": {"$lt": moment}}, ENDED, gone)
        for document in inactive:
            if await self._list(
                ENDPOINT, {"_id": document["_id"], "state": "active"}, {"state": True}
            ):
                continue  # since it was looked at, and the sweeps before this one take their time
            left = {"endpoint": document["_id"], "state": OPEN, "created": before, "due": before}
            swept += await self._sweep(left, BY_STATE, gone)
        return swept

    async def _sweep(self, condition: Filter, index: str, gone: Collection[str]) -> int:
        """Delete what meets a condition, but for the newest of each endpoint that is not gone."""
        deliveries = self._collection(DELIVERY)
        shown = {"endpoint": True, "sequence": True}
        looking = deliveries.find(condition, shown, hint=index)
        swept = 0
        while True:
            async with within(self._deadline):
                found = await looking.to_list(_SWEEP_BATCH_SIZE)
            if not found:
                return swept
            ends = await self.last_sequences({document["endpoint"] for document in found})
            old = [
                document
                for document in found
                if document["endpoint"] in gone
                or document["sequence"] < ends.get(document["endpoint"], 0)
            ]
            swept += await self._delete(old, condition)

    async def _delete(self, found: Sequence[Mapping[str, Any]], condition: Filter) -> int:
        """Delete those of them that still meet the condition."""
        deliveries = self._collection(DELIVERY)
        chosen = {
            "_id": {"$in": [document["_id"] for document in found]},
            "endpoint": {"$in": list({document["endpoint"] for document in found})},
        }
        async with within(self._deadline):
            deleted = await deliveries.delete_many({**condition, **chosen}, hint=BY_ID)
        return int(deleted.deleted_count)
