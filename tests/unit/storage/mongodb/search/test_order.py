"""How candidates are put in order, and which of them are behind a page."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.storage.criteria import ID, IDENTIFIER, LAST_UPDATED, Order, SortKey
from fhirpub.storage.mongodb.search.order import Ordering, ordering_of
from fhirpub.testing.contracts.store.queries import wanting

BEHIND_ID = {"$gt": ["$id", {"$literal": "1"}]}


def by(*order: Order, after: SortKey | None = None) -> Ordering:
    """Return the ordering of a search that has an order."""
    return ordering_of(wanting(order=order, after=after))


def place_by(name: str, **how: Any) -> dict[str, Any]:
    """Return the place by one name, as an expression."""
    place: dict[str, Any] = by(Order(name, **how)).needed["place0"]
    return place


def values_under(*conditions: dict[str, Any]) -> dict[str, Any]:
    """Return the expression for the stored values that meet conditions."""
    return {
        "$filter": {"input": {"$ifNull": ["$search", []]}, "cond": {"$and": [*conditions]}},
    }


NAMED = {"$eq": ["$$this.name", "code"]}
HAS_VALUE = {"$ne": ["$$this.rest", None]}


def test_the_newest_come_first_and_those_of_one_moment_by_id() -> None:
    usual = ordering_of(wanting())

    assert usual == Ordering({"updated": 1}, {"updated": -1, "id": 1})
    assert [*usual.sorting] == ["updated", "id"]
    assert usual.is_usual


def test_behind_an_entry_are_older_ones_and_those_of_its_moment_with_a_higher_id() -> None:
    usual = ordering_of(wanting(after=(5, "1")))

    assert usual.bounds == ({"updated": {"$lte": 5}},)
    assert usual.follows == {"$or": [{"$lt": ["$updated", 5]}, BEHIND_ID]}
    assert usual.is_usual


def test_the_first_page_is_behind_nothing() -> None:
    for ordering in (ordering_of(wanting()), by(Order("code"))):
        assert (ordering.bounds, ordering.follows) == ((), None)


@pytest.mark.parametrize(
    "order",
    [
        (Order(LAST_UPDATED),),
        (Order(LAST_UPDATED, descending=True), Order("code")),
        (Order("code"),),
    ],
    ids=str,
)
def test_no_other_order_is_the_usual_one(order: tuple[Order, ...]) -> None:
    assert not by(*order).is_usual


def test_each_name_sorts_by_its_values_those_without_one_last_and_then_by_id() -> None:
    ordering = by(Order("code"), Order("date", descending=True))

    assert [*ordering.sorting.items()] == [
        ("place0.none", 1),
        ("place0.value", 1),
        ("place1.none", 1),
        ("place1.value", -1),
        ("id", 1),
    ]
    assert [*ordering.needed] == ["place0", "place1"]


def test_what_decides_a_place_is_kept() -> None:
    assert by(Order("code"), Order("date")).kept == {"place0": 1, "place1": 1}
    assert ordering_of(wanting()).kept == {"updated": 1}


@pytest.mark.parametrize(
    ("name", "field"), [(ID, "$id"), (IDENTIFIER, "$value"), (LAST_UPDATED, "$updated")]
)
def test_every_version_has_the_fields_that_are_its_own(name: str, field: str) -> None:
    assert place_by(name) == {"none": {"$literal": 0}, "value": field}


@pytest.mark.parametrize(("descending", "extreme"), [(False, "$min"), (True, "$max")])
def test_a_version_stands_by_its_lowest_value_or_descending_by_its_highest(
    *, descending: bool, extreme: str
) -> None:
    named = values_under(NAMED, HAS_VALUE)

    place = place_by("code", descending=descending)

    each = {"$cond": [{"$isNumber": "$$this.key"}, "$$this.rest", {"$ifNull": ["$$this.key", ""]}]}
    assert place == {
        "none": {"$cond": [{"$eq": [named, []]}, 1, 0]},
        "value": {extreme: {"$map": {"input": named, "in": each}}},
    }


@pytest.mark.parametrize("kind", ["family", ""])
def test_values_of_one_kind_decide_where_it_is_asked_for(kind: str) -> None:
    place = place_by("code", kind=kind)

    of_kind = {"$eq": ["$$this.rest", {"$literal": kind}]}
    named = values_under(NAMED, HAS_VALUE, of_kind)
    assert place["none"] == {"$cond": [{"$eq": [named, []]}, 1, 0]}
    assert place["value"]["$min"]["$map"]["input"] == named


@pytest.mark.parametrize(("descending", "later"), [(False, "$gt"), (True, "$lt")])
def test_behind_a_value_are_later_ones_the_same_with_a_higher_id_and_none(
    *, descending: bool, later: str
) -> None:
    ordering = by(Order("code", descending), after=("c", "1"))

    none, value, place = "$place0.none", "$place0.value", {"$literal": "c"}
    same = {"$and": [{"$eq": [value, place]}, BEHIND_ID]}
    has_one = {"$and": [{"$eq": [none, 0]}, {"$or": [{later: [value, place]}, same]}]}
    assert ordering.follows == {"$or": [{"$eq": [none, 1]}, has_one]}
    assert ordering.bounds == ()


def test_behind_an_entry_without_a_value_are_those_without_one_and_with_a_higher_id() -> None:
    ordering = by(Order("code"), after=(None, "1"))

    assert ordering.follows == {"$and": [{"$eq": ["$place0.none", 1]}, BEHIND_ID]}


def test_the_second_name_decides_where_the_first_is_the_same() -> None:
    second = by(Order("code"), Order("date"), after=(None, 7, "1")).follows

    none, value, place = "$place1.none", "$place1.value", {"$literal": 7}
    same = {"$and": [{"$eq": [value, place]}, BEHIND_ID]}
    has_one = {"$and": [{"$eq": [none, 0]}, {"$or": [{"$gt": [value, place]}, same]}]}
    behind = {"$or": [{"$eq": [none, 1]}, has_one]}
    assert second == {"$and": [{"$eq": ["$place0.none", 1]}, behind]}


def test_behind_an_entry_without_the_second_value_are_also_later_ones_by_the_first() -> None:
    found = by(Order("code"), Order("date"), after=("c", None, "1")).follows

    none, value, place = "$place0.none", "$place0.value", {"$literal": "c"}
    without = {"$and": [{"$eq": ["$place1.none", 1]}, BEHIND_ID]}
    same = {"$and": [{"$eq": [value, place]}, without]}
    has_one = {"$and": [{"$eq": [none, 0]}, {"$or": [{"$gt": [value, place]}, same]}]}
    assert found == {"$or": [{"$eq": [none, 1]}, has_one]}


def test_all_that_is_found_is_shown_on_the_first_page() -> None:
    assert by(Order("code")).show({"id": 1}) == [{"$project": {"id": 1}}]


def test_of_what_is_found_only_what_is_behind_the_page_is_shown() -> None:
    ordering = ordering_of(wanting(after=(5, "1")))

    assert ordering.show({"id": 1}) == [
        {"$project": {"id": 1, "follows": ordering.follows}},
        {"$match": {"follows": True}},
    ]
