"""What becomes of attempts if answers of the server are lost on their way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pymongo.errors import AutoReconnect, ExecutionTimeout, NotPrimaryError, PyMongoError

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.mongodb.webhook_documents import delivery_document
from fhirpub.storage.mongodb.webhooks import MongoWebhooks
from fhirpub.testing.contracts.webhooks.records import NOW, UNTIL, a_delivery, an_endpoint
from tests.unit.storage.mongodb.answers import Found


class Queue(MongoWebhooks):
    """Deliveries of which a server takes updates and loses some of its answers."""

    _deadline = 30.0

    def __init__(self, *lost: PyMongoError) -> None:
        self._lost = [*lost]
        self.updates: list[tuple[Any, Any]] = []
        self.stored: list[dict[str, Any]] = []
        self.asked: list[Any] = []

    def _collection(self, name: str) -> Any:
        assert name == "delivery"
        return self

    @property
    def _primary(self) -> Any:
        return self

    async def answer(self, look: Any) -> Any:
        return await look()

    async def update_many(self, wanted: Any, change: Any, *, hint: str) -> None:
        assert hint == "_id_"
        self.updates.append((wanted, change))
        if self._lost:
            raise self._lost.pop(0)

    def find(self, wanted: Any, _shown: Any, **_options: Any) -> Found:
        self.asked.append(wanted)
        return Found(self.stored)


@pytest.mark.parametrize("lost", [AutoReconnect("a value"), NotPrimaryError("a value")])
async def test_attempts_whose_begin_was_interrupted_begin_once_under_one_token(
    lost: PyMongoError,
) -> None:
    queue, delivery = Queue(lost), a_delivery(an_endpoint().id)
    queue.stored = [delivery_document(delivery)]

    begun = await queue.begin([delivery.key], now=NOW, until=UNTIL)

    assert begun == [delivery]
    first, again = queue.updates
    assert first == again
    (stage,) = first[1]
    assert [wanted["taken"] for wanted in queue.asked] == [stage["$set"]["taken"]]


@pytest.mark.parametrize(
    ("lost", "tries"),
    [
        ([AutoReconnect("a value"), AutoReconnect("a value")], 2),
        ([ExecutionTimeout("a value", 50)], 1),
    ],
    ids=["twice", "otherwise"],
)
async def test_attempts_of_which_nothing_is_known_are_unavailable(
    lost: Sequence[PyMongoError], tries: int
) -> None:
    queue, delivery = Queue(*lost), a_delivery(an_endpoint().id)

    with pytest.raises(StoreUnavailable):
        await queue.begin([delivery.key], now=NOW, until=UNTIL)

    assert len(queue.updates) == tries
    assert queue.asked == []
