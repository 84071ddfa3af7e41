"""Tests of reopening deliveries."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import (
    AttemptResult,
    DeliveryState,
)
from fhirpub.testing.contracts.webhooks.records import (
    NOW,
    UNTIL,
    an_endpoint,
    begin,
    end,
    queue,
    stored_deliveries,
)
from fhirpub.testing.samples import LAB, OTHER, new_id


class ReplayContract:
    """Ended deliveries can be sent again, and waiting ones at once."""

    @pytest.mark.parametrize("state", ["delivered", "dead"])
    async def test_a_reopened_delivery_is_pending_in_its_place_and_with_its_log(
        self, store: Store, state: DeliveryState
    ) -> None:
        delivery = (await queue(store, 3))[1]
        await end(store, delivery, state)
        (ended,) = await stored_deliveries(
            store, delivery.endpoint, event_ids=frozenset(["evt_2"])
        )

        assert await store.reopen(LAB, delivery.endpoint, ["evt_2"], now=UNTIL) == 1

        reopened = replace(ended, state="pending", number=0, due=UNTIL, ended=None)
        assert (await stored_deliveries(store, delivery.endpoint))[1] == reopened

    async def test_a_delivery_that_waits_for_its_next_attempt_becomes_due(
        self, store: Store
    ) -> None:
        (delivery,) = await queue(store, 1)
        attempt = await begin(store, delivery)
        await store.finish(
            [AttemptResult(key=delivery.key, attempt=attempt, state="retrying", due=UNTIL)]
        )
        (waiting,) = await stored_deliveries(store, delivery.endpoint)

        assert await store.reopen(LAB, delivery.endpoint, ["evt_1"], now=NOW + 1) == 1
        assert await stored_deliveries(store, delivery.endpoint) == [replace(waiting, due=NOW + 1)]

    async def test_a_delivery_that_is_due_or_being_sent_is_left_alone(self, store: Store) -> None:
        deliveries = await queue(store, 2)
        await begin(store, deliveries[0])
        before = await stored_deliveries(store, deliveries[0].endpoint)

        events = [delivery.event_id for delivery in deliveries]

        assert await store.reopen(LAB, deliveries[0].endpoint, events, now=NOW + 1) == 0
        assert await stored_deliveries(store, deliveries[0].endpoint) == before

    async def test_other_tenants_and_unknown_deliveries_are_not_reopened(
        self, store: Store
    ) -> None:
        (delivery,) = await queue(store, 1)
        await end(store, delivery)

        assert await store.reopen(OTHER, delivery.endpoint, ["evt_1"], now=NOW) == 0
        assert await store.reopen(LAB, new_id(), ["evt_1"], now=NOW) == 0
        assert await store.reopen(LAB, delivery.endpoint, ["evt_2"], now=NOW) == 0
        assert await store.count_deliveries(LAB, delivery.endpoint) == {"delivered": 1}

    async def test_an_endpoint_counts_that_something_was_reopened(self, store: Store) -> None:
        endpoint = an_endpoint()
        await store.put_endpoint(LAB, endpoint)
        deliveries = await queue(store, 2, endpoint=endpoint.id)
        for delivery in deliveries:
            await end(store, delivery)

        await store.reopen(LAB, endpoint.id, ["evt_1", "evt_2"], now=UNTIL)

        assert await store.endpoint(LAB, endpoint.id) == replace(endpoint, reopened=1)

    async def test_only_the_endpoint_whose_deliveries_were_reopened_counts_that(
        self, store: Store
    ) -> None:
        endpoints = [an_endpoint(created=1), an_endpoint(created=2)]
        for endpoint in endpoints:
            await store.put_endpoint(LAB, endpoint)
            (delivery,) = await queue(store, 1, endpoint=endpoint.id)
            await end(store, delivery)

        await store.reopen(LAB, endpoints[0].id, ["evt_1"], now=UNTIL)

        assert [each.reopened for each in await store.endpoints(LAB)] == [1, 0]
        assert await store.count_deliveries(LAB, endpoints[1].id) == {"delivered": 1}

    async def test_what_else_waits_for_its_next_attempt_is_left_alone(self, store: Store) -> None:
        one, other = await queue(store, 2, due=UNTIL)
        (elsewhere,) = await queue(store, 1, due=UNTIL)

        assert await store.reopen(LAB, one.endpoint, [one.event_id], now=NOW) == 1

        assert await stored_deliveries(store, one.endpoint) == [replace(one, due=NOW), other]
        assert await stored_deliveries(store, elsewhere.endpoint) == [elsewhere]

    async def test_another_tenant_makes_nothing_due_and_counts_nothing(self, store: Store) -> None:
        endpoint = an_endpoint()
        await store.put_endpoint(LAB, endpoint)
        (delivery,) = await queue(store, 1, endpoint=endpoint.id, due=UNTIL)

        assert await store.reopen(OTHER, endpoint.id, [delivery.event_id], now=NOW) == 0

        assert await stored_deliveries(store, endpoint.id) == [delivery]
        assert await store.endpoint(LAB, endpoint.id) == endpoint
