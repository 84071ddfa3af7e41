"""The statements of a search: what a page and its total have, in which order, by which index."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest

from fhirpub.storage.contract import SearchQuery
from fhirpub.storage.criteria import (
    ID,
    IDENTIFIER,
    LAST_UPDATED,
    Order,
    SortKey,
    TimeMatch,
    TokenMatch,
    comes_after,
    sort_key,
)
from fhirpub.storage.sqlite.database import _insert
from fhirpub.storage.sqlite.rows import Addition
from fhirpub.storage.sqlite.search.sources import sources_of
from fhirpub.storage.sqlite.search.statements import SearchStatements, search_statements
from fhirpub.testing.samples import LAB, OTHER, successor
from fhirpub.testing.store_contract import found_by, has, match, query, token, wanting

IDS = [f"{number}0000000-0000-4000-8000-000000000000" for number in range(1, 8)]
FIRST = found_by(("code", "a", ""), id=IDS[4], system="s", value="v5", updated=1_005)
VERSIONS = (
    found_by(
        ("code", "a", ""), ("date", 10, 20), id=IDS[0], system="s", value="v1", updated=1_003
    ),
    found_by(
        ("code", "b", ""), ("date", 30, 40), id=IDS[1], system="t", value="v2", updated=1_001
    ),
    found_by(
        *(("code", "a", ""), ("date", 20, 30), ("date", 5, 6)),
        *(("name", "ash", "family"), ("name", "zoe", "given")),
        id=IDS[2],
        system="s",
        value="v3",
        updated=1_002,
    ),
    found_by(
        *(("code", "c", ""), ("name", "birch", "family"), ("name", "amy", "given")),
        id=IDS[3],
        system="t",
        value="v2",
        updated=1_003,
    ),
    FIRST,
    successor(FIRST, search=b'[["code","b",""]]'),
)
"""Their numbers are 1 to 6; the last two are of one report."""
NEWEST = {1: VERSIONS[0], 2: VERSIONS[1], 3: VERSIONS[2], 4: VERSIONS[3], 6: VERSIONS[5]}
"""The newest versions by their numbers."""


@pytest.fixture(scope="module")
def connection(shared: sqlite3.Connection) -> sqlite3.Connection:
    """A connection to a file with the versions, another type, and another tenant's report."""
    for tenant, version in (
        *((LAB, each) for each in VERSIONS),
        (LAB, replace(VERSIONS[0], id=IDS[5], type="Observation")),
        (OTHER, replace(VERSIONS[0], id=IDS[6])),
    ):
        _insert(shared, Addition(tenant, version, (), now=1).rows)
    return shared


def page_of(connection: sqlite3.Connection, statements: SearchStatements) -> str:
    """Return the numbers of a page, in their order, such as ``"31"``."""
    rows = connection.execute(statements.page, statements.parameters)
    return "".join(str(number) for (number,) in rows)


def total_of(connection: sqlite3.Connection, statements: SearchStatements) -> int:
    ((total,),) = connection.execute(statements.total, statements.parameters)
    return int(total)


def ask(connection: sqlite3.Connection, wanted: SearchQuery) -> tuple[str, int]:
    """Return the numbers of a page, and the total."""
    statements = search_statements(LAB, wanted)
    return page_of(connection, statements), total_of(connection, statements)


A = has("code", token("a"))


# What is found


@pytest.mark.parametrize(
    ("wanted", "page"),
    [
        (wanting(), "61432"),
        (wanting(A), "13"),
        (wanting(has("code", token("b"))), "62"),
        (wanting(A, every_version=True), "513"),
        (wanting(every_version=True), "651432"),
        (wanting(A, has("date", TimeMatch(from_=20))), "3"),
        (wanting(ids=frozenset(IDS[:2])), "12"),
        (wanting(ids=frozenset()), ""),
        (wanting(A, ids=frozenset(IDS[1:5])), "3"),
        (query(match("s")), "613"),
        (query(match("t", "v2")), "42"),
        (query(match(None, "v5")), "6"),
        (query(match("s"), match(None, "v3")), "3"),
        (query(match("s"), match("t")), ""),
        (query(match("s", "v1") + match("t"), match("s", "v3") + match("t")), "42"),
        (query(match()), "61432"),
        (SearchQuery(type="Observation"), "7"),
        (SearchQuery(type="Patient"), ""),
    ],
)
def test_a_page_has_the_newest_versions_that_fulfil_all_conditions(
    connection: sqlite3.Connection, wanted: SearchQuery, page: str
) -> None:
    assert ask(connection, wanted) == (page, len(page))


def test_another_tenant_finds_its_own_alone(connection: sqlite3.Connection) -> None:
    for wanted in (wanting(), wanting(A), query(match("s")), wanting(ids=frozenset(IDS))):
        assert page_of(connection, search_statements(OTHER, wanted)) == "8"


@pytest.mark.parametrize(("limit", "page"), [(1, "61"), (2, "614"), (0, "6"), (9, "61432")])
def test_a_page_has_one_entry_more_than_its_limit(
    connection: sqlite3.Connection, limit: int, page: str
) -> None:
    assert ask(connection, wanting(limit=limit)) == (page, 5)


@pytest.mark.parametrize(("most", "total"), [(None, 5), (0, 1), (3, 4), (4, 5), (5, 5), (9, 5)])
def test_a_total_is_counted_to_one_beyond_its_limit(
    connection: sqlite3.Connection, most: int | None, total: int
) -> None:
    assert ask(connection, wanting(count_up_to=most))[1] == total


def test_a_total_is_that_of_all_pages(connection: sqlite3.Connection) -> None:
    assert ask(connection, wanting(after=(1_003, IDS[3]))) == ("32", 5)


# A total by the first versions


@pytest.mark.parametrize(
    ("wanted", "has_reuse", "by_first"),
    [
        (wanting(), False, True),
        (query(match("s")), False, True),
        (wanting(), True, False),
        (wanting(A), False, False),
        (wanting(every_version=True), False, False),
    ],
)
def test_first_versions_are_counted_where_each_match_has_exactly_one(
    wanted: SearchQuery, *, has_reuse: bool, by_first: bool
) -> None:
    statements = search_statements(LAB, wanted, has_reuse=has_reuse)

    assert ("v.version = 1" in statements.total) is by_first
    assert "v.version = 1" not in statements.page


def test_where_some_were_registered_again_the_newest_are_counted(
    connection: sqlite3.Connection,
) -> None:
    statements = search_statements(LAB, wanting(), has_reuse=True)

    assert total_of(connection, statements) == 5


# By which index


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (wanting(), "version_by_time"),
        (wanting(A), "version_by_time"),
        (wanting(ids=frozenset({IDS[0]})), "version_key"),
        (query(match("s", "v"), ids=[IDS[0]]), "version_key"),
        (query(match("s", "v")), "version_by_value"),
        (query(match(None, "v")), "version_by_value"),
        (query(match("s")), "version_by_system"),
        (query(match("s"), match(None, "v")), "version_by_value"),
        (query(match(None, "v"), match("s")), "version_by_value"),
        (query(match("s"), match()), "version_by_system"),
        (query(match("s") + match("s", "v")), "version_by_system"),
        (query(match("s") + match(None, "v")), "version_by_time"),
        (query(match() + match("s", "v")), "version_by_time"),
    ],
)
def test_candidates_are_found_by_the_index_with_the_fewest(
    wanted: SearchQuery, index: str
) -> None:
    statements = search_statements(LAB, wanted)

    assert f"FROM version AS v INDEXED BY {index} WHERE" in statements.page
    assert f"FROM version AS v INDEXED BY {index} WHERE" in statements.total


@pytest.mark.parametrize(
    ("any_of", "page"),
    [
        (match("s") + match(None, "v2"), "61432"),
        (match("s", "v1") + match(None, "v2"), "142"),
        (match("s", "v2") + match("t", "v1"), ""),
        (match("t", "v2") + match("s", "v2"), "42"),
        (match("t") + match("s", "v3"), "432"),
        (match("x") + match(None, "v3") + match("s", "v5"), "63"),
        (match() + match("x"), "61432"),
    ],
)
def test_one_of_several_identifiers_is_enough(
    connection: sqlite3.Connection, any_of: tuple[TokenMatch, ...], page: str
) -> None:
    assert ask(connection, query(any_of)) == (page, len(page))


# Through a source


@pytest.mark.parametrize(
    ("wanted", "page"),
    [
        (wanting(A), "13"),
        (wanting(has("code", token("b"))), "62"),
        (wanting(has("code", token("a"), token("c"))), "143"),
        (wanting(has("date", TimeMatch(after=10))), "132"),
        (wanting(A, every_version=True), "513"),
        (wanting(A, order=(Order(LAST_UPDATED),)), "31"),
        (wanting(A, after=(1_003, IDS[0])), "3"),
        (wanting(A, has("date", TimeMatch(from_=20))), "3"),
    ],
)
def test_a_source_of_candidates_changes_nothing(
    connection: sqlite3.Connection, wanted: SearchQuery, page: str
) -> None:
    total = 2 if wanted.after else len(page)
    for source in (*sources_of(LAB, wanted), None):
        statements = search_statements(LAB, wanted, source)

        assert (page_of(connection, statements), total_of(connection, statements)) == (page, total)


def test_the_candidates_of_one_value_come_in_the_order_of_their_index() -> None:
    (source,) = sources_of(LAB, wanting(A))

    statements = search_statements(LAB, wanting(A), source)

    assert "FROM search_value AS s CROSS JOIN version AS v NOT INDEXED WHERE" in statements.page
    assert "ORDER BY s.updated DESC, v.id LIMIT 21" in statements.page


def test_other_candidates_are_looked_up_by_their_numbers() -> None:
    wanted = wanting(has("date", TimeMatch(after=10)))
    (source,) = sources_of(LAB, wanted)

    statements = search_statements(LAB, wanted, source)

    assert f"v.rowid IN ({source.numbers})" in statements.page
    assert "FROM version AS v NOT INDEXED WHERE" in statements.page
    assert "ORDER BY v.updated DESC, v.id LIMIT 21" in statements.page


# Their order

UPDATED, CODE, DATE = Order(LAST_UPDATED), Order("code"), Order("date")


@pytest.mark.parametrize(
    ("order", "page"),
    [
        ((UPDATED,), "23146"),
        ((replace(UPDATED, descending=True),), "61432"),
        ((DATE,), "31246"),
        ((replace(DATE, descending=True),), "23146"),
        ((CODE,), "13264"),
        ((CODE, UPDATED), "31264"),
        ((replace(CODE, descending=True), DATE), "42631"),
        ((Order("name"),), "43126"),
        ((Order("name", descending=True),), "34126"),
        ((Order("name", kind="family"),), "34126"),
        ((Order("name", kind="given"),), "43126"),
        ((Order("name", descending=True, kind="family"), UPDATED), "43216"),
        ((Order("name", kind="none"), Order(ID, descending=True)), "64321"),
        ((Order(ID),), "12346"),
        ((Order(IDENTIFIER, descending=True),), "63241"),
        ((Order(IDENTIFIER), Order(ID, descending=True)), "14236"),
        ((), "12346"),
    ],
)
def test_versions_come_in_the_order_that_is_asked_for(
    connection: sqlite3.Connection, order: tuple[Order, ...], page: str
) -> None:
    assert ask(connection, wanting(order=order))[0] == page


@pytest.mark.parametrize(
    "order",
    [
        (UPDATED,),
        (replace(UPDATED, descending=True),),
        (DATE,),
        (replace(DATE, descending=True),),
        (CODE, UPDATED),
        (replace(CODE, descending=True), replace(UPDATED, descending=True)),
        (DATE, Order("name", kind="family")),
        (Order("name", descending=True, kind="given"), replace(CODE, descending=True)),
        (Order("name", kind="none"), Order(ID, descending=True)),
        (Order(IDENTIFIER, descending=True), Order(ID, descending=True)),
        (),
    ],
)
def test_behind_each_place_of_an_order_comes_what_stands_there(
    connection: sqlite3.Connection, order: tuple[Order, ...]
) -> None:
    places: dict[int, SortKey] = {number: sort_key(order, it) for number, it in NEWEST.items()}
    everything = ask(connection, wanting(order=order))[0]

    for number, place in places.items():
        behind = [each for each in places if comes_after(places[each], place, order)]
        page = ask(connection, wanting(order=order, after=place))[0]

        assert sorted(page) == sorted(map(str, behind))
        assert page == everything[everything.index(str(number)) + 1 :]


def test_what_is_always_there_is_not_sorted_for_what_is_missing() -> None:
    wanted = wanting(order=(UPDATED, DATE, Order(ID, descending=True)))

    page = search_statements(LAB, wanted).page

    assert page.count("NULLS LAST") == 1
    assert page.endswith(" NULLS LAST, v.id DESC, v.id LIMIT 21")
