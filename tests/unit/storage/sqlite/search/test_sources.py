"""Where the candidates of a search are: which criteria offer a source, and what is in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fhirpub.storage.contract import SearchQuery
from fhirpub.storage.criteria import (
    ANYTHING,
    ID,
    IDENTIFIER,
    LAST_UPDATED,
    Condition,
    Either,
    TextMatch,
    TimeMatch,
    TokenMatch,
    field_number,
)
from fhirpub.storage.sqlite.database import _insert
from fhirpub.storage.sqlite.rows import Addition
from fhirpub.storage.sqlite.search.sources import Source, sources_of
from fhirpub.testing.samples import LAB, OTHER, REPORT, a_version, new_id, new_member_id
from fhirpub.testing.store_contract import found_by, has, match, query, text, token, wanting

MEMBER = new_member_id()
VERSIONS = (
    found_by(("code", "a", "s"), ("date", 10, 20), ("name", "ash", "family"), updated=1_001),
    found_by(("code", "a", ""), ("date", 20, 30), ("name", "birch", "given"), updated=1_002),
    found_by(("code", "b", "s"), ("date", 30, 40), ("name", "Ash", "given"), updated=1_003),
    found_by(("code", "c", "s"), ("status", "final", ""), updated=1_004),
)
"""Their numbers are 1 to 4; that of the panel is 5, that of its member 6."""
PANEL = a_version(type="Panel", members=(a_version(id=MEMBER, type="Observation"),), updated=1_005)
ALONE = a_version(id=new_member_id(), type="Observation")


@pytest.fixture(scope="module")
def connection(shared: sqlite3.Connection) -> sqlite3.Connection:
    """A connection to a file with the versions."""
    for tenant, version in (
        *((LAB, each) for each in (*VERSIONS, PANEL, ALONE)),
        (OTHER, replace(VERSIONS[0], id=new_id())),
    ):
        _insert(shared, Addition(tenant, version, (), now=1).rows)
    return shared


def the_source(*criteria: Condition, **changes: object) -> Source:
    (source,) = sources_of(LAB, wanting(*criteria, **changes))
    return source


def numbers_of(connection: sqlite3.Connection, source: Source) -> list[int]:
    """Return the numbers of the candidates, in ascending order."""
    return sorted(number for (number,) in connection.execute(source.numbers, source.parameters))


# Which criteria offer one


@pytest.mark.parametrize(
    "wanted",
    [
        wanting(),
        wanting(has("code", token("a")), ids=frozenset({new_id()})),
        wanting(has("code", token("a")), ids=frozenset()),
        wanting(has("code", token("a"), negated=True)),
        wanting(has("code", token(None, "s"))),
        wanting(has("code", token(""))),
        wanting(has("code", token("a"), token(None, "s"))),
        wanting(has("code", ANYTHING)),
        wanting(has("code")),
        wanting(has("date", TimeMatch(before=9))),
        wanting(has("date", TimeMatch(until=9))),
        wanting(has("date", TimeMatch(from_=1), TimeMatch(before=9))),
        wanting(has("date", TimeMatch(from_=1), token("a"))),
        wanting(has("name", text("a"), token("b"))),
        wanting(has("name", text("a"), negated=True)),
        wanting(has(ID, token("a"))),
        wanting(has(ID, text("a"))),
        wanting(has(IDENTIFIER, token("a"))),
        wanting(has(LAST_UPDATED, TimeMatch(from_=1))),
        wanting(Either(())),
        wanting(Either(((has("code", token("a")),), (has("code", token("b"), negated=True),)))),
        wanting(Either(((has("code", token("a")),), ()))),
    ],
)
def test_what_values_cannot_find_offers_no_source(wanted: SearchQuery) -> None:
    assert sources_of(LAB, wanted) == []


@pytest.mark.parametrize(
    ("group", "offered"),
    [
        (match("s", "v"), 0),
        (match(None, "v"), 0),
        (match("s"), 1),
        (match("s") + match("s", "v"), 1),
        (match(), 1),
    ],
)
def test_identifiers_by_value_are_better_than_any_source(
    group: tuple[TokenMatch, ...], offered: int
) -> None:
    wanted = replace(query(group), criteria=(has("code", token("a")),))

    assert len(sources_of(LAB, wanted)) == offered


def test_of_several_identifiers_one_by_value_is_enough() -> None:
    wanted = replace(query(match("s"), match(None, "v")), criteria=(has("code", token("a")),))

    assert sources_of(LAB, wanted) == []


def test_each_criterion_offers_a_source_in_their_order() -> None:
    wanted = wanting(
        has("code", token("a")), has("status", ANYTHING), has("date", TimeMatch(after=5))
    )

    sources = sources_of(LAB, wanted)

    assert [source.parameters["field"] for source in sources] == [
        field_number(LAB, REPORT, name) for name in ("code", "date")
    ]


# What is in one


@pytest.mark.parametrize(
    ("criterion", "expected"),
    [
        (has("code", token("a")), [1, 2]),
        (has("code", token("a", "s")), [1, 2]),
        (has("code", token("a"), token("c")), [1, 2, 4]),
        (has("code", token("x")), []),
        (has("code", token("final")), []),
        (has("date", TimeMatch(after=20)), [2, 3]),
        (has("date", TimeMatch(from_=20)), [2, 3]),
        (has("date", TimeMatch(from_=19)), [1, 2, 3]),
        (has("date", TimeMatch(after=20, until=30)), [2]),
        (has("date", TimeMatch(after=20, until=29)), []),
        (has("date", TimeMatch(from_=25, after=1)), [2, 3]),
        (has("date", TimeMatch(after=30), TimeMatch(after=10, until=20)), [1, 2, 3]),
        (has("date", TimeMatch(after=10, until=20), TimeMatch(after=20, until=30)), [1, 2]),
        (has("date", TimeMatch(after=29, until=30), TimeMatch(after=30, until=40)), [2, 3]),
        (has("name", text("ash")), [1]),
        (has("name", text("a")), [1]),
        (has("name", text("ashdown")), []),
        (has("name", text("b"), text("A", "x")), [2, 3]),
        (has("name", TextMatch("\U0010ffff")), []),
        (has("name", TextMatch("sh", anywhere=True)), [1, 3]),
        (has("name", TextMatch("sh", anywhere=True), text("b")), [1, 2, 3]),
    ],
)
def test_the_candidates_of_a_criterion(
    connection: sqlite3.Connection, criterion: Condition, expected: list[int]
) -> None:
    assert numbers_of(connection, the_source(criterion)) == expected


def test_an_owner_is_a_candidate_beside_those_with_a_value(connection: sqlite3.Connection) -> None:
    owned = [TokenMatch("P", "", VERSIONS[number].id) for number in (2, 3)]

    for values, expected in (((), [3, 4]), ((token("a"),), [1, 2, 3, 4])):
        source = the_source(has("code", *values, *owned))

        assert numbers_of(connection, source) == expected
    assert numbers_of(connection, the_source(has("code", owned[0]))) == [3]


def test_owners_beside_what_no_value_finds_offer_no_source() -> None:
    owned = TokenMatch("P", "", VERSIONS[0].id)

    assert sources_of(LAB, wanting(has("code", token(None, "s"), owned))) == []


def test_the_version_that_brought_a_member_is_a_candidate(connection: sqlite3.Connection) -> None:
    source = the_source(has("result", TokenMatch("Observation", MEMBER)), type="Panel")

    assert numbers_of(connection, source) == [5]


def test_a_version_that_was_added_alone_leads_to_no_other(connection: sqlite3.Connection) -> None:
    source = the_source(has("result", TokenMatch("Observation", ALONE.id)), type="Panel")
    rows = connection.execute(source.numbers, source.parameters).fetchall()

    assert rows == [(None,)]


def test_members_are_candidates_beside_those_with_a_value(connection: sqlite3.Connection) -> None:
    source = the_source(has("code", token(MEMBER), token("a")))

    assert numbers_of(connection, source) == [1, 2, 5]


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_the_candidates_of_alternatives_are_those_of_each_first_criterion(
    connection: sqlite3.Connection, groups: int
) -> None:
    alternatives = (
        (has("code", token("c")), has("code", token("a"))),
        (has("date", TimeMatch(after=30)),),
        (has("name", text("b")),),
    )

    source = the_source(Either(alternatives[:groups]))

    assert numbers_of(connection, source) == {1: [4], 2: [3, 4], 3: [2, 3, 4]}[groups]


def test_members_are_candidates_of_one_of_the_alternatives(connection: sqlite3.Connection) -> None:
    member = has("result", TokenMatch("Observation", MEMBER))
    source = the_source(Either(((has("code", token("c")),), (member,))), type="Panel")

    assert numbers_of(connection, source) == [5]


# What is known of one


def kinds_of(source: Source) -> tuple[bool, bool, bool]:
    return bool(source.condition), bool(source.range), source.newest


@pytest.mark.parametrize(
    ("any_of", "kinds"),
    [
        ((token("a"),), (True, False, False)),
        ((token("a", "s"),), (True, False, False)),
        ((token("a"), token("b")), (False, True, False)),
        ((TimeMatch(after=1, until=9),), (False, True, False)),
        ((TimeMatch(after=1),), (False, True, True)),
        ((TimeMatch(after=1), TimeMatch(after=2, until=9)), (False, True, True)),
        ((text("a"),), (False, False, False)),
        ((TextMatch("a", anywhere=True),), (False, False, False)),
        ((TokenMatch("P", "", new_id()),), (False, False, False)),
        ((token("a"), TokenMatch("P", "", new_id())), (False, False, False)),
        ((token(MEMBER),), (False, False, False)),
        ((token("a"), token(MEMBER)), (False, False, False)),
    ],
)
def test_one_value_many_values_and_the_newest_are_told_apart(
    any_of: Sequence[TokenMatch], kinds: tuple[bool, bool, bool]
) -> None:
    assert kinds_of(the_source(has("code", *any_of))) == kinds


@pytest.mark.parametrize(
    ("second", "newest"), [(TimeMatch(after=1), True), (TimeMatch(after=1, until=9), False)]
)
def test_alternatives_are_the_newest_if_one_of_them_is(second: TimeMatch, *, newest: bool) -> None:
    source = the_source(Either(((has("code", token("a")),), (has("date", second),))))

    assert kinds_of(source) == (False, False, newest)


def test_a_single_alternative_is_as_its_criterion() -> None:
    criterion = has("code", token("a"))

    assert the_source(Either(((criterion,),))) == the_source(criterion)


@pytest.mark.parametrize(("most", "counted"), [(1, 1), (2, 2), (3, 3), (4, 3)])
def test_candidates_are_counted_up_to_a_limit(
    connection: sqlite3.Connection, most: int, counted: int
) -> None:
    source = the_source(has("code", token("a"), token("b")))

    ((found,),) = connection.execute(source.count(most), source.parameters)

    assert found == counted


def test_the_time_of_a_candidate_is_found_from_the_newest_on(
    connection: sqlite3.Connection,
) -> None:
    source = the_source(has("date", TimeMatch(after=0, until=99)))

    times = [
        connection.execute(source.time_of(place), source.parameters).fetchall()
        for place in range(4)
    ]

    assert times == [[(1_003,)], [(1_002,)], [(1_001,)], []]


@pytest.mark.parametrize(("since", "expected"), [(1_001, [1, 2, 3]), (1_002, [2, 3]), (1_004, [])])
def test_candidates_since_a_time_include_those_of_it(
    connection: sqlite3.Connection, since: int, expected: list[int]
) -> None:
    source = the_source(has("date", TimeMatch(after=0, until=99)))

    assert numbers_of(connection, source.since(since)) == expected


@pytest.mark.parametrize(("until", "expected"), [(1_003, [1, 2, 3]), (1_002, [1, 2]), (1_000, [])])
def test_candidates_until_a_time_include_those_of_it(
    connection: sqlite3.Connection, until: int, expected: list[int]
) -> None:
    source = the_source(has("date", TimeMatch(after=0, until=99))).until(until)

    assert numbers_of(connection, source) == expected
    times = connection.execute(source.time_of(0), source.parameters).fetchall()
    assert times == [(1_000 + each,) for each in expected[-1:]]


def test_times_narrow_a_source_from_both_sides(connection: sqlite3.Connection) -> None:
    source = the_source(has("date", TimeMatch(after=0, until=99)))

    assert numbers_of(connection, source.until(1_002).since(1_002)) == [2]
    assert numbers_of(connection, source) == [1, 2, 3]
