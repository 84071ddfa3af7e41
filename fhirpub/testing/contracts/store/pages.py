"""Tests of the pages of a search: their order, totals and ends."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from fhirpub.storage.contract import (
    MAX_PAGE_BYTES,
    Page,
)
from fhirpub.storage.criteria import (
    IDENTIFIER,
    LAST_UPDATED,
    Order,
    TimeMatch,
    sort_key,
)
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.store.queries import (
    all_pages,
    found_by,
    has,
    match,
    query,
    token,
    wanting,
)
from fhirpub.testing.contracts.store.records import (
    add_all,
)
from fhirpub.testing.samples import (
    LAB,
    OTHER,
    SYSTEM,
    a_version,
    new_id,
    successor,
)


class PageContract:
    """Pages are in order, complete, without repetition, and not disturbed by writes."""

    @pytest.mark.parametrize("by", ["type", "ids", "system", "value"])
    async def test_pages_are_in_order_complete_and_without_repetition(
        self, store: Store, by: str
    ) -> None:
        # Many have the same time, and the order of their ids is not that of their additions.
        versions = [a_version(updated=1_000 + number % 3, value="same") for number in range(23)]
        await add_all(store, versions)
        wanted = {
            "type": query(limit=4),
            "ids": query(ids=[version.id for version in versions], limit=4),
            "system": query(match(SYSTEM), limit=4),
            "value": query(match(None, "same"), limit=4),
        }[by]

        pages = await all_pages(store, wanted)

        expected = sorted(versions, key=lambda each: (-each.updated, each.id))
        assert [version for page in pages for version in page.versions] == expected
        assert [len(page.versions) for page in pages] == [4, 4, 4, 4, 4, 3]
        assert {page.total for page in pages} == {23}

    async def test_a_page_that_is_just_full_is_the_last(self, store: Store) -> None:
        await add_all(store, [a_version() for _ in range(4)])

        pages = await all_pages(store, query(limit=2))

        assert [(len(page.versions), page.more) for page in pages] == [(2, True), (2, False)]

    async def test_after_the_last_entry_there_is_nothing_more(self, store: Store) -> None:
        version = a_version()
        await store.add(LAB, version)

        page = await store.search(LAB, query(after=(version.updated, version.id)))

        assert page == Page((), 1, more=False)

    async def test_limit_0_gives_the_total_alone(self, store: Store) -> None:
        await add_all(store, [a_version() for _ in range(3)])

        assert await store.search(LAB, query(limit=0)) == Page((), 3, more=False)

    async def test_pages_are_not_disturbed_by_writes_in_between(self, store: Store) -> None:
        versions = [a_version(updated=1_000 + number) for number in range(12)]
        await add_all(store, versions)
        newest_first = versions[::-1]
        wanted = query(limit=4)

        first = await store.search(LAB, wanted)
        await store.add(LAB, a_version(updated=5_000))
        await store.add(LAB, successor(newest_first[1], updated=5_001))
        await store.add(LAB, successor(newest_first[10], updated=5_002))
        last = first.versions[-1]
        rest = await all_pages(store, replace(wanted, after=(last.updated, last.id)))

        seen = [*first.versions, *(version for page in rest for version in page.versions)]
        untouched = [version for version in newest_first if version is not newest_first[10]]
        assert seen == untouched

    async def test_a_total_is_of_the_same_moment_as_its_page(
        self, store: Store, other_store: Store
    ) -> None:
        async def write() -> None:
            for _ in range(40):
                await other_store.add(LAB, a_version())

        writing = asyncio.create_task(write())
        pages = []
        while not writing.done():
            pages.append(await store.search(LAB, query(limit=100)))
        await writing

        assert all(page.total == len(page.versions) for page in pages)

    async def test_pages_come_in_the_order_that_is_asked_for(self, store: Store) -> None:
        versions = {
            # By the lowest value, or descending by the highest; versions without one come last.
            "a": found_by(("code", "1", ""), ("date", 10, 20), updated=1_004, value="2"),
            "b": found_by(
                ("code", "1", ""), ("date", 20, 30), ("date", 70, 80), updated=1_003, value="1"
            ),
            "c": found_by(("code", "2", ""), ("date", 30, 40), updated=1_002, value="4"),
            "d": found_by(updated=1_001, value="3"),
        }
        await add_all(store, list(versions.values()))
        names = {version.id: name for name, version in versions.items()}
        newest_first = Order(LAST_UPDATED, descending=True)

        for order, expected in (
            ((Order("date"),), "abcd"),
            ((Order("date", descending=True),), "bcad"),
            ((Order("code"), Order("date", descending=True)), "bacd"),
            ((Order("code", descending=True), Order("date")), "cabd"),
            ((Order("code"), newest_first), "abcd"),
            ((Order(LAST_UPDATED),), "dcba"),
            ((newest_first,), "abcd"),
            ((Order(IDENTIFIER),), "badc"),
        ):
            pages = await all_pages(store, wanting(order=order, limit=1))

            seen = "".join(names[version.id] for page in pages for version in page.versions)
            assert seen == expected, order

    async def test_a_total_that_is_not_asked_for_is_not_given(self, store: Store) -> None:
        version = found_by(("code", "a", ""))
        await store.add(LAB, version)

        for wanted in (wanting(), wanting(has("code", token("a"))), wanting(ids={version.id})):
            page = await store.search(LAB, replace(wanted, count_up_to=0))
            assert page == Page((version,), None, more=False)

    @pytest.mark.parametrize("most", [1, 4, 5, 6])
    async def test_a_total_is_given_if_it_is_within_what_is_to_be_counted(
        self, store: Store, most: int
    ) -> None:
        versions = [found_by(("code", "a", "")) for _ in range(5)]
        await add_all(store, versions)
        ids = [version.id for version in versions]

        queries = [wanting(), wanting(has("code", token("a"))), query(), query(match(SYSTEM))]
        for wanted in (*queries, query(ids=ids[:5]), query(ids=[*ids, new_id()])):
            page = await store.search(LAB, replace(wanted, count_up_to=most))
            assert page.total == (5 if most >= 5 else None)
            assert len(page.versions) == 5

    async def test_pages_by_values_are_not_disturbed_by_writes_in_between(
        self, store: Store
    ) -> None:
        versions = [found_by(("code", "a", ""), updated=1_000 + number) for number in range(12)]
        await add_all(store, versions)
        newest_first = versions[::-1]
        wanted = wanting(has("code", token("a")), limit=4)

        first = await store.search(LAB, wanted)
        await store.add(LAB, found_by(("code", "a", ""), updated=5_000))
        await store.add(LAB, successor(newest_first[1], updated=5_001))
        await store.add(LAB, successor(newest_first[10], updated=5_002, search=b"[]"))
        place = sort_key(wanted.order, first.versions[-1])
        rest = await all_pages(store, replace(wanted, after=place))

        seen = [*first.versions, *(version for page in rest for version in page.versions)]
        assert seen == [version for version in newest_first if version is not newest_first[10]]

    async def test_every_version_is_listed_once_and_in_order(self, store: Store) -> None:
        first = [found_by(("code", "a", ""), updated=1_000 + number % 3) for number in range(5)]
        later = [
            successor(version, updated=2_000 + n, search=b"[]") for n, version in enumerate(first)
        ]
        await add_all(store, [*first, *later[:3], a_version(type="Observation")])
        await store.add(OTHER, a_version())
        wanted = wanting(every_version=True, limit=3)

        pages = await all_pages(store, wanted)

        expected = sorted([*first, *later[:3]], key=lambda each: (-each.updated, each.id))
        assert [version for page in pages for version in page.versions] == expected
        assert {page.total for page in pages} == {8}
        for criterion, matches in (
            (
                has(LAST_UPDATED, TimeMatch(from_=1_002)),
                [e for e in expected if e.updated > 1_001],
            ),
            (has("code", token("a")), [version for version in expected if version in first]),
        ):
            page = await store.search(LAB, wanting(criterion, every_version=True))
            assert page == Page(tuple(matches), len(matches), more=False)
        own = frozenset({first[0].id})
        page = await store.search(LAB, wanting(ids=own, every_version=True))
        assert page == Page((later[0], first[0]), 2, more=False)

    @pytest.mark.parametrize("every_version", [False, True])
    @pytest.mark.parametrize("of_it", ["body", "parts"])
    async def test_a_search_that_finds_large_versions_has_shorter_pages(
        self, store: Store, *, of_it: str, every_version: bool
    ) -> None:
        much = {of_it: b"x" * (MAX_PAGE_BYTES // 2 - 5000)}
        large = [a_version(updated=n, **much) for n in range(5)]
        for version in large:
            await store.add(LAB, version)
        wanted = replace(query(limit=4), every_version=every_version)

        first = await store.search(LAB, wanted)
        after = sort_key(wanted.order, first.versions[-1])
        second = await store.search(LAB, replace(wanted, limit=1, after=after))

        assert 0 < len(first.versions) < 4
        assert first.more
        found = (*first.versions, *second.versions)
        assert found == tuple(large[::-1][: len(found)])
