"""How the endpoints are divided among processes, on a store that they share."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.leases import Leases
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.clock import HandClock
from fhirpub.webhooks.dispatch.leases import EndpointAssignments

TEN = [f"e-{number}" for number in range(10)]
SECONDS = 30


def process(store: SqliteStore, name: str, clock: HandClock) -> EndpointAssignments:
    leases = Leases(store, owner=name, seconds=SECONDS, clock=clock)
    return EndpointAssignments(leases, Random(1))


async def test_a_process_alone_has_all_endpoints(store: SqliteStore) -> None:
    alone = process(store, "a", HandClock())

    assert await alone.update(TEN) == 0
    assert alone.owned == set(TEN)
    assert all(alone.holds(name) for name in TEN)


async def test_without_endpoints_there_is_nothing_to_hold(store: SqliteStore) -> None:
    alone = process(store, "a", HandClock())

    assert await alone.update([]) == 0
    assert alone.owned == set()


async def test_what_another_process_holds_is_not_taken(store: SqliteStore) -> None:
    clock = HandClock()
    first, second = process(store, "a", clock), process(store, "b", clock)
    await first.update(TEN)

    assert await second.update(TEN) == 0
    assert second.owned == set()
    assert not any(second.holds(name) for name in TEN)


async def test_a_second_process_gets_half_of_them(store: SqliteStore) -> None:
    clock = HandClock()
    first, second = process(store, "a", clock), process(store, "b", clock)
    await first.update(TEN)
    await second.update(TEN)
    surplus = 0
    for _ in range(3):  # the least of three counts is right
        clock.forward(seconds=SECONDS / 3)
        surplus = await first.update(TEN)
        await second.update(TEN)
    given = sorted(first.owned)[:surplus]

    await first.give_up(given)
    await second.update(TEN)

    assert surplus == 5
    assert second.owned == set(given)
    assert first.owned | second.owned == set(TEN)
    assert not any(first.holds(name) for name in given)


async def test_of_an_odd_number_the_share_is_rounded_up(store: SqliteStore) -> None:
    clock = HandClock()
    first, second = process(store, "a", clock), process(store, "b", clock)
    await second.update([])

    await first.update(TEN[:7])

    assert len(first.owned) == 4


async def test_what_was_taken_beyond_the_share_is_free_for_others(store: SqliteStore) -> None:
    clock = HandClock()
    first, second = process(store, "a", clock), process(store, "b", clock)
    await second.update([])
    await first.update(TEN)

    await second.update(TEN)

    assert (len(first.owned), len(second.owned)) == (5, 5)
    assert not first.owned & second.owned


async def test_leases_that_are_not_prolonged_go_to_others(store: SqliteStore) -> None:
    clock = HandClock()
    first, second = process(store, "a", clock), process(store, "b", clock)
    await first.update(TEN)
    clock.forward(seconds=SECONDS)

    assert not any(first.holds(name) for name in TEN)
    await second.update(TEN)

    assert second.owned == set(TEN)


async def test_leases_are_prolonged_as_long_as_their_process_asks(store: SqliteStore) -> None:
    clock = HandClock()
    first = process(store, "a", clock)
    await first.update(TEN)
    for _ in range(4):
        clock.forward(seconds=SECONDS / 2)
        await first.update(TEN)

    assert all(first.holds(name) for name in TEN)


async def test_a_process_that_slept_has_lost_what_others_took(store: SqliteStore) -> None:
    clock = HandClock()
    first, second = process(store, "a", clock), process(store, "b", clock)
    await first.update(TEN)
    clock.forward(seconds=SECONDS)
    await second.update(TEN)

    await first.update(TEN)

    assert first.owned == set()


async def test_a_process_that_has_its_share_asks_for_no_endpoint_of_others(
    store: SqliteStore,
) -> None:
    clock = HandClock()
    asked: list[str] = []

    class Asking(Leases):
        async def take(self, names: Collection[str]) -> frozenset[str]:
            asked.extend(name for name in names if name.startswith("endpoint/"))
            return await super().take(names)

    other = process(store, "b", clock)
    await other.update([])
    first = EndpointAssignments(Asking(store, owner="a", seconds=SECONDS, clock=clock), Random(1))
    await first.update(TEN)
    asked.clear()

    surplus = await first.update(TEN)

    assert (len(first.owned), surplus, asked) == (5, 0, [])


async def test_one_that_counts_at_the_same_time_is_not_taken_for_many(store: SqliteStore) -> None:
    clock = HandClock()
    first = process(store, "a", clock)
    await first.update(TEN)
    counting = Leases(store, owner="b", seconds=SECONDS, clock=clock)
    await counting.take([f"dispatcher/{number}" for number in range(1, 9)])
    clock.forward(seconds=SECONDS / 2)

    assert await first.update(TEN) == 0


async def test_what_is_given_up_is_not_owned_from_then_on(store: SqliteStore) -> None:
    alone = process(store, "a", HandClock())
    await alone.update(TEN)

    await alone.give_up(TEN[:3])

    assert alone.owned == set(TEN[3:])


async def test_what_could_not_be_prolonged_in_time_is_not_owned(store: SqliteStore) -> None:
    clock = HandClock()

    class Failing(Leases):
        fails = False

        async def take(self, names: Collection[str]) -> frozenset[str]:
            if self.fails and any(name.startswith("endpoint/") for name in names):
                raise StoreUnavailable("away")
            return await super().take(names)

    leases = Failing(store, owner="a", seconds=SECONDS, clock=clock)
    first, second = EndpointAssignments(leases, Random(1)), process(store, "b", clock)
    await first.update(TEN)
    clock.forward(seconds=SECONDS)
    leases.fails = True
    with pytest.raises(StoreUnavailable):
        await first.update(TEN)
    await second.update(TEN)
    await second.update(TEN)
    leases.fails = False

    await first.update(TEN)

    assert not first.owned & second.owned
    assert all(first.holds(name) for name in first.owned)


async def test_a_process_whose_place_was_taken_while_it_slept_is_counted_in_another(
    store: SqliteStore,
) -> None:
    clock = HandClock()
    slept, other = process(store, "a", clock), process(store, "b", clock)
    await slept.update(TEN)
    clock.forward(seconds=SECONDS)
    await other.update(TEN)

    surplus = 0
    for _ in range(3):  # the least of three counts is right
        await slept.update(TEN)
        clock.forward(seconds=SECONDS / 3)
        surplus = await other.update(TEN)

    assert (len(other.owned), surplus) == (10, 5)


async def test_what_was_taken_up_to_the_share_is_held_and_the_rest_is_free(
    store: SqliteStore,
) -> None:
    clock = HandClock()
    first, second = process(store, "a", clock), process(store, "b", clock)
    await first.update(TEN[3:6])

    await second.update(TEN)
    await first.update(TEN)

    assert (len(second.owned), len(first.owned)) == (5, 5)
    assert all(second.holds(name) for name in second.owned)
    assert not first.owned & second.owned


async def test_what_is_held_and_not_wanted_any_more_is_given_away_too(store: SqliteStore) -> None:
    alone = process(store, "a", HandClock())
    await alone.update(TEN)

    assert await alone.update(TEN[:7]) == 3
