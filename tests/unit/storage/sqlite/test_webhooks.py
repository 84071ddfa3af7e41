"""Endpoints and deliveries in a file: what a write stores, and what it says of that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.storage.sqlite import webhooks
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.webhook_contract import (
    MAX_LEASE_MULTIPLE,
    AttemptResult,
    DeliveryState,
    Endpoint,
)
from fhirpub.testing.contracts.webhooks.records import (
    NOW,
    a_delivery,
    an_endpoint,
    begin,
    end,
    queue,
    stored_deliveries,
)
from fhirpub.testing.samples import LAB, OTHER


@pytest.fixture
async def lis(store: SqliteStore) -> Endpoint:
    """An endpoint in the store."""
    endpoint = an_endpoint()
    assert await store.put_endpoint(LAB, endpoint)
    return endpoint


async def test_an_endpoint_is_replaced_by_its_next_revision_alone(
    store: SqliteStore, lis: Endpoint
) -> None:
    second = replace(lis, revision=2, url="https://lab.example/2")

    put = [await store.put_endpoint(LAB, one) for one in (lis, second, second)]
    others = [
        await store.put_endpoint(LAB, replace(second, revision=4)),
        await store.put_endpoint(OTHER, replace(second, revision=3)),
        await store.put_endpoint(OTHER, replace(second, revision=3, tenant=OTHER)),
    ]

    assert (put, others) == ([False, True, False], [False] * 3)
    assert await store.endpoint(LAB, lis.id) == second


@pytest.mark.parametrize("taken", [1, 2, 3, 4, 5])
async def test_an_addition_to_a_queue_ends_before_the_first_place_that_is_taken(
    store: SqliteStore, lis: Endpoint, monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    monkeypatch.setattr(webhooks, "_INSERT_BATCH_SIZE", 2)
    await store.append([a_delivery(lis.id, taken, event_id="first")])

    added = await store.append([a_delivery(lis.id, number) for number in range(1, 6)])

    assert added == taken - 1
    stored = await stored_deliveries(store, lis.id)
    assert [one.sequence for one in stored] == [*range(1, taken + 1)]
    assert stored[-1].event_id == "first"


async def test_a_replay_of_nothing_counts_as_none(store: SqliteStore, lis: Endpoint) -> None:
    (delivery,) = await queue(store, 1, endpoint=lis.id, due=NOW)

    assert await store.reopen(LAB, lis.id, [delivery.event_id], now=NOW) == 0
    assert await store.reopen(LAB, lis.id, ["unknown"], now=NOW + 1) == 0
    assert await store.reopen(OTHER, lis.id, [delivery.event_id], now=NOW - 1) == 0

    assert await store.endpoint(LAB, lis.id) == lis
    assert await store.reopen(LAB, lis.id, [delivery.event_id], now=NOW - 1) == 1
    assert await store.endpoint(LAB, lis.id) == replace(lis, reopened=lis.reopened + 1)


async def test_a_delivery_that_had_ended_is_reopened_without_its_lease_and_attempts(
    store: SqliteStore, lis: Endpoint
) -> None:
    await store.append(
        [a_delivery(lis.id, state="dead", number=5, leased=NOW + 9, ended=NOW, due=NOW)]
    )

    assert await store.reopen(LAB, lis.id, ["evt_1"], now=NOW + 1) == 1

    (stored,) = await stored_deliveries(store, lis.id)
    assert (stored.state, stored.number, stored.leased) == ("pending", 0, 0)
    assert (stored.due, stored.ended) == (NOW + 1, None)


async def test_each_outcome_says_whether_it_was_stored(store: SqliteStore, lis: Endpoint) -> None:
    first, second = await queue(store, 2, endpoint=lis.id)
    attempts = [await begin(store, one) for one in (first, second)]
    outcomes = [
        AttemptResult(key=one.key, attempt=replace(attempt, ended=NOW + 40), state="delivered")
        for one, attempt in zip((first, second), attempts, strict=True)
    ]
    stale = replace(outcomes[1], attempt=replace(outcomes[1].attempt, begun=NOW - 1))

    assert await store.finish([outcomes[0], stale]) == [True, False]
    assert await store.finish(outcomes) == [True, True]
    assert await store.finish(outcomes) == [True, True]


async def test_an_outcome_is_known_as_stored_though_another_attempt_has_begun_since(
    store: SqliteStore, lis: Endpoint
) -> None:
    (delivery,) = await queue(store, 1, endpoint=lis.id)
    attempt = replace(await begin(store, delivery), ended=NOW + 40)
    outcome = AttemptResult(key=delivery.key, attempt=attempt, state="retrying", due=NOW)
    assert await store.finish([outcome]) == [True]

    await begin(store, delivery, now=NOW + 1)

    assert await store.finish([outcome]) == [True]


@pytest.mark.parametrize(
    ("state", "ended"), [("delivered", NOW + 40), ("dead", NOW + 40), ("retrying", None)]
)
async def test_a_delivery_ends_with_its_last_attempt_whatever_comes_of_it(
    store: SqliteStore, lis: Endpoint, state: DeliveryState, ended: int | None
) -> None:
    (delivery,) = await queue(store, 1, endpoint=lis.id)

    await end(store, delivery, state)

    (stored,) = await stored_deliveries(store, lis.id)
    assert (stored.state, stored.ended) == (state, ended)


async def test_deliveries_cost_the_writer_as_much_as_their_bodies(
    store: SqliteStore, lis: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs: list[tuple[int, int]] = []
    write = store._open.write

    def noted(item: Any, *, size: int = 0, index_rows: int = 0) -> Any:
        costs.append((size, index_rows))
        return write(item, size=size, index_rows=index_rows)

    monkeypatch.setattr(store._open, "write", noted)
    deliveries = [a_delivery(lis.id, number, body=b"x" * 500) for number in (1, 2)]
    await store.append(deliveries)
    await store.put_deliveries(deliveries)

    assert costs == [(1_000, 2)] * 2


@pytest.mark.parametrize(("now", "is_taken"), [(NOW + 29_999, False), (NOW + 30_000, True)])
async def test_an_attempt_may_begin_at_the_end_of_the_lease_of_another(
    store: SqliteStore, lis: Endpoint, now: int, *, is_taken: bool
) -> None:
    (delivery,) = await queue(store, 1, endpoint=lis.id)
    await begin(store, delivery)

    taken = await store.begin([delivery.key], now=now, until=now + 1)

    assert len(taken) == is_taken


@pytest.mark.parametrize(("more", "is_ours"), [(0, False), (1, True)])
async def test_a_lease_that_lasts_longer_than_any_can_is_taken_over(
    store: SqliteStore, more: int, *, is_ours: bool
) -> None:
    end = NOW + MAX_LEASE_MULTIPLE * 1_000 + more
    await store.lease(["relay"], owner="other", now=NOW, until=end)

    ours = await store.lease(["relay"], owner="we", now=NOW, until=NOW + 1_000)

    assert ours == ({"relay"} if is_ours else set())


async def test_a_sweep_goes_on_until_nothing_is_left_but_the_newest(
    store: SqliteStore, lis: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "_SWEEP_BATCH_SIZE", 2)
    for state in ("delivered", "dead"):
        endpoint = replace(an_endpoint(), created=NOW)
        await store.put_endpoint(LAB, endpoint)
        await queue(store, 6, endpoint=endpoint.id, state=state, ended=NOW)

    assert await store.sweep_deliveries(delivered=NOW, dead=NOW, open_=NOW) == 0
    assert await store.sweep_deliveries(delivered=NOW + 1, dead=NOW + 1, open_=NOW) == 10


async def test_a_replay_of_some_of_what_is_named_counts_as_one(
    store: SqliteStore, lis: Endpoint
) -> None:
    ended = await queue(store, 2, endpoint=lis.id, state="dead", ended=NOW, due=NOW)

    names = [*(one.event_id for one in ended), "unknown"]
    assert await store.reopen(LAB, lis.id, names, now=NOW + 1) == 2

    assert await store.endpoint(LAB, lis.id) == replace(lis, reopened=lis.reopened + 1)


@pytest.mark.parametrize(
    ("delivered", "dead", "swept"), [(0, 0, 0), (1, 0, 2), (0, 1, 1), (1, 1, 3)]
)
async def test_each_state_has_its_own_time_after_which_it_is_swept(
    store: SqliteStore, delivered: int, dead: int, swept: int
) -> None:
    for state, count in (("delivered", 3), ("dead", 2)):
        endpoint = an_endpoint()
        await store.put_endpoint(LAB, endpoint)
        await queue(store, count, endpoint=endpoint.id, state=state, ended=NOW)

    found = await store.sweep_deliveries(delivered=NOW + delivered, dead=NOW + dead, open_=0)

    assert found == swept


async def test_an_endpoint_without_deliveries_has_no_last_one(
    store: SqliteStore, lis: Endpoint
) -> None:
    await queue(store, 3, endpoint=lis.id)

    assert await store.last_sequences([lis.id, an_endpoint().id]) == {lis.id: 3}


async def test_all_leases_that_are_named_are_released(store: SqliteStore) -> None:
    names = ["relay", "a", "b"]
    await store.lease([*names, "c"], owner="we", now=NOW, until=NOW + 1_000)

    await store.release(names, owner="we")

    taken = await store.lease([*names, "c"], owner="other", now=NOW, until=NOW + 1_000)
    assert taken == {*names}


@pytest.mark.parametrize(("due", "swept"), [(NOW - 5, 2), (NOW, 0)])
async def test_what_was_left_open_is_swept_once_it_is_no_longer_due(
    store: SqliteStore, lis: Endpoint, due: int, swept: int
) -> None:
    await store.put_endpoint(LAB, replace(lis, revision=2, state="paused"))
    await queue(store, 3, endpoint=lis.id, created=NOW - 5, due=due)

    assert await store.sweep_deliveries(delivered=0, dead=0, open_=NOW) == swept


async def test_a_delivery_whose_attempt_has_ended_is_not_begun(
    store: SqliteStore, lis: Endpoint
) -> None:
    (delivery,) = await queue(store, 1, endpoint=lis.id)
    await end(store, delivery)

    assert await store.begin([delivery.key], now=NOW + 60_000, until=NOW + 90_000) == []
