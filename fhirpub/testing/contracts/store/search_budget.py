"""Tests of the limit of a search, and of the shares that tenants have of all searches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from fhirpub.errors import SearchTooCostly, Throttled
from fhirpub.storage.contract import SearchQuery
from fhirpub.storage.criteria import NEWEST_FIRST, Order, TimeMatch
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.store.queries import found_by, has, query, token, wanting
from fhirpub.testing.contracts.store.records import add_all
from fhirpub.testing.samples import LAB, OTHER, a_version

_COUNT = 2_000
_QUEUE = 40
_SECONDS = 0.01


class SearchBudgetContract:
    """A search ends after its time, and delays no other tenant."""

    async def test_a_search_beyond_its_time_is_refused(self, store: Store) -> None:
        await _fill(store)

        with pytest.raises(SearchTooCostly) as refused:
            await store.search(LAB, _costly())

        assert [issue.code for issue in refused.value.issues] == ["too-costly"]

    async def test_a_search_is_found_too_costly_again_and_again(self, store: Store) -> None:
        await _fill(store)

        for _ in range(5):
            with pytest.raises(SearchTooCostly):
                await store.search(LAB, _costly())

    async def test_a_search_within_its_time_finds_what_one_without_limit_finds(
        self, store: Store
    ) -> None:
        await _fill(store, 100)

        for wanted in (
            query(),
            wanting(has("code", token("a"))),
            wanting(has("code", token("b"), negated=True), limit=3),
            wanting(has("date", TimeMatch(from_=50)), order=(Order("date"), *NEWEST_FIRST)),
            wanting(limit=0),
            wanting(every_version=True),
        ):
            found = await store.search(LAB, replace(wanted, max_seconds=60))

            assert found == await store.search(LAB, wanted)

    async def test_other_calls_are_served_during_and_after_costly_searches(
        self, store: Store
    ) -> None:
        await _fill(store)
        theirs = a_version()
        await store.add(OTHER, theirs)

        async with _queued(store):
            assert await store.latest(OTHER, theirs.id) == theirs
            assert await store.history(OTHER, theirs.id) == [theirs]
            assert (await store.search(OTHER, query())).versions == (theirs,)
            assert await store.add(OTHER, a_version())
            assert await store.add(LAB, a_version())

        assert (await store.search(LAB, query(limit=1))).more
        assert (await store.search(OTHER, query(limit=1))).more

    async def test_a_tenant_does_not_wait_behind_the_searches_of_another(
        self, store: Store
    ) -> None:
        await _fill(store)
        theirs = a_version()
        await store.add(OTHER, theirs)

        async with _queued(store) as searches:
            found = await store.search(OTHER, query())
            ended = sum(search.done() for search in searches)

        assert found.versions == (theirs,)
        assert ended < _QUEUE / 2


async def _fill(store: Store, count: int = _COUNT) -> None:
    """Add reports of the tenant ``LAB``, each with several search values."""
    versions = [
        found_by(
            ("code", "ab"[number % 2], "s"),
            ("status", "final", ""),
            ("date", number, number + 1),
            updated=1_000 + number,
        )
        for number in range(count)
    ]
    await add_all(store, versions)


def _costly() -> SearchQuery:
    """Return a search that looks at every report in many ways, and has little time for it."""
    dates = [has("date", TimeMatch(before=-n), TimeMatch(after=-n)) for n in range(1, 31)]
    order = (Order("code"), Order("status"), Order("date", descending=True))
    return wanting(*dates, order=order, max_seconds=_SECONDS)


@asynccontextmanager
async def _queued(store: Store) -> AsyncGenerator[list[asyncio.Task[object]]]:
    """Run many costly searches of the tenant ``LAB`` during the block, each of them refused."""
    searches: list[asyncio.Task[object]] = [
        asyncio.create_task(store.search(LAB, _costly())) for _ in range(_QUEUE)
    ]
    await asyncio.sleep(0)
    yield searches
    ended = await asyncio.gather(*searches, return_exceptions=True)
    assert all(isinstance(result, SearchTooCostly | Throttled) for result in ended)
