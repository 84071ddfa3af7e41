"""What a version is found by, which criteria it fulfils, and where it stands in an order."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.storage.criteria import (
    ANYTHING,
    EARLIEST,
    ID,
    IDENTIFIER,
    LAST_UPDATED,
    LATEST,
    NEWEST_FIRST,
    Criterion,
    Either,
    Match,
    Order,
    SearchValue,
    TextMatch,
    TimeMatch,
    TokenMatch,
    comes_after,
    decode,
    encode,
    field_number,
    holds,
    sort_key,
    values_under,
)
from fhirpub.testing.samples import a_version
from fhirpub.testing.store_contract import found_by

VALUES: list[SearchValue] = [("code", "1", "s"), ("date", 5, 6), ("code", "2", "")]
CODED = found_by(*VALUES, id="r1", system="urn:s", value="v1", updated=70)


def having(name: str, *any_of: Match, negated: bool = False) -> bool:
    return holds(Criterion(name, any_of, negated), CODED)


# Values


def test_each_value_is_stored_once_where_it_came_first() -> None:
    assert decode(encode([*VALUES, *VALUES])) == VALUES
    assert encode(iter([("a", None, None), ("b", "é", "")])) == (
        '[["a",null,null],["b","é",""]]'.encode()
    )


def test_values_of_one_name_come_in_the_order_in_which_they_are_stored() -> None:
    assert values_under("code", CODED) == [("code", "1", "s"), ("code", "2", "")]
    assert values_under("date", CODED) == [("date", 5, 6)]
    assert values_under("cod", CODED) == []


def test_every_version_has_an_id_an_identifier_and_a_time() -> None:
    assert values_under(ID, CODED) == [("_id", "r1", "")]
    assert values_under(IDENTIFIER, CODED) == [("identifier", "v1", "urn:s")]
    assert values_under(LAST_UPDATED, CODED) == [("_lastUpdated", 70, 71)]


def test_nothing_is_stored_under_the_names_that_every_version_has() -> None:
    odd = found_by(("_id", "x", ""), ("identifier", "x", ""), ("_lastUpdated", 1, 2), id="r1")

    assert values_under(ID, odd) == [("_id", "r1", "")]
    assert len(values_under(IDENTIFIER, odd)) == len(values_under(LAST_UPDATED, odd)) == 1


def test_the_number_of_a_field_is_the_same_in_every_process() -> None:
    assert field_number("t1", "Observation", "code") == 11_949_408_330_925
    assert 0 <= field_number("t1", "Observation", "code") < 2**48


def test_the_number_of_a_field_is_of_its_tenant_its_type_and_its_name() -> None:
    numbers = {
        field_number(*field)
        for field in (
            *(("t1", "Observation", "code"), ("t2", "Observation", "code")),
            *(("t1", "Condition", "code"), ("t1", "Observation", "date")),
            *(("t1O", "bservation", "code"), ("t1", "code", "Observation")),
        )
    }

    assert len(numbers) == 6


# Tokens


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        (TokenMatch("s", "1"), True),
        (TokenMatch(None, "1"), True),
        (TokenMatch("s", None), True),
        (TokenMatch("", "2"), True),
        (TokenMatch("", None), True),
        (ANYTHING, True),
        (TokenMatch("s", "2"), False),
        (TokenMatch("", "1"), False),
        (TokenMatch("t", None), False),
        (TokenMatch(None, "3"), False),
        (TokenMatch("s", "1", of="r1"), True),
        (TokenMatch("s", "1", of="r2"), False),
        (TokenMatch(None, None, of="r2"), False),
    ],
)
def test_a_token_matches_a_code_with_its_system(match: TokenMatch, *, expected: bool) -> None:
    assert having("code", match) is expected


def test_an_element_with_nothing_to_search_by_matches_anything_alone() -> None:
    bare = found_by(("code", None, None))

    assert holds(Criterion("code", (ANYTHING,)), bare)
    for match in (TokenMatch("", None), TokenMatch(None, ""), TimeMatch(), TextMatch("a")):
        assert not holds(Criterion("code", (match,)), bare)


def test_an_identifier_an_id_and_a_time_are_matched_like_values() -> None:
    assert having(IDENTIFIER, TokenMatch("urn:s", "v1"))
    assert not having(IDENTIFIER, TokenMatch("v1", "urn:s"))
    assert having(ID, TokenMatch(None, "r1"))
    assert having(LAST_UPDATED, TimeMatch(from_=70, until=71))
    assert not having(LAST_UPDATED, TimeMatch(from_=71))


# Alternatives and what is negated


def test_one_alternative_that_matches_one_value_is_enough() -> None:
    assert having("code", TokenMatch(None, "9"), TokenMatch(None, "2"))
    assert not having("code", TokenMatch(None, "9"), TokenMatch(None, "8"))
    assert not having("code")


def test_none_of_the_alternatives_may_match_what_is_negated() -> None:
    assert not having("code", TokenMatch(None, "9"), TokenMatch(None, "2"), negated=True)
    assert having("code", TokenMatch(None, "9"), negated=True)
    assert having("code", negated=True)


def test_without_a_value_only_what_is_negated_holds() -> None:
    assert not having("status", ANYTHING)
    assert having("status", ANYTHING, negated=True)


CODE_1 = Criterion("code", (TokenMatch(None, "1"),))
CODE_9 = Criterion("code", (TokenMatch(None, "9"),))


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ((), False),
        (((),), True),
        (((CODE_1,),), True),
        (((CODE_9,),), False),
        (((CODE_9,), (CODE_1,)), True),
        (((CODE_1, CODE_9),), False),
        (((CODE_1, CODE_9), (CODE_9, CODE_1)), False),
    ],
)
def test_all_criteria_of_one_group_must_hold(
    groups: tuple[tuple[Criterion, ...], ...], *, expected: bool
) -> None:
    assert holds(Either(groups), CODED) is expected


# Times and texts


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        (TimeMatch(), True),
        (TimeMatch(from_=5, before=6, after=5, until=6), True),
        (TimeMatch(from_=6, before=9, after=0, until=9), False),
        (TimeMatch(from_=0, before=5, after=0, until=9), False),
        (TimeMatch(from_=0, before=9, after=6, until=9), False),
        (TimeMatch(from_=0, before=9, after=0, until=5), False),
    ],
)
def test_all_bounds_of_a_time_must_hold(match: TimeMatch, *, expected: bool) -> None:
    assert having("date", match) is expected


@pytest.mark.parametrize("value", [("date", "5", "6"), ("date", 5, "6"), ("date", "5", 6)])
def test_what_is_no_time_is_within_no_bounds(value: SearchValue) -> None:
    assert not holds(Criterion("date", (TimeMatch(),)), found_by(value))


def test_a_bound_at_zero_is_a_bound() -> None:
    before, after = found_by(("date", -5, -4)), found_by(("date", 0, 1))

    for match in (TimeMatch(from_=0), TimeMatch(after=0)):
        assert not holds(Criterion("date", (match,)), before)
        assert holds(Criterion("date", (match,)), after)
    for match in (TimeMatch(before=0), TimeMatch(until=0)):
        assert holds(Criterion("date", (match,)), before)
        assert not holds(Criterion("date", (match,)), after)


def test_a_period_without_a_start_or_an_end_is_beyond_every_time() -> None:
    always = found_by(("date", EARLIEST, LATEST))

    assert holds(Criterion("date", (TimeMatch(before=-(10**15), after=10**15),)), always)


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        (TextMatch("ash"), True),
        (TextMatch("down"), False),
        (TextMatch("down", anywhere=True), True),
        (TextMatch("down", "family", anywhere=True), True),
        (TextMatch("down", "given", anywhere=True), False),
        (TextMatch("ashdowns", anywhere=True), False),
    ],
)
def test_a_text_is_found_by_its_beginning_or_by_any_part(
    match: TextMatch, *, expected: bool
) -> None:
    named = found_by(("name", "ashdown", "family"))

    assert holds(Criterion("name", (match,)), named) is expected


def test_a_number_is_no_text() -> None:
    assert not having("date", TextMatch("5"))


# Orders


SORTED = found_by(
    *(("date", 5, 6), ("date", None, None), ("date", 9, 10), ("date", 7, 8)),
    *(("name", "b", "family"), ("name", "a", "given"), ("name", "c", "family")),
    id="r1",
)


@pytest.mark.parametrize(
    ("order", "value"),
    [
        (Order("date"), 5),
        (Order("date", descending=True), 9),
        (Order("name"), "a"),
        (Order("name", descending=True), "c"),
        (Order("name", kind="family"), "b"),
        (Order("name", descending=True, kind="given"), "a"),
        (Order("name", kind="text"), None),
        (Order("code"), None),
    ],
)
def test_a_version_stands_where_its_lowest_or_highest_value_does(order: Order, value: Any) -> None:
    assert sort_key([order], SORTED) == (value, "r1")


def test_a_place_has_a_value_for_each_name_and_ends_with_the_id() -> None:
    assert sort_key([Order("date"), Order("code"), Order("name")], SORTED) == (5, None, "a", "r1")
    assert sort_key([], SORTED) == ("r1",)


def test_newest_first_is_the_usual_order() -> None:
    old, new = (sort_key(NEWEST_FIRST, a_version(updated=moment)) for moment in (1, 2))

    assert comes_after(old, new, NEWEST_FIRST)
    assert not comes_after(new, old, NEWEST_FIRST)


UP, DOWN = Order("date"), Order("date", descending=True)


@pytest.mark.parametrize(
    ("key", "other", "order"),
    [
        ((2, "a"), (1, "b"), [UP]),
        ((1, "b"), (2, "a"), [DOWN]),
        ((1, "b"), (1, "a"), [UP]),
        ((1, "b"), (1, "a"), [DOWN]),
        ((None, "b"), (None, "a"), [DOWN]),
        ((1, 1, "a"), (1, 2, "a"), [UP, DOWN]),
        ((1, None, "a"), (1, 2, "b"), [UP, DOWN]),
        ((2, None, "a"), (1, 2, "b"), [UP, DOWN]),
        (("b",), ("a",), []),
    ],
)
def test_of_two_places_exactly_one_is_behind_the_other(
    key: Any, other: Any, order: list[Order]
) -> None:
    assert comes_after(key, other, order)
    assert not comes_after(other, key, order)


def test_no_place_is_behind_itself() -> None:
    assert not comes_after((1, None, "a"), (1, None, "a"), [UP, DOWN])


def test_places_of_different_orders_are_not_compared() -> None:
    with pytest.raises(ValueError, match="zip"):
        comes_after((1, "a"), (1, "a"), [UP, DOWN])
