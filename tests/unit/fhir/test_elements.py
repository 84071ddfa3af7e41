"""Walks through a resource find all its objects, in their order, with their places."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.fhir.elements import (
    each_item,
    element_of,
    items_of,
    literals_of,
    objects_in,
    places_in,
    reduce_to,
    values_at,
    with_identity,
    with_rules,
)


def test_all_objects_are_found_breadth_first() -> None:
    deep: dict[str, Any] = {"c": 1}
    first: dict[str, Any] = {"b": deep}
    second: dict[str, Any] = {"d": [[]]}
    resource = {"a": [first, "text", second], "e": {"f": True}}

    assert objects_in(resource) == [resource, first, second, {"f": True}, deep]


def test_equal_objects_are_several() -> None:
    equal = [{"a": 1}, {"a": 1}]

    assert objects_in({"b": equal, "c": {"a": 1}}) == [
        {"b": equal, "c": {"a": 1}},
        *[{"a": 1}] * 3,
    ]


@pytest.mark.parametrize(
    "name",
    [
        *("contained", "data", "div", "end", "extension", "high", "reference"),
        *("modifierExtension", "implicitRules", "_implicitRules"),
    ],
)
def test_an_object_with_a_name_that_has_rules_is_chosen(name: str) -> None:
    assert with_rules([{"a": 1}, {name: 1, "a": 1}]) == [{name: 1, "a": 1}]


@pytest.mark.parametrize(
    "name", ["id", "instantiatesCanonical", "profile", "system", "valueCanonical"]
)
def test_an_object_with_a_name_that_identifies_is_chosen(name: str) -> None:
    assert with_identity([{"a": 1}, {name: 1, "a": 1}]) == [{name: 1, "a": 1}]


def test_each_object_has_its_place() -> None:
    period: dict[str, Any] = {"start": "2020"}
    name, beside, text = {"period": period}, {"id": "a"}, {"div": "b"}
    resource = {"name": [{}, name], "_status": beside, "text": text}

    places = places_in(resource)

    assert places[id(resource)] == ""
    assert places[id(name)] == "name[1]"
    assert places[id(period)] == "name[1].period"
    assert places[id(beside)] == "status"
    assert places[id(text)] == "text"


@pytest.mark.parametrize("name", ["a b", "1a", "a" * 65, "ä", ""])
def test_a_path_ends_at_a_name_that_fhir_could_not_have(name: str) -> None:
    inner: dict[str, Any] = {}
    many = {name: [inner]}

    places = places_in({"a": many})

    assert places[id(inner)] == "a"


def test_a_name_of_64_letters_is_shown() -> None:
    inner: dict[str, Any] = {}

    assert places_in({"a" * 64: inner})[id(inner)] == "a" * 64


def test_a_path_leads_to_the_holder_of_a_value() -> None:
    first, second = {"reference": "Patient/1"}, {"reference": "Patient/2"}
    resource = {"a": [{"b": first}, "text", {"b": second}, {"c": 1}]}

    assert list(values_at(resource, "a.b.reference")) == [
        (first, "reference", "a[0].b.reference"),
        (second, "reference", "a[2].b.reference"),
    ]


def test_a_path_leads_to_nothing_where_the_value_is_missing_or_null() -> None:
    assert list(values_at({"a": None}, "a")) == []
    assert list(values_at({"a": {"b": 1}}, "a.c")) == []
    assert list(values_at({"a": "text"}, "a.b")) == []


def test_a_list_at_the_end_of_a_path_is_one_value() -> None:
    resource = {"a": [1, 2]}

    assert list(values_at(resource, "a")) == [(resource, "a", "a")]


VALUES: dict[str, tuple[dict[str, Any], str, list[tuple[str, Any]]]] = {
    "one": ({"a": 1}, "a", [("a", 1)]),
    "many": ({"a": [1, 2]}, "a", [("a[0]", 1), ("a[1]", 2)]),
    "none": ({"b": 1}, "a", []),
    "null": ({"a": None}, "a", []),
    "false": ({"a": False}, "a", [("a", False)]),
    "below many": (
        {"a": [{"b": 1}, {}, {"b": [2, 3]}]},
        "a.b",
        [("a[0].b", 1), ("a[2].b[0]", 2), ("a[2].b[1]", 3)],
    ),
    "below one": ({"a": {"b": {"c": 1}}}, "a.b.c", [("a.b.c", 1)]),
    "below a text": ({"a": "b"}, "a.b", []),
}


@pytest.mark.parametrize("case", VALUES)
def test_values_are_found_with_their_places(case: str) -> None:
    holder, path, expected = VALUES[case]

    assert items_of(holder, path) == expected
    assert list(each_item(holder, path)) == expected


def test_places_begin_with_that_of_the_holder() -> None:
    assert list(each_item({"a": [{"b": 1}]}, "a.b", "c[4]")) == [("c[4].a[0].b", 1)]


def test_only_literals_that_are_texts_are_yielded() -> None:
    elements = [{"reference": "Patient/1"}, {"reference": 7}, {"display": "a"}, "Patient/2", None]

    assert list(literals_of(elements)) == ["Patient/1"]


CHOICES = ("value[x]", "status", "valueSet")


@pytest.mark.parametrize(
    ("name", "element"),
    [
        ("status", "status"),
        ("_status", "status"),
        ("valueString", "value[x]"),
        ("_valueDateTime", "value[x]"),
        ("valueSet", "valueSet"),
        ("values", "values"),
        ("value", "value"),
        ("other", "other"),
    ],
)
def test_a_property_belongs_to_its_element(name: str, element: str) -> None:
    assert element_of(name, CHOICES) == element


RESOURCE = {
    "id": "1",
    "status": "a",
    "_status": {"id": "b"},
    "valueString": "c",
    "_valueString": {"id": "d"},
    "values": "e",
}


def test_a_resource_is_reduced_to_its_elements_and_choices() -> None:
    assert [*reduce_to(RESOURCE, ["status", "value[x]"])] == ["status", "valueString"]


def test_a_resource_is_reduced_with_siblings_if_these_are_asked_for() -> None:
    reduced = reduce_to(RESOURCE, ["value[x]", "status"], siblings=True)

    assert [*reduced] == ["status", "_status", "valueString", "_valueString"]


def test_nothing_is_left_without_elements() -> None:
    assert reduce_to(RESOURCE, [], siblings=True) == {}
