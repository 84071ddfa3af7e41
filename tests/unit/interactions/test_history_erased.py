"""Histories of what was erased and registered again, and what is asked of the store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fhirpub.interactions.context import Context
from fhirpub.interactions.erased import ResourceErased
from fhirpub.storage.contract import Page, SearchQuery, Version
from fhirpub.storage.erasure.tombstones import Tombstone, erased_type
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.samples import LAB
from tests.unit.interactions.histories import (
    DAY,
    START,
    context_of,
    first_version,
    later,
    numbers,
    of_all,
    of_one,
)

TOMBSTONE = Tombstone(version=2, at=START + DAY)


def erased(version: Version) -> Version:
    return replace(version, type=erased_type(version.type), body=TOMBSTONE.encode())


async def registered_again(store: SqliteStore, *, versions: int) -> Version:
    """Store a report that was erased as version 2, and what followed; return the first one."""
    first = first_version()
    again = replace(later(first, 3), created=START + 2 * DAY)
    await store.add(LAB, erased(first))
    await store.add(LAB, erased(later(first, 2)))
    for number in range(3, 3 + versions):
        await store.add(LAB, replace(later(again, number), created=again.created))
    return first


@pytest.mark.parametrize(("versions", "found"), [(1, [3]), (3, [5, 4, 3])])
async def test_a_history_begins_behind_the_last_tombstone(
    store: SqliteStore, context: Context, versions: int, found: list[int]
) -> None:
    first = await registered_again(store, versions=versions)

    listing = await of_one(context, first)

    assert numbers(listing) == found
    assert listing.bundle(context)["total"] == versions


@pytest.mark.parametrize("below", ["3", "2", "1"])
async def test_nothing_of_what_was_erased_is_in_a_page(
    store: SqliteStore, context: Context, below: str
) -> None:
    first = await registered_again(store, versions=2)

    listing = await of_one(context, first, _below=below)

    assert numbers(listing) == []
    assert [link["relation"] for link in listing.bundle(context)["link"]] == ["self"]


@pytest.mark.parametrize(("below", "found"), [("", [4, 3]), ("4", [3]), ("3", []), ("2", [])])
async def test_what_is_erased_and_not_emptied_yet_is_in_no_page(
    store: SqliteStore, context: Context, below: str, found: list[int]
) -> None:
    first = first_version()
    await store.add(LAB, first)
    await store.add(LAB, erased(later(first, 2)))
    for number in (3, 4):
        await store.add(LAB, later(first, number))

    assert numbers(await of_one(context, first, _below=below)) == found


async def test_what_is_erased_has_no_history(store: SqliteStore, context: Context) -> None:
    first = await registered_again(store, versions=0)

    with pytest.raises(ResourceErased):
        await of_one(context, first)


class Asked(SqliteStore):
    """A store that notes what it is asked."""

    queries: list[SearchQuery]

    async def search(self, tenant: str, query: SearchQuery) -> Page:
        self.queries.append(query)
        return await super().search(tenant, query)


async def test_a_history_of_a_type_takes_no_more_time_and_count_than_a_search(
    tmp_path: Path,
) -> None:
    store = Asked(tmp_path / "fhirpub.db", deadline_seconds=10)
    store.queries = []
    await store.start()
    context = context_of(store)

    await of_all(context)
    await store.stop()

    (query,) = store.queries
    assert query.max_seconds == context.config.limits.search_seconds
    assert (query.count_up_to, query.every_version, query.has_members) == (1_000, True, False)
    assert (query.criteria, query.after, query.limit) == ((), None, context.config.fhir.page_size)
