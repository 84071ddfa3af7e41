"""What a history asks of the store, how far back it looks, and in whose time zone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fhirpub.errors import InvalidSearch
from fhirpub.interactions import history as history_module
from fhirpub.interactions.context import Context
from fhirpub.interactions.cursors import seal
from fhirpub.interactions.history import listing_of, place_after, read_parameters
from fhirpub.storage.contract import Page, SearchQuery, Version
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.samples import LAB, new_member_id
from tests.unit.interactions.histories import (
    DAY,
    OTHER,
    START,
    TENANT,
    asked,
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


# The history of a type


async def test_a_history_of_a_type_begins_at_the_very_moment(
    store: SqliteStore, context: Context
) -> None:
    await versions_in(store, 3)

    assert numbers(await of_all(context, _since="2026-01-03")) == [3]
    assert numbers(await of_all(context, _since="2026-01-03T00:00:00.001Z")) == []


async def test_a_history_of_a_type_without_entries_has_its_total(
    store: SqliteStore, context: Context
) -> None:
    await versions_in(store, 3)

    bundle = (await of_all(context, _count="0")).bundle(context)

    assert bundle["total"] == 3
    assert [link["relation"] for link in bundle["link"]] == ["self"]


async def test_a_history_of_a_type_has_as_many_versions_as_the_settings_allow(
    store: SqliteStore,
) -> None:
    await versions_in(store, 5)
    context = context_of(store, page_size=2, page_size_max=3)

    assert numbers(await of_all(context)) == [5, 4]
    assert numbers(await of_all(context, _count="4")) == [5, 4, 3]


async def test_pages_of_a_type_go_on_to_the_end(store: SqliteStore, context: Context) -> None:
    await versions_in(store, 5)
    found: list[int] = []
    cursor = ""
    for _page in range(3):
        listing = await of_all(context, _count="2", _cursor=cursor)
        found += numbers(listing)
        cursor = links(listing, context).get("next", "").partition("_cursor=")[2]

    assert found == [5, 4, 3, 2, 1]
    assert cursor == ""


async def test_a_link_of_a_type_serves_this_type(store: SqliteStore, context: Context) -> None:
    await versions_in(store, 2)
    listing = await of_all(context, _count="1")
    cursor = links(listing, context)["next"].partition("_cursor=")[2]

    assert place_after(cursor, TENANT, "history:DiagnosticReport", []) is not None
    with pytest.raises(InvalidSearch):
        place_after(cursor, TENANT, "history:Observation", [])


async def test_types_that_are_members_are_looked_for_as_such(noting: Noting) -> None:
    found = SimpleNamespace(member=object())
    context = changed(context_of(noting), searched={"DiagnosticReport": found})

    await of_all(context, _since="2026-01-02")

    (query,) = noting.queries
    assert query.has_members is True
    assert (query.type, len(query.criteria)) == ("DiagnosticReport", 1)


# Parameters


def test_times_without_an_offset_are_read_in_the_zone_of_the_settings(context: Context) -> None:
    given = asked(_since="2026-01-01T00:00:00", _at="2026-01-01")
    zone = timezone(timedelta(hours=-3))

    found = read_parameters(given, ("_since", "_at"), changed(context, default_zone=zone))

    assert found.since == START + 3 * HOUR
    assert found.at == (START + 3 * HOUR, START + DAY + 3 * HOUR)


def test_a_count_above_the_limit_is_the_limit() -> None:
    context = context_of(None, page_size=2, page_size_max=3)

    limits = [read_parameters(asked(_count=n), (), context).limit for n in ("", "0", "3", "4")]

    assert limits == [2, 0, 3, 3]


def test_the_usual_count_is_no_more_than_the_limit() -> None:
    context = context_of(None, page_size=9, page_size_max=3)

    assert read_parameters(asked(), (), context).limit == 3


def test_only_named_parameters_are_repeated_in_links(context: Context) -> None:
    found = read_parameters(asked(_count="3", _cursor="x"), ("_count",), context)

    assert found.given == (("_count", "3"),)
    assert found.cursor == "x"


# Cursors


def test_a_cursor_leads_to_the_place_that_it_was_made_for() -> None:
    cursor = seal((START, "id", 2), TENANT, "history:X", [("_since", "2026")])

    assert place_after(cursor, TENANT, "history:X", [("_since", "2026")]) == (START, "id", 2)


@pytest.mark.parametrize(
    ("tenant", "kind", "since"),
    [
        (OTHER, "history:X", "2026"),
        (TENANT, "history:Y", "2026"),
        (TENANT, "X", "2026"),
        (TENANT, "history:X", "2025"),
    ],
)
def test_a_cursor_serves_one_tenant_one_type_and_one_time(
    tenant: Any, kind: str, since: str
) -> None:
    cursor = seal((START, "id", 2), TENANT, "history:X", [("_since", "2026")])

    with pytest.raises(InvalidSearch):
        place_after(cursor, tenant, kind, [("_since", since)])
