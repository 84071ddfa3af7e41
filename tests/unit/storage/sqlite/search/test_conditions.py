"""What criteria find among the versions of the file, where SQLite decides by their conditions."""

from __future__ import annotations

import sqlite3

import pytest

from fhirpub.storage.criteria import (
    ANYTHING,
    ID,
    IDENTIFIER,
    LAST_UPDATED,
    Condition,
    Criterion,
    Either,
    SearchValue,
    TextMatch,
    TimeMatch,
    TokenMatch,
    holds,
)
from fhirpub.storage.sqlite.database import _insert
from fhirpub.storage.sqlite.rows import Addition
from fhirpub.storage.sqlite.search.conditions import Parameters, match_condition
from fhirpub.testing.contracts.store.queries import part
from fhirpub.testing.samples import LAB, new_id
from fhirpub.testing.store_contract import found_by, has, text, token

IDS = [new_id() for _ in range(6)]
VALUES: tuple[tuple[SearchValue, ...], ...] = (
    (("code", "a", "s"), ("date", 100, 200), ("name", "ash", "family"), ("subject", "", "P")),
    (
        *(("code", "b", "s"), ("code", "c", "t"), ("date", 200, 300), ("name", "Ash", "given")),
        *(("name", "birch", "family"), ("subject", "x", "P")),
    ),
    (("code", "a", ""), ("date", 500, 1_000), ("name", "ashdown", "given"), ("subject", "", "Q")),
    (("code", None, None), ("date", None, None), ("name", None, None), ("subject", "", "P")),
    (("codes", "a", "s"), ("status", "a", "s"), ("name", 'as"h\\', "family"), ("size", 15, 16)),
    (("note", '["code","a","s"]', ""), ("note", '["name","ash', ""), ("size", -2, -1)),
)
"""The search values of the versions, whose numbers are 1 to 6."""
PLACES = (("s", "v1"), ("s", "v2"), ("t", "v1"), ("t", "w"), ("", "v1"), ("u", "\U0010ffff!"))
"""The systems and values of their identifiers."""
VERSIONS = [
    found_by(*values, id=id_, system=system, value=value, updated=1_000 + number)
    for number, (id_, values, (system, value)) in enumerate(
        zip(IDS, VALUES, PLACES, strict=True), start=1
    )
]


@pytest.fixture(scope="module")
def connection(shared: sqlite3.Connection) -> sqlite3.Connection:
    """A connection to a file with the versions."""
    for version in VERSIONS:
        _insert(shared, Addition(LAB, version, (), now=1).rows)
    return shared


def found(connection: sqlite3.Connection, *conditions: Condition) -> str:
    """Return the numbers of the versions that fulfil conditions, such as ``"13"``."""
    parameters: Parameters = {}
    all_of = [
        match_condition(condition, f"c{number}", parameters)
        for number, condition in enumerate(conditions)
    ]
    rows = connection.execute(
        f"SELECT v.rowid FROM version AS v WHERE {' AND '.join(all_of)} ORDER BY v.rowid",
        parameters,
    )
    return "".join(str(number) for (number,) in rows)


def holding(*conditions: Condition) -> str:
    """Return the same by what defines the meaning of conditions."""
    return "".join(
        str(number)
        for number, version in enumerate(VERSIONS, start=1)
        if all(holds(condition, version) for condition in conditions)
    )


CODES = tuple(token(f"c{number}") for number in range(8))
"""Eight codes that no version has."""
OWN = [TokenMatch("P", "", id_) for id_ in IDS]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        # Tokens
        (has("code", token("a")), "13"),
        (has("code", token("a", "s")), "1"),
        (has("code", token("a", "")), "3"),
        (has("code", token("A")), ""),
        (has("code", token("")), ""),
        (has("code", token("s")), ""),
        (has("code", token(None, "s")), "12"),
        (has("code", token(None, "")), "3"),
        (has("code", token(None, "a")), ""),
        (has("code", token(None, "s"), token(None, "t")), "12"),
        (has("code", token(None, "t"), token(None, "")), "23"),
        (has("code", token("a", "s"), token("c")), "12"),
        (has("code", token("a", ""), token("b", "s")), "23"),
        (has("code", token("a", "t"), token("b", "t")), ""),
        (has("code", token("a"), token(None, "t")), "123"),
        (has("code", token("b"), token("a", ""), token(None, "t")), "23"),
        (has("code", ANYTHING), "1234"),
        (has("code", ANYTHING, token("a")), "1234"),
        (has("code", ANYTHING, negated=True), "56"),
        (has("code", token("a"), negated=True), "2456"),
        (has("code", token(None, "s"), negated=True), "3456"),
        (has("code"), ""),
        (has("code", negated=True), "123456"),
        (has("cod", ANYTHING), ""),
        (has("note", token('["code","a","s"]')), "6"),
        (has("subject", token("")), "134"),
        (has("subject", token("", "P"), token("x", "Q")), "14"),
        (has("subject", token(None, "Q"), token("", "P")), "134"),
        # More of them than are compared one by one
        (has("code", *CODES, token("a")), "13"),
        (has("code", *CODES[1:], token("a")), "13"),
        (has("code", *CODES, token("a", "s")), "1"),
        (has("code", *CODES, token("s", "a")), ""),
        (has("code", *CODES[:7], token("b", "s"), token("a", "")), "23"),
        (has("code", *CODES, token("c", "t"), token(None, "")), "23"),
        (has("code", *CODES[:5], token("a"), token(None, "t")), "123"),
        (has("code", *CODES, ANYTHING), "1234"),
        (has("code", *CODES, token("a"), negated=True), "2456"),
        (has("code", *CODES, token(None, "s")), "12"),
        # Only of one resource
        (has("subject", OWN[0]), "1"),
        (has("subject", OWN[0], OWN[3]), "14"),
        (has("subject", OWN[1]), ""),
        (has("subject", OWN[2]), ""),
        (has("subject", OWN[0], TokenMatch("Q", "", IDS[2])), "13"),
        (has("subject", OWN[3], TokenMatch("Q", "", IDS[2]), token("x")), "234"),
        (has("subject", OWN[0], negated=True), "23456"),
        (has("subject", OWN[5], token("x", "Q")), ""),
        # Times
        (has("date", TimeMatch(from_=200)), "23"),
        (has("date", TimeMatch(from_=201)), "3"),
        (has("date", TimeMatch(before=200)), "1"),
        (has("date", TimeMatch(before=201)), "12"),
        (has("date", TimeMatch(after=299)), "23"),
        (has("date", TimeMatch(after=300)), "3"),
        (has("date", TimeMatch(until=300)), "12"),
        (has("date", TimeMatch(until=299)), "1"),
        (has("date", TimeMatch(from_=100, before=201, after=200, until=300)), "2"),
        (has("date", TimeMatch(from_=0, before=0)), ""),
        (has("size", TimeMatch(from_=-2, until=0)), "6"),
        (has("size", TimeMatch(after=0)), "5"),
        (has("date", TimeMatch(until=200), TimeMatch(from_=500)), "13"),
        (has("date", TimeMatch()), "123"),
        (has("date", TimeMatch(), negated=True), "456"),
        (has("date", TimeMatch(from_=500), token("x")), "3"),
        (has("date", TimeMatch(from_=500), ANYTHING), "1234"),
        (has("date", ANYTHING), "1234"),
        # Texts
        (has("name", text("ash")), "13"),
        (has("name", text("ash", "family")), "1"),
        (has("name", text("ash", "given")), "3"),
        (has("name", text("Ash", "family")), ""),
        (has("name", text("b", "given")), ""),
        (has("name", text("A"), text("b")), "2"),
        (has("name", text("A", "given"), text("as", "family")), "125"),
        (has("name", text("A", "family"), text("ashd", "given")), "3"),
        (has("name", text('as"')), "5"),
        (has("name", text('as"h\\', "family")), "5"),
        (has("name", text("sh")), ""),
        (has("name", text("ash"), negated=True), "2456"),
        (has("name", part("sh")), "123"),
        (has("name", part("sh", "given")), "23"),
        (has("name", part("irc", "given")), ""),
        (has("name", part("ash"), part('"')), "135"),
        (has("name", part("family")), ""),
        (has("name", part("ash"), token("birch")), "123"),
        (has("size", part("5")), ""),
        (has("note", text('["name"')), "6"),
        # What every version has
        (has(ID, token(IDS[1])), "2"),
        (has(ID, token(IDS[1], "")), "2"),
        (has(ID, token(IDS[1], "s")), ""),
        (has(ID, token(IDS[1]), token(IDS[4])), "25"),
        (has(ID, token(IDS[1]), token(IDS[4], "")), "25"),
        (has(ID, token(None, "")), "123456"),
        (has(ID, text(IDS[2][:30])), "3"),
        (has(ID, text(IDS[2][:30], "s")), ""),
        (has(ID, ANYTHING), "123456"),
        (has(ID, negated=True), "123456"),
        (has(IDENTIFIER), ""),
        (has(IDENTIFIER, token("v1")), "135"),
        (has(IDENTIFIER, token("v1", "s"), token("w", "s")), "1"),
        (has(IDENTIFIER, token("v1", "s"), token("w", "t")), "14"),
        (has(IDENTIFIER, token(None, "t")), "34"),
        (has(IDENTIFIER, token(None, "t"), token("v2"), token("v1", "")), "2345"),
        (has(IDENTIFIER, text("v")), "1235"),
        (has(IDENTIFIER, text("v", "s")), "12"),
        (has(IDENTIFIER, text("v2"), text("w")), "24"),
        (has(IDENTIFIER, text("w"), token("v2")), "24"),
        (has(IDENTIFIER, text("\U0010ffff")), "6"),
        (has(IDENTIFIER, part("1")), "135"),
        (has(IDENTIFIER, part("1", "t"), part("!")), "36"),
        (has(IDENTIFIER, ANYTHING, negated=True), ""),
        (has(LAST_UPDATED, TimeMatch(from_=1_002, before=1_004)), "23"),
        (has(LAST_UPDATED, TimeMatch(after=1_004)), "456"),
        (has(LAST_UPDATED, TimeMatch(until=1_004)), "123"),
        (has(LAST_UPDATED, TimeMatch(before=1_002), TimeMatch(after=1_006)), "16"),
        (has(LAST_UPDATED), ""),
        (has(LAST_UPDATED, ANYTHING), "123456"),
    ],
)
def test_a_criterion_finds_what_fulfils_it(
    connection: sqlite3.Connection, condition: Criterion, expected: str
) -> None:
    assert found(connection, condition) == expected == holding(condition)


@pytest.mark.parametrize("beside", ["a", "b"])
def test_what_has_a_nul_is_found_nowhere(connection: sqlite3.Connection, beside: str) -> None:
    cut_off = [TokenMatch("s", f"{beside}\0"), TokenMatch("s\0", beside), token(f"{beside}\0")]

    assert found(connection, has(IDENTIFIER, *cut_off, token("v1\0", "s"))) == ""
    assert found(connection, has("code", *CODES, *cut_off)) == ""
    assert found(connection, has("code", *CODES, *cut_off, token("c", "t"))) == "2"


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ((has("code", token("a")), has("date", TimeMatch(from_=500))), "3"),
        ((has("code", token("a")), has("code", token("b"))), ""),
        ((has("code", token("b")), has("code", token("c"))), "2"),
        ((has("name", text("ash")), has("name", text("ashd"))), "3"),
        ((has("code", token(None, "s")), has("code", token(None, "t"))), "2"),
        ((has("subject", OWN[0], OWN[3]), has("subject", OWN[3])), "4"),
        ((has("code", token("a"), token("b")), has("code", token("a"), negated=True)), "2"),
        ((has(IDENTIFIER, token("v1")), has(ID, token(IDS[2]))), "3"),
        ((has("date", TimeMatch(from_=200)), has("date", TimeMatch(until=300))), "2"),
        ((has("date", TimeMatch(from_=500)), has("date", TimeMatch(from_=200))), "3"),
        (
            (has(LAST_UPDATED, TimeMatch(from_=1_004)), has(LAST_UPDATED, TimeMatch(from_=1_002))),
            "456",
        ),
        ((has("code", *CODES, token("b")), has("code", *CODES, token("a"), token("b"))), "2"),
    ],
)
def test_all_criteria_must_hold(
    connection: sqlite3.Connection, conditions: tuple[Condition, ...], expected: str
) -> None:
    assert found(connection, *conditions) == expected == holding(*conditions)


A, B, C = (has("code", token(name)) for name in "abc")


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ((), ""),
        (((A,),), "13"),
        (((A,), (B,)), "123"),
        (((A, has("date", TimeMatch(until=200))), (B,)), "12"),
        (((A, B), (C,)), "2"),
        (((A, B), (A, C)), ""),
        (((has("date", TimeMatch(after=900)), A), (has("date", TimeMatch(until=200)), A)), "13"),
        (((has("name", text("b")), B), (has("name", text("ashd")), A)), "23"),
        (((has("code", token("a"), negated=True), has(ID, token(IDS[3]))), (C,)), "24"),
    ],
)
def test_of_alternatives_one_group_must_hold_with_all_of_its_criteria(
    connection: sqlite3.Connection, groups: tuple[tuple[Criterion, ...], ...], expected: str
) -> None:
    assert found(connection, Either(groups)) == expected == holding(Either(groups))


def test_alternatives_stand_beside_other_criteria(connection: sqlite3.Connection) -> None:
    one, other = Either(((A,), (B,))), Either(((has("date", TimeMatch(from_=200)),), (C,)))

    assert found(connection, one, other) == "23" == holding(one, other)
    assert found(connection, has("code", token("c")), one) == "2"


# How they are compared


@pytest.mark.parametrize(
    ("others", "is_long"), [(CODES[:7], False), (CODES, True)], ids=["eight", "nine"]
)
def test_up_to_eight_tokens_are_sought_in_the_text_of_all_values(
    others: tuple[TokenMatch, ...], *, is_long: bool
) -> None:
    condition = match_condition(has("code", *others, token("a")), "c", {})

    assert ("instr" in condition) is not is_long
    assert ("json_each(v.search)" in condition) is is_long


def test_a_single_token_is_sought_without_a_list() -> None:
    parameters: Parameters = {}

    condition = match_condition(has("code", token("a", "s")), "c", parameters)

    assert condition == "(instr(v.search, :cb) > 0)"
    assert parameters["cb"] == '["code","a","s"]'


def test_texts_may_have_any_character(connection: sqlite3.Connection) -> None:
    for beginning in ('"', '"]', "\\", "é", "\U0001f600", "'"):
        parameters: Parameters = {}
        match_condition(has("name", text(beginning)), "c", parameters)
        stored = found_by(("name", f"{beginning}x", "k")).search.decode()

        ((place,),) = connection.execute("SELECT instr(?, ?)", (stored, parameters["cx0b"]))
        assert place == 2


def test_an_anywhere_text_is_no_pattern(connection: sqlite3.Connection) -> None:
    assert found(connection, has("name", TextMatch("a%h", anywhere=True))) == ""
    assert found(connection, has("name", TextMatch("_sh", anywhere=True))) == ""
