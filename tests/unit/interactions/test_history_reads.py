"""What a history asks of the store, how far back it looks, and in whose time zone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fhirpub.interactions import history as history_module
from fhirpub.interactions.context import Context
from fhirpub.interactions.history import listing_of
from fhirpub.storage.contract import Page, SearchQuery, Version
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.samples import LAB, new_member_id
from tests.unit.interactions.histories import (
    DAY,
    START,
    body_of,
    context_of,
    first_version,
    later,
    links,
    numbers,
    of_all,
    of_one,
    versions_in,
)

HOUR = 3_600_000


@dataclass
class Read:
    """One reading of versions: below which number, and how many at most."""

    tenant: str
    below: int | None
    limit: int


class Noting(SqliteStore):
    """A store that notes what a history reads."""

    reads: list[Read]
    queries: list[SearchQuery]

    async def history(
        self, tenant: str, resource_id: str, *, below: int | None = None, limit: int = 20
    ) -> Sequence[Version]:
        self.reads.append(Read(tenant, below, limit))
        return await super().history(tenant, resource_id, below=below, limit=limit)

    async def search(self, tenant: str, query: SearchQuery) -> Page:
        self.queries.append(query)
        return await super().search(tenant, query)


@pytest.fixture
async def noting(tmp_path: Path) -> AsyncIterator[Noting]:
    store = Noting(tmp_path / "fhirpub.db", deadline_seconds=10)
    store.reads, store.queries = [], []
    await store.start()
    yield store
    await store.stop()


def changed(context: Context, **fields: Any) -> Context:
    return cast("Context", SimpleNamespace(**{**vars(context), **fields}))


# How much is read


async def test_one_version_more_than_a_page_has_is_read(noting: Noting) -> None:
    first = await versions_in(noting, 5)

    await of_one(context_of(noting), first, _count="2")

    assert noting.reads == [Read(LAB, 6, 3)]


async def test_a_page_below_a_version_is_read_from_there(noting: Noting) -> None:
    first = await versions_in(noting, 5)

    await of_one(context_of(noting), first, _count="2", _below="4")

    assert noting.reads == [Read(LAB, 4, 3)]


async def test_what_follows_versions_that_are_passed_over_is_read_in_larger_numbers(
    noting: Noting,
) -> None:
    first = await versions_in(noting, 5)

    listing = await of_one(context_of(noting), first, _count="1", _at="2026-01-02")

    assert numbers(listing) == [2]
    assert noting.reads == [Read(LAB, 6, 2), Read(LAB, 4, 100)]


async def test_a_page_longer_than_a_batch_is_read_in_its_own_length(
    noting: Noting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_module, "_LOOKUP_BATCH_SIZE", 2)
    first = await versions_in(noting, 9)

    await of_one(context_of(noting), first, _count="3", _at="2026-01-02")

    assert [read.limit for read in noting.reads] == [4, 4]


@pytest.mark.parametrize(
    "given",
    [
        {"_since": "2026-01-04"},
        {"_at": "2026-01-04"},
        {"_at": "2026-01-02", "_since": "2026-01-04"},
        {"_at": "2026-01-04", "_since": "2026-01-02"},
    ],
)
async def test_nothing_older_than_what_can_match_is_read(
    noting: Noting, given: dict[str, str]
) -> None:
    first = await versions_in(noting, 9)

    await of_one(context_of(noting), first, _count="5", **given)

    assert [read.below for read in noting.reads] == [10]


async def test_versions_up_to_the_very_moment_are_read(
    noting: Noting,
) -> None:
    first = await versions_in(noting, 5)

    listing = await of_one(context_of(noting), first, _count="1", _since="2026-01-04")

    assert numbers(listing) == [5]
    assert "next" in links(listing, context_of(noting))


async def of_january(store: SqliteStore) -> Version:
    """Store a report with versions of the 10th and 20th of January, and of the 1st of February."""
    first = first_version(updated=START + 9 * DAY)
    await store.add(LAB, first)
    for number, day in ((2, 19), (3, 31)):
        await store.add(LAB, replace(later(first, number), updated=START + day * DAY))
    return first


async def test_a_full_page_leads_to_what_is_found_behind_it(
    store: SqliteStore, context: Context
) -> None:
    first = await of_january(store)

    listing = await of_one(context, first, _count="1", _at="2026-01")

    assert numbers(listing) == [2]
    assert "next" in links(listing, context)


async def test_a_full_page_behind_which_nothing_is_found_leads_nowhere(
    store: SqliteStore, context: Context
) -> None:
    first = await of_january(store)

    listing = await of_one(context, first, _count="1", _at="2026-01", _since="2026-01-15")

    assert numbers(listing) == [2]
    assert "next" not in links(listing, context)


async def test_nothing_is_read_behind_as_many_bytes_as_a_page_has(
    noting: Noting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_module, "MAX_PAGE_BYTES", len(body_of(2)))
    first = await of_january(noting)

    listing = await of_one(context_of(noting), first, _count="1", _at="2026-01")

    assert numbers(listing) == [2]
    assert "next" in links(listing, context_of(noting))
    assert len(noting.reads) == 1


# The beginning and the end


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"_below": "0"}, []),
        ({"_since": "1970"}, [3, 2, 1]),
        ({"_since": "2026-01-03"}, [3]),
        ({"_since": "2026-01-03T00:00:00.001Z"}, []),
        ({"_at": "1970"}, []),
        ({"_at": "2025-12-31"}, []),
        ({"_at": "2026-01-01"}, [1]),
        ({"_at": "2026-01-02T00:00:00Z"}, [2]),
        ({"_at": "2026-01-03", "_since": "2026-01-03"}, [3]),
    ],
)
async def test_a_version_counts_from_its_moment_until_that_of_the_next(
    store: SqliteStore, context: Context, given: dict[str, str], found: list[int]
) -> None:
    first = await versions_in(store, 3)

    assert numbers(await of_one(context, first, **given)) == found


async def test_a_time_on_a_later_page_ends_with_the_version_above_it(
    store: SqliteStore, context: Context
) -> None:
    first = await versions_in(store, 4)

    assert numbers(await of_one(context, first, _at="2026-01-03T12:00:00Z", _below="3")) == []
    assert numbers(await of_one(context, first, _at="2026-01-02T12:00:00Z", _below="3")) == [2]


async def test_a_history_whose_beginning_is_missing_has_no_total(
    store: SqliteStore, context: Context
) -> None:
    only = later(first_version(), 3)
    await store.add(LAB, only)

    listing = await of_one(context, only)

    assert numbers(listing) == [3]
    assert "total" not in listing.bundle(context)


def test_the_first_version_of_a_member_was_registered(context: Context) -> None:
    member = replace(first_version(), id=new_member_id(), type="Observation")

    (entry,) = listing_of([member], [], None).bundle(context)["entry"]

    assert entry["request"] == {"method": "POST", "url": "Observation"}
    assert entry["response"]["status"] == "201"
    assert entry["fullUrl"].endswith(f"/fhir/r4/Observation/{member.id}")


async def test_types_that_are_members_are_looked_for_as_such(noting: Noting) -> None:
    found = SimpleNamespace(member=object())
    context = changed(context_of(noting), searched={"DiagnosticReport": found})

    await of_all(context, _since="2026-01-02")

    (query,) = noting.queries
    assert query.has_members is True
    assert (query.type, len(query.criteria)) == ("DiagnosticReport", 1)
