"""How long a process counts a lease as its own, and what it asks of the store."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from pathlib import Path

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.leases import Leases
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.clock import HandClock


class Observed(SqliteStore):
    """A store that records for how long leases are asked, and can be away."""

    is_away = False

    def __init__(self, path: Path) -> None:
        super().__init__(path, deadline_seconds=10)
        self.asked: list[tuple[int, int]] = []
        self.released: list[list[str]] = []

    async def lease(
        self, names: Collection[str], *, owner: str, now: int, until: int
    ) -> frozenset[str]:
        if self.is_away:
            raise StoreUnavailable("it is away")
        self.asked.append((now, until))
        return await super().lease(names, owner=owner, now=now, until=until)

    async def release(self, names: Collection[str], *, owner: str) -> None:
        if self.is_away:
            raise StoreUnavailable("it is away")
        self.released.append(sorted(names))
        await super().release(names, owner=owner)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Observed]:
    store = Observed(tmp_path / "fhirpub.db")
    await store.start()
    yield store
    await store.stop()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def ours(store: Observed, clock: HandClock) -> Leases:
    return Leases(store, owner="we", seconds=3, clock=clock)


@pytest.fixture
def theirs(store: Observed, clock: HandClock) -> Leases:
    return Leases(store, owner="they", seconds=3, clock=clock)


async def test_what_was_never_taken_is_not_held_and_is_due(ours: Leases) -> None:
    assert (ours.held("a"), ours.due("a")) == (False, True)


async def test_a_lease_is_held_up_to_its_end_and_not_at_it(ours: Leases, clock: HandClock) -> None:
    await ours.take(["a"])

    clock.now += 2_999
    before = ours.held("a")
    clock.now += 1

    assert (before, ours.held("a")) == (True, False)


async def test_a_lease_is_due_when_a_third_of_it_has_passed(
    ours: Leases, clock: HandClock
) -> None:
    await ours.take(["a"])

    clock.now += 999
    before = ours.due("a")
    clock.now += 1

    assert (before, ours.due("a")) == (False, True)


async def test_a_lease_of_another_name_is_none_of_this_one(ours: Leases) -> None:
    assert await ours.take(["a"]) == {"a"}

    assert (ours.held("b"), ours.due("b")) == (False, True)


async def test_a_lease_is_asked_for_from_now_for_its_length(
    store: Observed, clock: HandClock
) -> None:
    await Leases(store, owner="we", seconds=1.5006, clock=clock).take(["a"])

    assert store.asked == [(clock.now, clock.now + 1_501)]


async def test_a_lease_that_is_taken_again_is_prolonged(ours: Leases, clock: HandClock) -> None:
    await ours.take(["a"])
    clock.now += 2_000

    await ours.take(["a"])
    clock.now += 2_999

    assert ours.held("a")


async def test_what_another_holds_is_not_ours(ours: Leases, theirs: Leases) -> None:
    await theirs.take(["a"])

    assert await ours.take(["a", "b"]) == {"b"}
    assert (ours.held("a"), ours.held("b")) == (False, True)


async def test_what_another_has_taken_since_is_held_no_longer(
    store: Observed, clock: HandClock, ours: Leases
) -> None:
    await ours.take(["a", "b"])
    ahead = HandClock(clock.now + 3_000)
    await Leases(store, owner="they", seconds=3, clock=ahead).take(["a"])

    assert await ours.take(["a"]) == frozenset()
    assert (ours.held("a"), ours.held("b")) == (False, True)


async def test_while_the_store_is_away_a_lease_is_held_up_to_its_end(
    store: Observed, clock: HandClock, ours: Leases
) -> None:
    await ours.take(["a"])
    store.is_away = True
    clock.now += 2_000

    with pytest.raises(StoreUnavailable):
        await ours.take(["a"])

    assert ours.held("a")
    clock.now += 1_000
    assert not ours.held("a")


async def test_what_is_released_is_free_for_others(ours: Leases, theirs: Leases) -> None:
    await ours.take(["a", "b"])

    await ours.release(["a"])

    assert (ours.held("a"), ours.due("a"), ours.held("b")) == (False, True, True)
    assert await theirs.take(["a", "b"]) == {"a"}


async def test_what_is_released_is_not_held_even_if_the_store_is_away(
    store: Observed, ours: Leases
) -> None:
    await ours.take(["a"])
    store.is_away = True

    with pytest.raises(StoreUnavailable):
        await ours.release(["a"])

    assert not ours.held("a")


async def test_a_lease_of_another_stays_when_it_is_released(ours: Leases, theirs: Leases) -> None:
    await theirs.take(["a"])

    await ours.release(["a"])

    assert theirs.held("a")
    assert await ours.take(["a"]) == frozenset()


async def test_all_that_is_held_is_released_together(
    store: Observed, ours: Leases, theirs: Leases
) -> None:
    await ours.take(["a", "b"])
    await theirs.take(["c"])

    await ours.release_all()

    assert store.released == [["a", "b"]]
    assert await theirs.take(["a", "b"]) == {"a", "b"}


async def test_where_nothing_is_released_the_store_is_not_asked(
    store: Observed, ours: Leases
) -> None:
    await ours.release_all()
    await ours.release([])

    assert store.released == []
