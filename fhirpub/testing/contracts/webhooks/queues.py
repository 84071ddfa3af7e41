"""Tests of appending deliveries to the queues of endpoints."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import fields, replace
from typing import Any

import pytest

from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import (
    Delivery,
)
from fhirpub.testing.contracts.webhooks.records import (
    a_delivery,
    a_full_delivery,
    queue,
    stored_deliveries,
)
from fhirpub.testing.samples import new_id


class QueueContract:
    """A queue has no gaps, and contains no event twice."""

    async def test_deliveries_come_back_as_they_were_appended(
        self, store: Store, reader: Store
    ) -> None:
        delivery = a_full_delivery(new_id())

        assert await store.append([delivery]) == 1

        (read,) = await stored_deliveries(reader, delivery.endpoint)
        for field in fields(Delivery):
            assert getattr(read, field.name) == getattr(delivery, field.name), field.name

    async def test_many_deliveries_are_appended_in_their_order(self, store: Store) -> None:
        deliveries = await queue(store, 300)

        assert await stored_deliveries(store, deliveries[0].endpoint, limit=1000) == deliveries

    async def test_appending_nothing_adds_nothing(self, store: Store) -> None:
        assert await store.append([]) == 0

    @pytest.mark.parametrize("changes", [{"sequence": 9}, {"event_id": "evt_new"}])
    async def test_appending_stops_where_the_event_or_its_place_is_taken(
        self, store: Store, changes: dict[str, Any]
    ) -> None:
        endpoint = new_id()
        taken = a_delivery(endpoint, 3)
        await store.append([taken])
        new = [a_delivery(endpoint, number) for number in (1, 2, 3, 4)]
        new[2] = replace(taken, body=b"other", **changes)

        assert await store.append(new) == 2

        assert await stored_deliveries(store, endpoint) == [*new[:2], taken]

    @pytest.mark.parametrize("taken", [128, 129, 200, 257])
    async def test_many_are_appended_up_to_the_one_that_is_taken(
        self, store: Store, taken: int
    ) -> None:
        endpoint = new_id()
        deliveries = [a_delivery(endpoint, number) for number in range(1, 301)]
        await store.append([deliveries[taken - 1]])

        assert await store.append(deliveries) == taken - 1

        stored = await stored_deliveries(store, endpoint, limit=1000)
        assert stored == deliveries[:taken]

    async def test_appending_again_adds_nothing(self, store: Store) -> None:
        deliveries = await queue(store, 3)

        assert await store.append(deliveries) == 0
        assert await stored_deliveries(store, deliveries[0].endpoint) == deliveries

    async def test_each_endpoint_has_a_queue_of_its_own(self, store: Store) -> None:
        first, second = await queue(store, 2), await queue(store, 2)

        assert await stored_deliveries(store, first[0].endpoint) == first
        assert await stored_deliveries(store, second[0].endpoint) == second

    async def test_concurrent_appends_leave_no_gap_and_repeat_no_event(
        self, store: Store, other_store: Store
    ) -> None:
        endpoint, events = new_id(), [f"evt_{number}" for number in range(60)]

        async def relay(own: Store, ordered: Sequence[str]) -> None:
            while left := _without(ordered, await own.existing_deliveries(endpoint, ordered)):
                last = (await own.last_sequences([endpoint])).get(endpoint, 0)
                places = enumerate(left[:7], start=last + 1)
                await own.append([a_delivery(endpoint, n, event_id=place) for n, place in places])

        await asyncio.gather(
            relay(store, events), relay(other_store, events[::-1]), relay(store, events[30:])
        )

        found = await stored_deliveries(store, endpoint)
        assert [delivery.sequence for delivery in found] == list(range(1, 61))
        assert sorted(delivery.event_id for delivery in found) == sorted(events)

    async def test_the_ends_of_queues_are_their_highest_places(self, store: Store) -> None:
        first, second = await queue(store, 12), await queue(store, 1)
        wanted = [first[0].endpoint, second[0].endpoint, new_id()]

        assert await store.last_sequences(wanted) == {wanted[0]: 12, wanted[1]: 1}

    async def test_the_events_that_have_a_delivery_are_found(self, store: Store) -> None:
        (delivery,) = await queue(store, 1)
        await queue(store, 2)

        assert await store.existing_deliveries(delivery.endpoint, ["evt_1", "evt_2"]) == {"evt_1"}

    async def test_of_no_endpoint_no_event_and_no_places_there_is_nothing(
        self, store: Store
    ) -> None:
        (delivery,) = await queue(store, 1)

        assert await store.last_sequences([]) == {}
        assert await store.existing_deliveries(delivery.endpoint, []) == frozenset()
        assert [*await store.waiting(delivery.endpoint, limit=0)] == []

    async def test_what_waits_is_that_of_one_endpoint(self, store: Store) -> None:
        first, _second = await queue(store, 2), await queue(store, 3)

        waiting = await store.waiting(first[0].endpoint)

        assert [(each.endpoint, each.sequence) for each in waiting] == [
            (first[0].endpoint, 1),
            (first[0].endpoint, 2),
        ]

    async def test_what_was_appended_is_there_after_a_restart(
        self, store: Store, reopen: Any
    ) -> None:
        deliveries = await queue(store, 3)
        await store.stop()

        assert await stored_deliveries(await reopen(), deliveries[0].endpoint) == deliveries


def _without(events: Sequence[str], told: Collection[str]) -> list[str]:
    return [event for event in events if event not in told]
