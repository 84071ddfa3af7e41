"""Tests of leases (ADR 10)."""

from __future__ import annotations

import asyncio

from fhirpub.storage.store import Store
from fhirpub.testing.contracts.webhooks.records import (
    NOW,
    UNTIL,
)


class LeaseContract:
    """A name is leased by at most one owner at a time."""

    async def test_a_free_name_is_ours(self, store: Store) -> None:
        ours = await store.lease(["a", "b"], owner="we", now=NOW, until=UNTIL)

        assert ours == {"a", "b"}

    async def test_a_name_of_another_is_not_ours(self, store: Store, other_store: Store) -> None:
        await store.lease(["a"], owner="they", now=NOW, until=UNTIL)

        ours = await other_store.lease(["a", "b"], owner="we", now=UNTIL - 1, until=UNTIL + 9)

        assert ours == {"b"}

    async def test_a_lease_of_ours_is_prolonged(self, store: Store) -> None:
        await store.lease(["a"], owner="we", now=NOW, until=UNTIL)

        assert await store.lease(["a"], owner="we", now=NOW, until=UNTIL + 9) == {"a"}
        assert await store.lease(["a"], owner="they", now=UNTIL, until=UNTIL + 9) == frozenset()

    async def test_a_lease_that_has_run_out_can_be_taken(self, store: Store) -> None:
        await store.lease(["a"], owner="they", now=NOW, until=UNTIL)

        assert await store.lease(["a"], owner="we", now=UNTIL, until=UNTIL + 9) == {"a"}

    async def test_a_lease_by_a_clock_that_was_wrong_can_be_taken(self, store: Store) -> None:
        await store.lease(["far", "near"], owner="they", now=NOW + 90, until=NOW + 100)
        await store.lease(["far"], owner="they", now=NOW + 91, until=NOW + 101)

        assert await store.lease(["far", "near"], owner="we", now=NOW, until=NOW + 10) == {"far"}

    async def test_a_lease_that_was_released_can_be_taken(self, store: Store) -> None:
        await store.lease(["a"], owner="they", now=NOW, until=UNTIL)
        await store.release(["a", "unknown"], owner="they")

        assert await store.lease(["a"], owner="we", now=NOW, until=UNTIL) == {"a"}

    async def test_a_lease_of_another_is_not_released(self, store: Store) -> None:
        await store.lease(["a"], owner="they", now=NOW, until=UNTIL)
        await store.release(["a"], owner="we")

        assert await store.lease(["a"], owner="we", now=NOW, until=UNTIL) == frozenset()

    async def test_a_release_gives_up_what_it_names_alone(self, store: Store) -> None:
        await store.lease(["a", "b"], owner="they", now=NOW, until=UNTIL)
        await store.release(["a"], owner="they")

        assert await store.lease(["a", "b"], owner="we", now=NOW, until=UNTIL) == {"a"}

    async def test_of_no_names_none_is_ours(self, store: Store) -> None:
        await store.lease(["a"], owner="we", now=NOW, until=UNTIL)

        assert await store.lease([], owner="we", now=NOW, until=UNTIL) == frozenset()
        await store.release([], owner="we")
        assert await store.lease(["a"], owner="they", now=NOW, until=UNTIL) == frozenset()

    async def test_of_those_who_want_a_name_at_once_one_gets_it(
        self, store: Store, other_store: Store
    ) -> None:
        names = [f"name{number}" for number in range(5)]
        await store.lease(names[:2], owner="before", now=NOW - 10, until=NOW)

        ours = await asyncio.gather(
            *(
                item.lease(names, owner=str(number), now=NOW, until=UNTIL)
                for number, item in enumerate([store, other_store] * 4)
            )
        )

        assert sorted(name for our in ours for name in our) == names
