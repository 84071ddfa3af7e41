"""Deliveries in their queues, as a server keeps them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.storage.mongodb.store import MongoStore
from fhirpub.storage.webhook_contract import AttemptResult, DeliveryQuery
from fhirpub.testing.contracts.webhooks.records import (
    NOW,
    UNTIL,
    a_delivery,
    a_full_delivery,
    an_endpoint,
    begin,
    end,
    queue,
    sequences,
    stored_deliveries,
)
from fhirpub.testing.samples import LAB, OTHER, new_id

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_delivery_is_read_as_it_was_put_and_replaced(shared: MongoStore) -> None:
    delivery = a_full_delivery(new_id())
    await shared.put_deliveries([delivery])
    assert await stored_deliveries(shared, delivery.endpoint) == [delivery]

    await shared.put_deliveries([replace(delivery, state="delivered")])

    (found,) = await stored_deliveries(shared, delivery.endpoint)
    assert found == replace(delivery, state="delivered")


async def test_deliveries_are_listed_in_their_order_or_newest_first(shared: MongoStore) -> None:
    endpoint = (await queue(shared, 3))[0].endpoint

    assert await sequences(shared, endpoint) == [1, 2, 3]
    assert await sequences(shared, endpoint, newest_first=True) == [3, 2, 1]
    assert await sequences(shared, endpoint, newest_first=True, limit=2) == [3, 2]
    assert await sequences(shared, endpoint, limit=0) == []


async def test_deliveries_are_those_of_the_tenant_and_of_the_query(shared: MongoStore) -> None:
    deliveries = await queue(shared, 3)
    endpoint = deliveries[0].endpoint
    await end(shared, deliveries[1])

    assert await shared.deliveries(OTHER, DeliveryQuery(endpoint=endpoint)) == []
    assert await sequences(shared, endpoint, states=frozenset(["delivered"])) == [2]
    assert await sequences(shared, endpoint, event_ids=frozenset(["evt_3", "evt_9"])) == [3]
    assert await sequences(shared, endpoint, event_ids=frozenset()) == []
    assert await sequences(shared, endpoint, after=1, before=3) == [2]


async def test_deliveries_are_counted_by_state_for_their_tenant(shared: MongoStore) -> None:
    deliveries = await queue(shared, 3)
    await queue(shared, 1)
    await end(shared, deliveries[1])

    found = await shared.count_deliveries(LAB, deliveries[0].endpoint)

    assert found == {"pending": 2, "delivered": 1}
    assert await shared.count_deliveries(OTHER, deliveries[0].endpoint) == {}
    assert await shared.count_deliveries(LAB, new_id()) == {}


async def test_a_queue_ends_before_the_first_place_that_is_taken(shared: MongoStore) -> None:
    endpoint = (await queue(shared, 2))[0].endpoint
    more = [
        a_delivery(endpoint, 3),
        a_delivery(endpoint, 2, event_id="other"),
        a_delivery(endpoint, 4),
    ]

    assert await shared.append(more) == 1
    assert await shared.append([]) == 0
    assert await sequences(shared, endpoint) == [1, 2, 3]


async def test_the_last_place_of_each_queue_is_known(shared: MongoStore) -> None:
    one, other = (await queue(shared, 3))[0].endpoint, (await queue(shared, 1))[0].endpoint
    await queue(shared, 2)

    assert await shared.last_sequences([one, other, new_id()]) == {one: 3, other: 1}


async def test_events_that_an_endpoint_has_are_recognized(shared: MongoStore) -> None:
    endpoint = (await queue(shared, 2))[0].endpoint

    assert await shared.existing_deliveries(endpoint, ["evt_2", "evt_9"]) == {"evt_2"}
    assert await shared.existing_deliveries(new_id(), ["evt_2"]) == frozenset()


async def test_what_waits_is_open_and_behind_a_place_and_in_order(shared: MongoStore) -> None:
    deliveries = await queue(shared, 5)
    endpoint = deliveries[0].endpoint
    await end(shared, deliveries[1])
    await end(shared, deliveries[2], "retrying")

    async def waiting(**options: Any) -> list[int]:
        return [one.sequence for one in await shared.waiting(endpoint, **options)]

    assert await waiting() == [1, 3, 4, 5]
    assert await waiting(limit=2) == [1, 3]
    assert await waiting(after=3) == [4, 5]
    assert await waiting(after=1, limit=1) == [3]
    assert await waiting(limit=0) == []


async def test_a_delivery_that_waits_is_described_as_scheduling_needs_it(
    shared: MongoStore,
) -> None:
    (delivery,) = await queue(shared, 1)
    await begin(shared, delivery)

    (found,) = await shared.waiting(delivery.endpoint)

    assert (found.endpoint, found.sequence, found.event_id) == (delivery.endpoint, 1, "evt_1")
    assert (found.resource, found.created) == (delivery.resource, delivery.created)
    assert (found.due, found.number, found.leased) == (0, 1, UNTIL)


@pytest.mark.parametrize(
    ("changes", "is_begun"),
    [
        ({}, True),
        ({"due": NOW}, True),
        ({"due": NOW + 1}, False),
        ({"leased": NOW}, True),
        ({"leased": NOW + 1}, False),
        ({"state": "retrying"}, True),
        ({"state": "delivered"}, False),
        ({"state": "dead"}, False),
    ],
)
async def test_an_attempt_begins_of_what_is_open_and_due_and_free(
    shared: MongoStore, changes: dict[str, Any], *, is_begun: bool
) -> None:
    (delivery,) = await queue(shared, 1, **changes)

    begun = await shared.begin([delivery.key], now=NOW, until=UNTIL)

    assert [one.key for one in begun] == ([delivery.key] if is_begun else [])


async def test_an_attempt_is_counted_and_leases_its_delivery_alone(shared: MongoStore) -> None:
    delivery, other = await queue(shared, 2)

    (begun,) = await shared.begin([delivery.key, (new_id(), "evt_1")], now=NOW, until=UNTIL)

    assert (begun.number, begun.leased, len(begun.attempts)) == (1, UNTIL, 1)
    assert (begun.attempts[0].number, begun.attempts[0].begun) == (1, NOW)
    assert begun.attempts[0].ended is None
    assert await stored_deliveries(shared, delivery.endpoint) == [begun, other]
    assert await shared.begin([delivery.key], now=NOW, until=UNTIL) == []


async def test_the_end_of_an_attempt_frees_its_delivery_and_may_be_repeated(
    shared: MongoStore,
) -> None:
    (delivery,) = await queue(shared, 1)
    attempt = replace(await begin(shared, delivery), ended=NOW + 40, status=503, reason="busy")
    ended = AttemptResult(key=delivery.key, attempt=attempt, state="retrying", due=NOW + 99)

    assert await shared.finish([ended]) == [True]
    assert await shared.finish([ended]) == [True]
    assert await shared.finish([]) == []

    (found,) = await stored_deliveries(shared, delivery.endpoint)
    assert (found.state, found.due, found.leased, found.ended) == ("retrying", NOW + 99, 0, None)
    assert found.attempts == (attempt,)


async def test_the_end_of_an_earlier_attempt_is_dropped(shared: MongoStore) -> None:
    first, second = await queue(shared, 2)
    late = replace(await begin(shared, first), ended=NOW + 40)
    attempt = replace(await begin(shared, first, now=UNTIL), ended=UNTIL + 1)
    other = replace(await begin(shared, second), ended=NOW + 40)
    results = [
        AttemptResult(key=first.key, attempt=late, state="delivered"),
        AttemptResult(key=second.key, attempt=other, state="dead"),
    ]

    assert await shared.finish(results) == [False, True]

    open_, dead = await stored_deliveries(shared, first.endpoint)
    assert (open_.state, open_.number, open_.leased) == ("pending", 2, UNTIL + 30_000)
    assert replace(open_.attempts[-1], ended=UNTIL + 1) == attempt
    assert (dead.state, dead.ended) == ("dead", NOW + 40)


async def test_what_ended_is_reopened_and_what_waits_is_due_at_once(shared: MongoStore) -> None:
    endpoint = an_endpoint()
    await shared.put_endpoint(LAB, endpoint)
    ended, waits, due, leased = await queue(shared, 4, endpoint=endpoint.id)
    await end(shared, ended, "dead")
    await shared.put_deliveries([replace(waits, due=NOW + 10), replace(leased, leased=UNTIL)])
    wanted = ["evt_1", "evt_2", "evt_3", "evt_4", "evt_9"]

    assert await shared.reopen(LAB, endpoint.id, wanted, now=NOW + 5) == 2

    found = await stored_deliveries(shared, endpoint.id)
    assert [(one.state, one.number, one.due, one.leased) for one in found] == [
        ("pending", 0, NOW + 5, 0),
        ("pending", 0, NOW + 5, 0),
        ("pending", 0, 0, 0),
        ("pending", 0, 0, UNTIL),
    ]
    assert (found[0].ended, len(found[0].attempts)) == (None, 1)
    assert found[2] == due
    assert await shared.endpoint(LAB, endpoint.id) == replace(endpoint, reopened=1)


@pytest.mark.parametrize("due", [0, NOW + 10])
async def test_what_ended_is_reopened_once_whenever_it_would_have_been_due(
    shared: MongoStore, due: int
) -> None:
    endpoint = an_endpoint()
    await shared.put_endpoint(LAB, endpoint)
    await shared.put_deliveries([a_delivery(endpoint.id, state="dead", ended=NOW, due=due)])

    assert await shared.reopen(LAB, endpoint.id, ["evt_1"], now=NOW + 5) == 1

    (found,) = await stored_deliveries(shared, endpoint.id)
    assert (found.state, found.due, found.ended) == ("pending", NOW + 5, None)


async def test_only_deliveries_and_endpoints_that_are_meant_are_reopened(
    shared: MongoStore,
) -> None:
    mine, other = an_endpoint(), an_endpoint()
    for endpoint in (mine, other):
        await shared.put_endpoint(LAB, endpoint)
        for delivery in await queue(shared, 2, endpoint=endpoint.id):
            await end(shared, delivery)

    assert await shared.reopen(OTHER, mine.id, ["evt_1"], now=NOW) == 0
    assert await shared.reopen(LAB, mine.id, ["evt_1"], now=NOW) == 1
    assert await shared.reopen(LAB, mine.id, ["evt_9"], now=NOW) == 0

    states = [one.state for one in await stored_deliveries(shared, mine.id)]
    assert states == ["pending", "delivered"]
    states = [one.state for one in await stored_deliveries(shared, other.id)]
    assert states == ["delivered", "delivered"]
    reopened = {one.id: one.reopened for one in await shared.endpoints(LAB)}
    assert (reopened[mine.id], reopened[other.id]) == (2, 0)


async def test_a_scan_goes_through_all_queues_in_order(shared: MongoStore) -> None:
    first, second = sorted([new_id(), new_id()])
    for endpoint in (second, first):
        await queue(shared, 3, endpoint=endpoint)

    async def scan(after: tuple[str, int]) -> list[tuple[str, int]]:
        found = await shared.scan_deliveries(after=after, limit=2)
        return [(one.endpoint, one.sequence) for one in found]

    assert await scan((first, 0)) == [(first, 1), (first, 2)]
    assert (await scan((first, 2)))[0] == (first, 3)
    assert await scan((second, 1)) == [(second, 2), (second, 3)]
