"""Which indexes lead to the candidates of a condition."""

from __future__ import annotations

import pytest

from fhirpub.storage.criteria import (
    ANYTHING,
    ID,
    IDENTIFIER,
    LAST_UPDATED,
    Condition,
    Either,
    Match,
    TimeMatch,
    TokenMatch,
)
from fhirpub.storage.mongodb.schema import BY_SYSTEM, BY_TIME, BY_VALUE, Filter
from fhirpub.storage.mongodb.search import filters
from fhirpub.testing.contracts.store.queries import has, match, part, text, token

OF_ONE = TokenMatch("P", "", "1")
A_CODE, A_TIME = has("code", token("a")), has("date", TimeMatch(from_=1))


@pytest.mark.parametrize(
    ("any_of", "expected"),
    [
        ([token("a")], True),
        ([token("a", "s")], True),
        ([token("")], False),
        ([token(None, "s")], False),
        ([ANYTHING], False),
        ([OF_ONE], True),
        ([text("a")], True),
        ([part("a")], True),
        ([TimeMatch(from_=0)], True),
        ([TimeMatch(after=0)], True),
        ([TimeMatch(before=9, until=9)], False),
        ([TimeMatch()], False),
        ([token("a"), token("")], False),
        ([token("a"), text("a"), TimeMatch(after=1)], True),
        ([token("a"), TimeMatch(before=1)], False),
    ],
    ids=str,
)
def test_an_index_leads_to_all_candidates_if_it_does_for_each_alternative(
    any_of: list[Match], *, expected: bool
) -> None:
    assert filters.has_range(has("code", *any_of)) is expected


def test_no_index_over_values_leads_to_what_lacks_one() -> None:
    assert not filters.has_range(has("code", token("a"), negated=True))


@pytest.mark.parametrize("name", [ID, IDENTIFIER, LAST_UPDATED])
def test_no_index_over_values_has_the_fields_of_a_version(name: str) -> None:
    assert not filters.has_range(has(name, token("a")))


@pytest.mark.parametrize(
    ("either", "expected"),
    [
        (Either(()), False),
        (Either(((A_CODE,),)), True),
        (Either(((A_CODE,), (A_TIME,))), True),
        (Either(((A_CODE,), (has("code", ANYTHING),))), False),
        (Either(((A_CODE, has("code", ANYTHING)), (has("x", token("")), A_TIME))), True),
    ],
    ids=str,
)
def test_an_index_leads_to_all_candidates_if_it_leads_to_one_criterion_of_each_group(
    either: Either, *, expected: bool
) -> None:
    assert filters.has_range(either) is expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (A_CODE, True),
        (has("code", token("a"), token("b", "s")), True),
        (has("code", token("")), False),
        (has("code", token("a"), negated=True), False),
        (has("code", text("a")), False),
        (has("code", token("a"), text("a")), False),
        (has("code", token("a"), OF_ONE), False),
        (has("code", TokenMatch("P", "x", "1")), False),
        (A_TIME, False),
        (Either(((A_CODE,),)), False),
    ],
    ids=str,
)
def test_an_index_has_only_codes_newest_first(condition: Condition, *, expected: bool) -> None:
    assert filters.is_in_order(condition) is expected


@pytest.mark.parametrize(("number", "expected"), [(100, True), (101, False)])
def test_a_hundred_codes_at_most_are_read_side_by_side(number: int, *, expected: bool) -> None:
    codes = [token(f"c{each}") for each in range(number)]

    assert filters.is_in_order(has("code", *codes)) is expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (A_TIME, True),
        (has("date", TimeMatch(after=1, until=5), TimeMatch(from_=9)), True),
        (has("date", token("a"), TimeMatch(after=1)), True),
        (has("date", TimeMatch(before=5)), False),
        (has("date", TimeMatch(from_=1), TimeMatch(before=5)), False),
        (has("date", TimeMatch(from_=1), negated=True), False),
        (has(LAST_UPDATED, TimeMatch(from_=1)), False),
        (A_CODE, False),
        (Either(((A_TIME,),)), False),
    ],
    ids=str,
)
def test_an_index_leads_to_times_that_have_a_lower_bound(
    condition: Condition, *, expected: bool
) -> None:
    assert filters.is_range_of_times(condition) is expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (A_TIME, True),
        (has("date", TimeMatch(from_=1, before=5)), True),
        (has("date", TimeMatch(from_=1, until=5)), False),
        (has("date", TimeMatch(from_=1, until=5), TimeMatch(after=9)), True),
        (has("date", token("a"), TimeMatch(from_=1, until=5)), False),
        (has("date", TimeMatch(before=5)), False),
        (A_CODE, False),
        (Either(((A_TIME,),)), False),
    ],
    ids=str,
)
def test_a_time_without_a_latest_end_is_without_end(
    condition: Condition, *, expected: bool
) -> None:
    assert filters.is_without_end(condition) is expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (has("subject", OF_ONE), True),
        (has("subject", token("x"), OF_ONE), True),
        (has("subject", OF_ONE, negated=True), False),
        (has("subject", token("x"), text("a"), TimeMatch()), False),
        (has("subject"), False),
        (Either(((A_CODE,),)), False),
    ],
    ids=str,
)
def test_values_of_known_resources_are_asked_for_by_one_alternative(
    condition: Condition, *, expected: bool
) -> None:
    assert filters.may_be_owned(condition) is expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (A_CODE, True),
        (A_TIME, True),
        (has("status", token("a")), False),
        (Either(((A_CODE,),)), False),
    ],
    ids=str,
)
def test_a_criterion_is_about_its_name(condition: Condition, *, expected: bool) -> None:
    assert filters.compares(condition, "code", "date") is expected


@pytest.mark.parametrize(
    ("of_version", "expected"),
    [
        ({"tenant": "t", "type": "A"}, {"members.type": "A"}),
        ({"updated": {"$lt": 5}}, {"updated": {"$lt": 5}}),
        ({"tenant": "t"}, {}),
        ({"version": 1, "id": "1"}, {"members.version": 1, "members.id": "1"}),
        (
            {"$or": [{"value": "v"}, {"$and": [{"id": "1"}, {"updated": 5}]}]},
            {"$or": [{"members.value": "v"}, {"$and": [{"members.id": "1"}, {"updated": 5}]}]},
        ),
    ],
    ids=str,
)
def test_a_filter_of_a_member_is_about_what_is_its_own(
    of_version: Filter, expected: Filter
) -> None:
    assert filters.of_member(of_version) == expected


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (match("s", "v"), {BY_SYSTEM: {"system": "s"}, BY_VALUE: {"value": "v"}}),
        (match("s"), {BY_SYSTEM: {"system": "s"}}),
        (match(None, "v"), {BY_VALUE: {"value": "v"}}),
        (match(), {}),
        (match("s", "v") + match(), {}),
        ((), {BY_SYSTEM: {"system": {"$in": []}}, BY_VALUE: {"value": {"$in": []}}}),
        (match("s") + match("t"), {BY_SYSTEM: {"system": {"$in": ["s", "t"]}}}),
        (match(None, "v") + match(None, "w"), {BY_VALUE: {"value": {"$in": ["v", "w"]}}}),
        (
            match("s") + match(None, "v"),
            {BY_TIME: {"$or": [{"system": "s"}, {"value": "v"}]}},
        ),
        (
            match("s", "v") + match(None, "w"),
            {
                BY_VALUE: {"value": {"$in": ["v", "w"]}},
                BY_TIME: {"$or": [{"value": "w"}, {"system": "s", "value": "v"}]},
            },
        ),
        (
            match("s", "v") + match("t"),
            {
                BY_SYSTEM: {"system": {"$in": ["s", "t"]}},
                BY_TIME: {"$or": [{"system": "t"}, {"system": "s", "value": "v"}]},
            },
        ),
        (
            match("s", "v") + match("s", "w") + match("t", "v"),
            {
                BY_SYSTEM: {"system": {"$in": ["s", "s", "t"]}},
                BY_VALUE: {"value": {"$in": ["v", "w", "v"]}},
                BY_TIME: {
                    "$or": [
                        {"system": "s", "value": {"$in": ["v", "w"]}},
                        {"system": "t", "value": "v"},
                    ]
                },
            },
        ),
    ],
    ids=str,
)
def test_identifiers_lead_to_each_index_that_has_all_of_them(
    group: tuple[TokenMatch, ...], expected: dict[str, Filter]
) -> None:
    assert filters.match_identified(group) == expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [([], {"$in": []}), (["a"], "a"), (["a", "b"], {"$in": ["a", "b"]})],
    ids=str,
)
def test_a_single_text_is_compared_as_such(texts: list[str], expected: object) -> None:
    assert filters.match_one_of("id", texts) == {"id": expected}
