"""Which source a search of the file goes through, and how many entries its pages have."""

from __future__ import annotations

import sqlite3
from dataclasses import astuple

import pytest

from fhirpub.storage.contract import MAX_PAGE_BYTES, Page, SearchQuery
from fhirpub.storage.criteria import Condition, Order, TimeMatch
from fhirpub.storage.sqlite.database import _insert
from fhirpub.storage.sqlite.rows import Addition, Row
from fhirpub.storage.sqlite.search import pages
from fhirpub.storage.sqlite.search.pages import best_source, find_page, page_rows
from fhirpub.storage.sqlite.tables.erasure import PUT_ERASURE
from fhirpub.testing.contracts.erasure.content import an_erasure
from fhirpub.testing.samples import LAB, OTHER, new_id
from fhirpub.testing.store_contract import a_version, found_by, has, token, wanting

A, B, C = (has("code", token(name)) for name in "abc")
HOW_MANY = {"a": 9, "b": 5, "c": 3}


@pytest.fixture(scope="module")
def connection(shared: sqlite3.Connection) -> sqlite3.Connection:
    """A connection to a file with nine reports that have a value, five another, three a third."""
    for number in range(9):
        codes = [name for name, count in HOW_MANY.items() if number < count]
        version = found_by(
            *(("code", name, "") for name in codes),
            ("date", number, number + 1),
            updated=1_000 + number,
        )
        _insert(shared, Addition(LAB, version, (), now=1).rows)
    return shared


@pytest.fixture(autouse=True)
def small_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few are many, as thousands are otherwise."""
    monkeypatch.setattr(pages, "COUNTS", (2, 4, 8))
    monkeypatch.setattr(pages, "FIRST_COUNT", 2)
    monkeypatch.setattr(pages, "_NEWEST_FACTORS", (1, 2))


def best_of(connection: sqlite3.Connection, *criteria: Condition) -> tuple[object, int]:
    """Return the value that the best source is about, and the number of its candidates."""
    source, candidates = best_source(connection, LAB, wanting(*criteria))
    assert source is not None
    return source.parameters["sought"], candidates


def updated_of(page: Page) -> list[int]:
    return [version.updated - 1_000 for version in page.versions]


# The best source


def test_a_search_without_criteria_has_no_source(connection: sqlite3.Connection) -> None:
    assert best_source(connection, LAB, wanting()) == (None, 0)


@pytest.mark.parametrize("order", [1, -1])
def test_the_source_with_the_fewest_is_found_behind_the_first_limit(
    connection: sqlite3.Connection, order: int
) -> None:
    assert best_of(connection, *(A, B, C)[::order]) == ("c", 3)
    assert best_of(connection, *(A, B)[::order]) == ("b", 5)


def test_no_more_is_counted_than_needed(connection: sqlite3.Connection) -> None:
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    try:
        best_of(connection, A, C)
    finally:
        connection.set_trace_callback(None)

    assert [statement[-3:] for statement in statements] == [" 2)", " 2)", " 4)", " 4)"]


def test_the_only_source_is_counted_up_to_the_first_limit(connection: sqlite3.Connection) -> None:
    assert best_of(connection, A) == ("a", 2)
    assert best_of(connection, has("code", token("x"))) == ("x", 0)


def test_of_sources_beyond_all_limits_the_first_is_taken(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "COUNTS", (1, 2, 3))

    assert best_of(connection, B, A) == ("b", 3)
    assert best_of(connection, A, B) == ("a", 3)


def test_a_tenant_without_versions_has_no_candidates(connection: sqlite3.Connection) -> None:
    found = best_source(connection, OTHER, wanting(A, B))

    assert found[1] == 0
    assert find_page(connection, OTHER, wanting(A, B)) == Page((), 0, more=False)


# Pages

WITHIN = has("date", TimeMatch(after=0, until=9))
SINCE = has("date", TimeMatch(after=0))


@pytest.mark.parametrize("limit", [1, 3, 8, 9, 10])
@pytest.mark.parametrize("criteria", [(), (A,), (WITHIN,), (SINCE,), (A, WITHIN), (SINCE, A)])
@pytest.mark.parametrize("oldest_first", [False, True])
def test_a_page_has_as_many_as_are_asked_for_and_knows_of_more(
    connection: sqlite3.Connection,
    criteria: tuple[Condition, ...],
    limit: int,
    *,
    oldest_first: bool,
) -> None:
    order = {"order": (Order("_lastUpdated"),)} if oldest_first else {}

    page = find_page(connection, LAB, wanting(*criteria, limit=limit, **order))

    expected = [*range(9)] if oldest_first else [*range(8, -1, -1)]
    assert updated_of(page) == expected[:limit]
    assert page.total == 9
    assert page.more is (limit < 9)


@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("criteria", [(C,), (C, WITHIN), (WITHIN, C), (SINCE, C)])
def test_what_few_have_is_found_wherever_it_is(
    connection: sqlite3.Connection, criteria: tuple[Condition, ...], limit: int
) -> None:
    page = find_page(connection, LAB, wanting(*criteria, limit=limit))

    assert updated_of(page) == [2, 1, 0][:limit]
    assert (page.total, page.more) == (3, limit < 3)


@pytest.mark.parametrize("criterion", [A, WITHIN, SINCE])
def test_a_page_goes_on_behind_the_last_entry(
    connection: sqlite3.Connection, criterion: Condition
) -> None:
    first = find_page(connection, LAB, wanting(criterion, limit=4))
    last = first.versions[-1]

    page = find_page(connection, LAB, wanting(criterion, limit=4, after=(last.updated, last.id)))

    assert updated_of(page) == [4, 3, 2, 1]
    assert (page.total, page.more) == (9, True)


def test_a_page_of_a_range_looks_at_the_newest_candidates_alone(
    connection: sqlite3.Connection,
) -> None:
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    try:
        find_page(connection, LAB, wanting(WITHIN, limit=3, count_up_to=0))
    finally:
        connection.set_trace_callback(None)

    (page,) = [statement for statement in statements if "LIMIT 4" in statement]
    assert "s.updated >= 1004" in page  # the place of the fifth


def test_a_following_page_of_a_range_looks_at_the_newest_candidates_behind_its_place(
    connection: sqlite3.Connection,
) -> None:
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    try:
        find_page(connection, LAB, wanting(WITHIN, limit=2, after=(1_006, "z"), count_up_to=0))
    finally:
        connection.set_trace_callback(None)

    (page,) = [statement for statement in statements if "LIMIT 3" in statement]
    assert "s.updated <= 1006" in page
    assert "s.updated >= 1003" in page


def test_a_page_of_a_range_in_another_order_goes_through_all_of_the_range(
    connection: sqlite3.Connection,
) -> None:
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    try:
        find_page(connection, LAB, wanting(WITHIN, order=(Order("_lastUpdated"),), count_up_to=0))
    finally:
        connection.set_trace_callback(None)

    (page,) = [statement for statement in statements if "ORDER BY v.updated" in statement]
    assert "v.rowid IN (SELECT s.number FROM search_value" in page


def test_a_page_and_its_total_go_through_the_best_source(connection: sqlite3.Connection) -> None:
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    try:
        find_page(connection, LAB, wanting(A, C, limit=3))
    finally:
        connection.set_trace_callback(None)

    through = [each for each in statements if "FROM search_value AS s CROSS JOIN" in each]
    assert len(through) == 2
    assert all("s.value = 'c'" in each for each in through)


@pytest.mark.parametrize(("limit", "expected"), [(1, [8]), (2, [8, 3]), (3, [8, 3, 2])])
def test_more_follows_though_the_newest_candidates_fill_the_page(
    connection: sqlite3.Connection, limit: int, expected: list[int]
) -> None:
    some = has("_lastUpdated", TimeMatch(from_=1_008), TimeMatch(from_=1_002, before=1_004))

    page = find_page(connection, LAB, wanting(WITHIN, some, limit=limit))

    assert updated_of(page) == expected
    assert (page.total, page.more) == (3, limit < 3)


def test_what_was_registered_again_is_in_the_total(connection: sqlite3.Connection) -> None:
    tenant, version = new_id(), a_version(version=3)
    _insert(connection, Addition(tenant, version, (), now=1).rows)
    _insert(connection, Addition(tenant, a_version(), (), now=1).rows)
    order = an_erasure(tenant=tenant, id=version.id, allows_reuse=True)
    connection.execute(PUT_ERASURE, astuple(order))

    page = find_page(connection, tenant, wanting())

    assert (len(page.versions), page.total) == (2, 2)


@pytest.mark.parametrize(
    ("most", "total"), [(None, 9), (0, None), (8, None), (9, 9), (10, 9), (1, None)]
)
def test_a_total_is_counted_as_far_as_asked(
    connection: sqlite3.Connection, most: int | None, total: int | None
) -> None:
    page = find_page(connection, LAB, wanting(A, limit=1, count_up_to=most))

    assert page.total == total


@pytest.mark.parametrize("criteria", [(), (A,), (WITHIN,)])
def test_the_total_alone_comes_without_entries(
    connection: sqlite3.Connection, criteria: tuple[Condition, ...]
) -> None:
    found = find_page(connection, LAB, SearchQuery(type="DiagnosticReport", criteria=criteria))

    page = find_page(connection, LAB, wanting(*criteria, limit=0))

    assert page == Page((), found.total, more=False)


# Their size


def a_row(size: int) -> Row:
    """Return the row of a version with so many bytes."""
    version = a_version(body=b"x" * (size - len(b"[]")))
    return Addition(LAB, version, (), now=1).rows[-1]


def test_a_page_ends_with_the_version_that_fills_it() -> None:
    half = a_row(MAX_PAGE_BYTES // 2)

    assert len(page_rows([half] * 5)) == 2
    assert len(page_rows([a_row(MAX_PAGE_BYTES // 2 - 1)] * 5)) == 3
    assert page_rows([]) == []


@pytest.mark.parametrize(("room", "more"), [(2, True), (8, True), (9, False)])
def test_a_page_without_room_for_all_that_was_found_says_that_there_is_more(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, room: int, *, more: bool
) -> None:
    monkeypatch.setattr(pages, "page_rows", lambda rows: [*rows][:room])

    page = find_page(connection, LAB, wanting(A, limit=9))

    assert (len(page.versions), page.more) == (room, more)
