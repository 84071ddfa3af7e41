"""Tests of copying deliveries into another store."""

from __future__ import annotations

from dataclasses import replace

from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import (
    AttemptResult,
    Delivery,
)
from fhirpub.testing.contracts.webhooks.records import (
    a_delivery,
    a_full_delivery,
    begin,
    queue,
    stored_deliveries,
)
from fhirpub.testing.samples import LAB, new_id


class TransferContract:
    """Deliveries can be copied exactly, and continued in the other store."""

    async def test_deliveries_are_walked_in_the_order_of_endpoint_and_sequence(
        self, store: Store
    ) -> None:
        deliveries = [*await queue(store, 12), *await queue(store, 2)]
        ordered = sorted(deliveries, key=lambda each: (each.endpoint, each.sequence))

        walked: list[Delivery] = []
        while page := await store.scan_deliveries(
            after=(walked[-1].endpoint, walked[-1].sequence) if walked else ("", 0), limit=5
        ):
            walked += page

        assert walked == ordered

    async def test_a_walk_and_a_queue_have_limits_of_their_own(self, store: Store) -> None:
        endpoint = new_id()
        deliveries = [a_delivery(endpoint, number) for number in range(1, 1_003)]
        await store.put_deliveries(deliveries)

        assert await store.scan_deliveries() == deliveries[:100]
        waiting = await store.waiting(endpoint)
        assert [delivery.sequence for delivery in waiting] == [*range(1, 1_001)]

    async def test_deliveries_that_are_put_are_there_as_they_are(
        self, store: Store, reader: Store
    ) -> None:
        endpoint = new_id()
        deliveries = [a_delivery(endpoint, 2), a_full_delivery(endpoint)]

        await store.put_deliveries(deliveries)

        assert await stored_deliveries(reader, endpoint) == deliveries

    async def test_deliveries_that_are_put_again_are_replaced(self, store: Store) -> None:
        endpoint = new_id()
        full = a_full_delivery(endpoint)
        await store.put_deliveries([full])

        await store.put_deliveries([a_delivery(endpoint, 7)])

        assert await stored_deliveries(store, endpoint) == [a_delivery(endpoint, 7)]

    async def test_an_attempt_of_a_moved_delivery_can_end(self, store: Store) -> None:
        (delivery,) = await queue(store, 1)
        attempt = await begin(store, delivery)
        (moved,) = [replace(item, endpoint=new_id()) for item in await store.scan_deliveries()]
        await store.put_deliveries([moved])

        await store.finish([AttemptResult(key=moved.key, attempt=attempt, state="delivered")])

        assert await store.count_deliveries(LAB, moved.endpoint) == {"delivered": 1}
