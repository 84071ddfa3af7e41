"""Ranges of times in the SQLite store: the newest of their candidates are looked at first.

The contract holds where every range takes that way, however few its candidates are.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from fhirpub.storage.contract import SearchQuery
from fhirpub.storage.criteria import Criterion, TimeMatch, encode, sort_key
from fhirpub.storage.sqlite.search import pages as search_page
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.store.criteria import CriteriaContract
from fhirpub.testing.contracts.store.members import MemberContract
from fhirpub.testing.contracts.store.pages import PageContract
from fhirpub.testing.contracts.store.random_search import RandomSearchContract
from fhirpub.testing.contracts.store.search import SearchContract
from fhirpub.testing.store_contract import (
    LAB,
    REPORT,
    Reopen,
    a_version,
    add_all,
    has,
    reopening,
    token,
)

_DAYS, _PER_DAY = 100, 30


@pytest.fixture
async def reopen(path: Path) -> AsyncGenerator[Reopen]:
    async with reopening(lambda: SqliteStore(path, deadline_seconds=10)) as reopen:
        yield reopen


@pytest.fixture
async def store(reopen: Reopen) -> Store:
    return await reopen()


@pytest.fixture
async def other_store(reopen: Reopen, store: Store) -> Store:
    return await reopen()


@pytest.fixture(params=["store", "other_store"])
def reader(request: pytest.FixtureRequest) -> Store:
    found: Store = request.getfixturevalue(request.param)
    return found


class TestNewestFirst(
    SearchContract, CriteriaContract, PageContract, RandomSearchContract, MemberContract
):
    """What the contract promises, with the least number of candidates for this way."""

    @pytest.fixture(autouse=True)
    def always(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(search_page, "FIRST_COUNT", 0)
        monkeypatch.setattr(search_page, "_NEWEST_FACTORS", (1, 2))


def within(first: int, last: int, *more: Criterion, **changes: object) -> SearchQuery:
    """Return a query for the reports of some days."""
    days = Criterion("date", (TimeMatch(from_=first, until=last),))
    usual = {"type": REPORT, "criteria": (days, *more), "limit": 20, "count_up_to": 0}
    return SearchQuery(**(usual | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("share", [1, 10, 1_000])
async def test_pages_are_those_of_all_candidates(
    path: Path, store: Store, monkeypatch: pytest.MonkeyPatch, share: int
) -> None:
    random = Random(share)
    await add_all(
        store,
        [
            a_version(
                updated=1_700_000_000_000 + random.randrange(1_000),
                search=encode(
                    [
                        ("date", day, day + 1),
                        ("code", "rare" if random.randrange(share) == 0 else "usual", ""),
                    ]
                ),
            )
            for day in range(_DAYS)
            for _number in range(_PER_DAY)
        ],
    )
    wanted = within(20, 90, has("code", token("rare")))

    with closing(sqlite3.connect(path)) as connection:
        ways = []
        for factors in ((), search_page._NEWEST_FACTORS, (1, 3)):
            monkeypatch.setattr(search_page, "_NEWEST_FACTORS", factors)
            ways.append(pages_of(connection, wanted))

    assert ways[0] == ways[1] == ways[2]
    assert len(ways[0]) > 2 or share == 1_000


def pages_of(connection: sqlite3.Connection, wanted: SearchQuery) -> list[list[str]]:
    """Return the ids of the first pages of a search."""
    pages, query = [], wanted
    for _number in range(5):
        page = search_page.find_page(connection, LAB, query)
        pages.append([version.id for version in page.versions])
        if not page.more:
            break
        query = within(
            20,
            90,
            has("code", token("rare")),
            after=sort_key(query.order, page.versions[-1]),
        )
    return pages


async def test_a_range_of_many_is_compared_in_part(
    path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = [encode([("date", day, day + 1)]) for day in range(_DAYS)] * _PER_DAY
    await add_all(
        store, [a_version(updated=place, search=one) for place, one in enumerate(values)]
    )

    steps = []
    for factors in ((), search_page._NEWEST_FACTORS):
        monkeypatch.setattr(search_page, "_NEWEST_FACTORS", factors)
        steps.append(_steps(path, within(0, _DAYS)))

    assert steps[1] < steps[0] / 2


def _steps(path: Path, wanted: SearchQuery) -> int:
    """Return how many hundreds of steps of SQLite's machine a page takes."""
    count = 0

    def note() -> int:
        nonlocal count
        count += 1
        return 0

    with closing(sqlite3.connect(path)) as connection:
        connection.set_progress_handler(note, 100)
        assert len(search_page.find_page(connection, LAB, wanted).versions) == 20
    return count
