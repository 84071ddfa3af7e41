"""Of times that many versions have, only the newest versions are looked at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.storage.contract import Version
from fhirpub.storage.criteria import Criterion, Order, TimeMatch
from fhirpub.storage.mongodb import schema
from fhirpub.storage.mongodb.search import pages
from fhirpub.storage.mongodb.search.pipeline import count_plan, newest_plan
from fhirpub.storage.store import Store
from fhirpub.testing.store_contract import LAB, add_all, found_by, has, token, wanting
from tests.storage.mongodb.helpers import COMMANDS

SINCE = has("date", TimeMatch(after=5))
WITHIN = has("date", TimeMatch(from_=1, until=30))
CODE = has("code", token("a"))


def hints_of(sent: list[dict[str, Any]]) -> list[str]:
    """Return the indexes that searches have read, in this order."""
    return [command["hint"] for command in sent if command["command"] == "aggregate"]


def days(count: int, day: int = 10) -> list[Version]:
    """Return versions of a day, several of each moment."""
    return [
        found_by(("date", day, day + 10), ("code", "a", ""), updated=1_000 + n // 3)
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("criteria", "index"),
    [
        ([SINCE], schema.BY_TIME),
        ([WITHIN], schema.BY_TIME),
        ([WITHIN, CODE], schema.BY_SEARCH_VALUE),
        ([CODE, WITHIN], schema.BY_SEARCH_VALUE),
    ],
)
async def test_the_newest_of_a_range_are_found_among_the_newest_candidates(
    store: Store, criteria: list[Criterion], index: str
) -> None:
    versions = days(50)
    await add_all(store, versions)
    in_order = sorted(versions, key=lambda one: (-one.updated, one.id))

    with COMMANDS.recorded() as sent:
        page = await store.search(LAB, replace(wanting(*criteria), limit=11, count_up_to=0))

    assert hints_of(sent) == [index]
    assert [one.id for one in page.versions] == [one.id for one in in_order[:11]]


async def test_the_total_is_that_of_all(store: Store) -> None:
    await add_all(store, days(50))

    page = await store.search(LAB, replace(wanting(WITHIN), limit=11))

    assert page.total == 50


@pytest.mark.parametrize("criteria", [[WITHIN], [WITHIN, CODE]])
async def test_a_page_that_ends_amid_entries_of_one_moment_has_them_in_their_order(
    store: Store, criteria: list[Criterion]
) -> None:
    versions = [replace(one, updated=1_000) for one in days(50)]
    await add_all(store, versions)
    in_order = sorted(one.id for one in versions)

    page = await store.search(LAB, replace(wanting(*criteria), limit=10, count_up_to=0))

    assert [one.id for one in page.versions] == in_order[:10]


async def test_older_candidates_are_looked_at_if_too_few_of_the_newest_match(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_NEWEST", 20)
    old = days(12)
    newer = [replace(one, updated=one.updated + 1_000) for one in days(20, day=50)]
    await add_all(store, [*old, *newer])

    with COMMANDS.recorded() as sent:
        page = await store.search(LAB, replace(wanting(WITHIN), limit=11, count_up_to=0))

    assert hints_of(sent) == [schema.BY_TIME, schema.BY_SEARCH_VALUE]
    assert len(page.versions) == 11
    assert {one.id for one in page.versions} <= {one.id for one in old}


@pytest.mark.parametrize(
    ("count", "index"),
    [(pages._MANY, schema.BY_TIME), (pages._MANY - 1, schema.BY_SEARCH_VALUE)],
)
async def test_many_of_times_without_an_end_are_found_by_the_index_by_time(
    store: Store, monkeypatch: pytest.MonkeyPatch, count: int, index: str
) -> None:
    monkeypatch.setattr(pages, "_NEWEST", 1)
    versions = days(count)
    await add_all(store, versions)
    in_order = sorted(versions, key=lambda one: (-one.updated, one.id))

    with COMMANDS.recorded() as sent:
        page = await store.search(LAB, replace(wanting(SINCE), limit=10))

    assert hints_of(sent)[:3] == [schema.BY_TIME, schema.BY_SEARCH_VALUE, index]
    assert [one.id for one in page.versions] == [one.id for one in in_order[:10]]
    assert page.total == count


@pytest.mark.parametrize(
    "changes",
    [
        {"criteria": (CODE,)},
        {"criteria": (has("date", TimeMatch(after=5), negated=True),)},
        {"criteria": (has("date", TimeMatch(until=5)),)},
        {"limit": 0},
        {"ids": ("a",)},
        {"order": (Order("date"),)},
        {"has_members": True},
    ],
)
def test_the_newest_are_not_looked_at_where_that_saves_nothing(changes: dict[str, Any]) -> None:
    assert newest_plan(LAB, replace(wanting(WITHIN), **changes), most=10) is None


@pytest.mark.parametrize(
    "criteria",
    [
        [WITHIN],
        [CODE],
        [SINCE, CODE],
        [has("date", TimeMatch(after=5), negated=True)],
    ],
)
def test_nothing_is_counted_where_an_index_has_the_newest_or_few_match(
    criteria: list[Criterion],
) -> None:
    assert count_plan(LAB, wanting(*criteria), most=10) is None
