"""Tests of sweeping old deliveries."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.storage.store import Store
from fhirpub.testing.contracts.webhooks.records import (
    NOW,
    UNTIL,
    a_delivery,
    an_endpoint,
    end,
    queue,
    sequences,
)
from fhirpub.testing.samples import LAB, new_id


class SweepContract:
    """Old deliveries are deleted, and the sequences continue."""

    async def test_what_ended_long_ago_is_swept(self, store: Store) -> None:
        deliveries = await queue(store, 4)
        await end(store, deliveries[0], "delivered", now=NOW)
        await end(store, deliveries[1], "dead", now=NOW)

        swept = await store.sweep_deliveries(delivered=NOW + 41, dead=NOW + 41, open_=UNTIL)

        assert swept == 2
        assert await sequences(store, deliveries[0].endpoint) == [3, 4]

    async def test_what_ended_recently_stays(self, store: Store) -> None:
        deliveries = await queue(store, 4)
        await end(store, deliveries[0], "delivered")
        await end(store, deliveries[1], "dead")

        assert await store.sweep_deliveries(delivered=NOW + 40, dead=NOW + 40, open_=0) == 0

    async def test_what_was_delivered_and_what_was_given_up_have_terms_of_their_own(
        self, store: Store
    ) -> None:
        deliveries = await queue(store, 4)
        await end(store, deliveries[0], "delivered")
        await end(store, deliveries[1], "dead")

        assert await store.sweep_deliveries(delivered=0, dead=UNTIL, open_=0) == 1
        assert await sequences(store, deliveries[0].endpoint) == [1, 3, 4]

    async def test_what_is_swept_is_counted_whatever_became_of_it(self, store: Store) -> None:
        endpoint = an_endpoint(state="paused")
        await store.put_endpoint(LAB, endpoint)
        deliveries = await queue(store, 7, endpoint=endpoint.id)
        await end(store, deliveries[0], "delivered")
        for delivery in deliveries[1:3]:
            await end(store, delivery, "dead")

        assert await store.sweep_deliveries(delivered=UNTIL, dead=UNTIL, open_=UNTIL) == 6
        assert await sequences(store, endpoint.id) == [7]

    async def test_the_newest_delivery_of_an_endpoint_stays(self, store: Store) -> None:
        deliveries = await queue(store, 3)
        for delivery in deliveries:
            await end(store, delivery)

        assert await store.sweep_deliveries(delivered=UNTIL, dead=UNTIL, open_=UNTIL) == 2
        assert await store.last_sequences([deliveries[0].endpoint]) == {deliveries[0].endpoint: 3}

    async def test_the_newest_delivery_of_each_endpoint_stays(self, store: Store) -> None:
        queues = [await queue(store, count) for count in (1, 3, 2)]
        for delivery in (each for deliveries in queues for each in deliveries):
            await end(store, delivery)

        assert await store.sweep_deliveries(delivered=UNTIL, dead=0, open_=0) == 3
        endpoints = [deliveries[0].endpoint for deliveries in queues]
        left = [await sequences(store, endpoint) for endpoint in endpoints]
        assert left == [[1], [3], [2]]

    @pytest.mark.parametrize(
        ("state", "left"),
        [
            ("unverified", [3, 4]),
            ("active", [1, 2, 3, 4]),
            ("paused", [3, 4]),
            ("disabled", [3, 4]),
            ("deleted", [3, 4]),
        ],
    )
    async def test_what_was_left_open_goes_if_its_endpoint_is_not_active(
        self, store: Store, state: Any, left: list[int]
    ) -> None:
        endpoint = an_endpoint(state=state)
        await store.put_endpoint(LAB, endpoint)
        deliveries = [a_delivery(endpoint.id, n, created=NOW + n) for n in range(1, 5)]
        await store.append(deliveries)
        await end(store, deliveries[1], "retrying")

        swept = await store.sweep_deliveries(delivered=0, dead=0, open_=NOW + 3)

        assert swept == 4 - len(left)
        assert await sequences(store, endpoint.id) == left

    async def test_of_a_deleted_endpoint_nothing_stays(self, store: Store) -> None:
        endpoint = an_endpoint(state="deleted")
        await store.put_endpoint(LAB, endpoint)
        for delivery in await queue(store, 2, endpoint=endpoint.id):
            await end(store, delivery)

        assert await store.sweep_deliveries(delivered=UNTIL, dead=0, open_=0) == 2
        assert await sequences(store, endpoint.id) == []

    async def test_what_was_reopened_recently_is_not_left_open_long_ago(
        self, store: Store
    ) -> None:
        endpoint = an_endpoint(state="paused")
        await store.put_endpoint(LAB, endpoint)
        delivery, _other, _newest = await queue(store, 3, endpoint=endpoint.id)
        await end(store, delivery, "dead")
        await store.reopen(LAB, endpoint.id, [delivery.event_id], now=NOW + 50)

        assert await store.sweep_deliveries(delivered=0, dead=0, open_=NOW + 50) == 1
        assert await sequences(store, endpoint.id) == [1, 3]
        assert await store.sweep_deliveries(delivered=0, dead=0, open_=NOW + 51) == 1

    async def test_thousands_are_swept(self, store: Store) -> None:
        endpoint = new_id()
        ended = [
            a_delivery(endpoint, number, state="delivered", ended=NOW) for number in range(1, 1202)
        ]
        await store.put_deliveries(ended)

        assert await store.sweep_deliveries(delivered=UNTIL, dead=0, open_=0) == 1200
