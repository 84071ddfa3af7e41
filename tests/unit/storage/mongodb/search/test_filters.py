"""What a condition asks of a version as it is stored."""

from __future__ import annotations

import pytest

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
from fhirpub.storage.mongodb.schema import Filter
from fhirpub.storage.mongodb.search.filters import alternatives, filter_of
from fhirpub.testing.contracts.store.queries import has, part, text, token
from fhirpub.testing.samples import LAB, OTHER, REPORT

FIELD = field_number(LAB, REPORT, "code")
NOTHING: Filter = {"id": {"$in": []}}
SOME = {"$ne": None}
WITHOUT_KEY = {"$exists": False}
LAST = "\U0010ffff"


def stored(**wanted: object) -> Filter:
    """Return the filter for versions of which one value under ``code`` is as wanted."""
    return {"search": {"$elemMatch": {"name": "code", **wanted}}}


def wanted_by(condition: Condition) -> Filter:
    """Return the filter for reports of the tenant LAB."""
    return filter_of(condition, LAB, REPORT)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (token("a"), stored(key="a", field=FIELD)),
        (token("a", "s"), stored(key="a", rest="s", field=FIELD)),
        (token("a", ""), stored(key="a", rest="", field=FIELD)),
        (token(None, "s"), stored(rest="s")),
        (token(None, ""), stored(rest="")),
        (token(""), stored(key=WITHOUT_KEY, rest=SOME)),
        (token("", "s"), stored(key=WITHOUT_KEY, rest="s")),
        (ANYTHING, stored()),
    ],
    ids=str,
)
def test_one_value_must_have_both_parts_of_a_token(wanted: TokenMatch, expected: Filter) -> None:
    assert wanted_by(has("code", wanted)) == expected


def test_codes_of_one_system_are_looked_up_together() -> None:
    criterion = has("code", token("a", "s"), token("b", "s"))

    assert wanted_by(criterion) == stored(key={"$in": ["a", "b"]}, rest="s", field=FIELD)


def test_codes_of_two_systems_are_alternatives() -> None:
    criterion = has("code", token("a", "s"), token("a", "t"))

    assert wanted_by(criterion) == {
        "$or": [
            stored(key="a", rest="s", field=FIELD),
            stored(key="a", rest="t", field=FIELD),
        ]
    }


def test_an_empty_code_is_not_looked_up_with_others() -> None:
    assert wanted_by(has("code", token("a"), token(""))) == {
        "$or": [stored(key="a", field=FIELD), stored(key=WITHOUT_KEY, rest=SOME)]
    }


def test_systems_without_a_code_are_looked_up_together() -> None:
    criterion = has("code", token(None, "s"), token(None, "t"))

    assert wanted_by(criterion) == stored(rest={"$in": ["s", "t"]})


def test_a_system_without_a_code_is_an_alternative_to_a_code() -> None:
    assert wanted_by(has("code", token(None, "s"), token("a"))) == {
        "$or": [stored(key="a", field=FIELD), stored(rest="s")]
    }


def test_anything_is_an_alternative_to_a_code() -> None:
    assert wanted_by(has("code", token("a"), ANYTHING)) == {
        "$or": [stored(key="a", field=FIELD), stored()]
    }


def test_none_of_the_alternatives_may_match_where_they_are_negated() -> None:
    assert wanted_by(has("code", token("a"), token("b", "s"), negated=True)) == {
        "$nor": [stored(key="a", field=FIELD), stored(key="b", rest="s", field=FIELD)]
    }


def test_without_an_alternative_to_exclude_everything_matches() -> None:
    assert wanted_by(has("code", negated=True)) == {}


def test_a_field_of_the_index_is_of_the_tenant_and_the_type() -> None:
    criterion = has("code", token("a"))
    fields = {
        each["search"]["$elemMatch"]["field"]
        for tenant, type_name in ((LAB, REPORT), (OTHER, REPORT), (LAB, "Observation"))
        for each in alternatives(criterion, tenant, type_name)
    }

    assert fields == {
        FIELD,
        field_number(OTHER, REPORT, "code"),
        field_number(LAB, "Observation", "code"),
    }


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (TokenMatch("P", "", "1"), {"id": "1", **stored(key=WITHOUT_KEY, rest="P")}),
        (TokenMatch("P", "x", "1"), {"id": "1", **stored(key="x", rest="P", field=FIELD)}),
        (TokenMatch(None, "x", "1"), {"id": "1", **stored(key="x", field=FIELD)}),
        (TokenMatch("P", None, "1"), {"id": "1", **stored(rest="P")}),
    ],
    ids=str,
)
def test_a_value_of_one_resource_is_looked_for_there_alone(
    wanted: TokenMatch, expected: Filter
) -> None:
    assert wanted_by(has("code", wanted)) == expected


def test_a_value_of_several_resources_is_looked_up_once() -> None:
    criterion = has("code", TokenMatch("P", "", "1"), TokenMatch("P", "", "2"))

    expected = {"id": {"$in": ["1", "2"]}, **stored(key=WITHOUT_KEY, rest="P")}
    assert wanted_by(criterion) == expected


def test_a_value_of_one_resource_is_an_alternative_to_one_of_any() -> None:
    assert wanted_by(has("code", token("x"), TokenMatch("P", "", "1"))) == {
        "$or": [
            {"id": "1", **stored(key=WITHOUT_KEY, rest="P")},
            stored(key="x", field=FIELD),
        ]
    }


def test_a_system_of_one_resource_is_not_looked_for_in_others() -> None:
    assert wanted_by(has("code", TokenMatch("P", None, "1"), token(None, "Q"))) == {
        "$or": [{"id": "1", **stored(rest="P")}, stored(rest="Q")]
    }


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (token("v"), {"value": "v"}),
        (token("v", "s"), {"value": "v", "system": "s"}),
        (token(None, "s"), {"system": "s"}),
        (token("", "s"), {"value": "", "system": "s"}),
        (ANYTHING, {}),
        (text("as"), {"value": {"$gte": "as", "$lt": "at"}}),
        (text("as", "s"), {"value": {"$gte": "as", "$lt": "at"}, "system": "s"}),
    ],
    ids=str,
)
def test_an_identifier_is_compared_with_the_fields_of_a_version(
    wanted: TokenMatch | TextMatch, expected: Filter
) -> None:
    assert wanted_by(has(IDENTIFIER, wanted)) == expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ((token("1"),), {"id": "1"}),
        ((token("1", ""),), {"id": "1"}),
        ((token("1"), token("2")), {"id": {"$in": ["1", "2"]}}),
        ((token("1", "s"),), NOTHING),
        ((token(None, "s"),), NOTHING),
        ((ANYTHING,), {}),
        ((text("1"),), {"id": {"$gte": "1", "$lt": "2"}}),
        ((text("1", "s"),), NOTHING),
    ],
    ids=str,
)
def test_an_id_has_no_system(wanted: tuple[TokenMatch, ...], expected: Filter) -> None:
    assert wanted_by(has(ID, *wanted)) == expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (text("as"), stored(key={"$gte": "as", "$lt": "at"}, field=FIELD)),
        (text("as", "k"), stored(key={"$gte": "as", "$lt": "at"}, rest="k", field=FIELD)),
        (text("as", ""), stored(key={"$gte": "as", "$lt": "at"}, rest="", field=FIELD)),
        (text(LAST), stored(key={"$gte": LAST}, field=FIELD)),
        (part("as"), stored(key={"$regex": "as"}, field=FIELD)),
        (part("as", "k"), stored(key={"$regex": "as"}, rest="k", field=FIELD)),
        (part("é1.*"), stored(key={"$regex": r"é1\x{2e}\x{2a}"}, field=FIELD)),
        (part("\U0001f9ea"), stored(key={"$regex": r"\x{1f9ea}"}, field=FIELD)),
    ],
    ids=str,
)
def test_a_text_is_looked_for_from_its_beginning_or_anywhere(
    wanted: TextMatch, expected: Filter
) -> None:
    assert wanted_by(has("code", wanted)) == expected


def test_each_text_is_an_alternative() -> None:
    assert wanted_by(has("code", text("as"), text("bs"))) == {
        "$or": [
            stored(key={"$gte": "as", "$lt": "at"}, field=FIELD),
            stored(key={"$gte": "bs", "$lt": "bt"}, field=FIELD),
        ]
    }


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (TimeMatch(), stored(rest=SOME)),
        (TimeMatch(before=9), stored(rest={"$lt": 9})),
        (TimeMatch(until=9), stored(rest=SOME, key={"$lte": 9}, field=FIELD)),
        (TimeMatch(after=0), stored(rest=SOME, key={"$gt": 0}, field=FIELD)),
        (TimeMatch(from_=5), stored(rest={"$gte": 5}, key={"$gt": 5}, field=FIELD)),
        (
            TimeMatch(from_=5, after=7),
            stored(rest={"$gte": 5}, key={"$gt": 7}, field=FIELD),
        ),
        (
            TimeMatch(from_=5, after=3),
            stored(rest={"$gte": 5}, key={"$gt": 5}, field=FIELD),
        ),
        (
            TimeMatch(from_=5, before=6, after=7, until=8),
            stored(rest={"$gte": 5, "$lt": 6}, key={"$gt": 7, "$lte": 8}, field=FIELD),
        ),
    ],
    ids=str,
)
def test_a_time_is_compared_by_its_start_and_by_its_end(
    wanted: TimeMatch, expected: Filter
) -> None:
    assert wanted_by(has("code", wanted)) == expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (TimeMatch(), [{}]),
        (TimeMatch(before=9), [{"updated": {"$lt": 9}}]),
        (TimeMatch(until=9), [{"updated": {"$lt": 9}}]),
        (TimeMatch(after=9), [{"updated": {"$gte": 9}}]),
        (TimeMatch(from_=9), [{"updated": {"$gte": 9}}, {"updated": {"$gte": 9}}]),
        (
            TimeMatch(from_=3, before=9, after=4, until=8),
            [{"updated": {"$gte": 3, "$lt": 9}}, {"updated": {"$gte": 4, "$lt": 8}}],
        ),
    ],
    ids=str,
)
def test_the_moment_of_a_change_ends_a_millisecond_later(
    wanted: TimeMatch, expected: list[Filter]
) -> None:
    assert wanted_by(has(LAST_UPDATED, wanted)) == {"$and": expected}


def test_one_group_of_criteria_must_hold_as_a_whole() -> None:
    a, b, c = (has("code", token(code)) for code in "abc")

    assert wanted_by(Either(((a, b), (c,)))) == {
        "$or": [{"$and": [wanted_by(a), wanted_by(b)]}, {"$and": [wanted_by(c)]}]
    }


def test_criteria_in_groups_are_of_the_tenant_and_the_type() -> None:
    criterion = has("code", token("a"))

    found = filter_of(Either(((criterion,),)), OTHER, "Observation")

    assert found == {"$or": [{"$and": [filter_of(criterion, OTHER, "Observation")]}]}


def test_of_no_groups_none_holds() -> None:
    assert wanted_by(Either(())) == NOTHING
