"""Names of parameters, identifiers and ids: what is understood of a search."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.plugin_api import IdentifierRule, SearchParameter, ValueForm, patient
from fhirpub.storage.criteria import Criterion, TokenMatch
from fhirpub_diagnosticreport.members import RESULT
from tests.indexers import indexer
from tests.unit.interactions.reading import (
    ID,
    OBSERVATION,
    OF_SEVERAL,
    OTHER,
    SEVERAL_OF,
    TENANT,
    problems,
    read,
)

OF_MEMBERS = indexer(SEVERAL_OF, member=RESULT)

SEVERAL = "identifiers"


def key(value: str, system: str = "urn:s") -> str:
    return TENANT.resource_id("Observation", system, value)


# Names


@pytest.mark.parametrize("name", ["_format", "_pretty"])
def test_parameters_of_the_format_are_passed_over(name: str) -> None:
    reading = read((name, "json"))

    assert (reading.understood, reading.unknown, reading.empty) == ([], [], [])


def test_a_parameter_without_a_value_is_empty_and_not_looked_at() -> None:
    reading = read(("code", ""), ("nonsense", ""), ("_cursor", ""))

    assert reading.empty == ["code", "nonsense", "_cursor"]
    assert (reading.criteria, reading.understood, reading.unknown) == ([], [], [])


def test_the_cursor_is_kept_apart() -> None:
    reading = read(("_cursor", "abc"), ("code", "a"))

    assert reading.cursor == "abc"
    assert reading.understood == [("code", "a")]
    assert read().cursor == ""


@pytest.mark.parametrize(
    "name",
    [
        "nonsense",
        ".code",
        ":not",
        "code:",
        "code.x",
        "date.x",
        "_lastUpdated.x",
        "_id.x",
        "value-string.x",
        "code-value.x",
        "code:not.x",
        "patient.name",
        "encounter.identifier",
        "patient:Encounter.identifier",
        "patient.identifier.x",
        "",
    ],
)
def test_a_name_that_is_not_known_demands_nothing(name: str) -> None:
    reading = read((name, "a"))

    known = name == "code:"  # an empty modifier is none
    assert reading.unknown == ([] if known else [name])
    assert len(reading.criteria) == int(known)


def test_what_was_understood_is_listed_in_its_order_as_it_was_written() -> None:
    reading = read(("code:not", "a"), ("x", "1"), ("category", "b"), ("code:not", "a"))

    assert reading.understood == [("code:not", "a"), ("category", "b"), ("code:not", "a")]
    assert reading.unknown == ["x"]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("_count", ("1", "2")),
        ("_total", ("none", "accurate")),
        ("_summary", ("true", "false")),
        ("_elements", ("code", "status")),
    ],
)
def test_of_a_parameter_of_the_page_the_last_one_is_listed(
    name: str, values: tuple[str, str]
) -> None:
    reading = read((name, values[0]), ("code", "a"), (name, values[1]))

    assert reading.understood == [("code", "a"), (name, values[1])]


def test_a_sort_order_that_comes_twice_is_listed_twice() -> None:
    reading = read(("_sort", "date"), ("_sort", "code"))

    assert reading.understood == [("_sort", "date"), ("_sort", "code")]


# Identifiers and ids


def test_an_identifier_leads_to_an_id_without_an_index() -> None:
    reading = read(("identifier", "urn:s|1,urn:s|2"))

    assert reading.ids == frozenset({key("1"), key("2")})
    assert (reading.identifiers, reading.criteria) == ([], [])


@pytest.mark.parametrize("value", ["1", "urn:s|", "urn:s|1,2"])
def test_an_identifier_without_a_part_is_looked_up(value: str) -> None:
    reading = read(("identifier", value))

    assert reading.ids is None
    assert len(reading.identifiers) == 1


def test_identifiers_of_any_system_are_looked_up_together() -> None:
    reading = read(("identifier", "1,urn:s|"), ("identifier", "2"))

    assert reading.identifiers == [
        (TokenMatch(None, "1"), TokenMatch("urn:s", None)),
        (TokenMatch(None, "2"),),
    ]


def test_an_identifier_that_must_have_no_system_matches_nothing() -> None:
    assert read(("identifier", "|1")).ids == frozenset()
    assert read(("identifier", "|1,urn:s|2")).ids == frozenset({key("2")})


@pytest.mark.parametrize("order", [1, -1])
def test_two_identifiers_must_both_hold(order: int) -> None:
    asked = [("identifier", "urn:s|1,urn:s|2"), ("identifier", "urn:s|2,urn:s|3")]

    assert read(*asked[::order]).ids == frozenset({key("2")})


def test_an_identifier_that_is_wrong_is_refused() -> None:
    assert problems(read(("identifier", "|"))) == [
        ("identifier", "must be value, system|value, system| or |value")
    ]


def test_an_identifier_of_another_system_has_another_id() -> None:
    assert read(("identifier", "urn:t|1")).ids == frozenset({key("1", "urn:t")})
    assert key("1", "urn:t") != key("1")


def test_other_identifiers_than_one_are_excluded_by_the_store() -> None:
    reading = read(("identifier:not", "urn:s|1"))

    assert reading.criteria == [Criterion("identifier", (TokenMatch("urn:s", "1"),), negated=True)]
    assert reading.ids is None


def test_an_identifier_is_found_with_its_type() -> None:
    assert read(("identifier:of-type", "urn:t|MR|1")).criteria == [
        Criterion("identifier:of-type", (TokenMatch("urn:t", "MR|1"),))
    ]


def test_the_identifiers_of_a_type_with_several_are_looked_up_as_values() -> None:
    reading = read(("identifier", "urn:s|1"), searched=OF_SEVERAL)

    assert reading.ids is None
    assert reading.criteria == [Criterion(SEVERAL, (TokenMatch("urn:s", "1"),))]


def test_ids_are_narrowed_to_those_that_can_be_some() -> None:
    assert read(("_id", f"{ID},x,{OTHER}")).ids == frozenset({ID, OTHER})
    assert read(("_id", "x")).ids == frozenset()


def test_ids_and_identifiers_narrow_each_other() -> None:
    reading = read(("_id", f"{ID},{key('1')}"), ("identifier", "urn:s|1,urn:s|2"))

    assert reading.ids == frozenset({key("1")})


def test_ids_that_are_wrong_narrow_nothing() -> None:
    reading = read(("_id", "a\\b"))

    assert reading.ids is None
    assert problems(reading) == [("_id", "must be ids, separated by commas")]


def test_an_id_is_excluded_by_the_store() -> None:
    assert read(("_id:not", ID)).criteria == [
        Criterion("_id", (TokenMatch(None, ID),), negated=True)
    ]


def test_what_came_with_another_resource_is_found_by_its_identifiers() -> None:
    assert read(("identifier", "urn:s|1"), searched=OF_MEMBERS).criteria == [
        Criterion(SEVERAL, (TokenMatch("urn:s", "1"),))
    ]


def test_what_came_with_another_resource_is_left_out_of_what_was_registered_alone() -> None:
    reading = read(("identifier", "urn:s|1"), searched=OF_MEMBERS, alone=True)

    assert reading.criteria == [
        Criterion("identifier", (TokenMatch("", ""),), negated=True),
        Criterion(SEVERAL, (TokenMatch("urn:s", "1"),)),
    ]
    assert reading.understood == [("identifier", "urn:s|1")]


def test_a_type_that_never_comes_with_another_leaves_nothing_out() -> None:
    assert read(("identifier", "urn:s|1"), searched=OF_SEVERAL, alone=True).criteria == [
        Criterion(SEVERAL, (TokenMatch("urn:s", "1"),))
    ]


def test_the_only_identifier_of_what_was_registered_alone_leads_to_its_id() -> None:
    members = indexer(OBSERVATION, member=RESULT)

    assert read(("identifier", "urn:s|1"), searched=members, alone=True).ids == frozenset(
        {key("1")}
    )
    assert read(("identifier", "urn:s|1"), searched=members).ids is None


def test_an_identifier_is_compared_in_its_normal_form() -> None:
    upper = replace(
        SEVERAL_OF, identifier=IdentifierRule(most=5, forms=(ValueForm(case="upper"),))
    )
    searched = indexer(upper)

    assert read(("identifier:not", "urn:s|a"), searched=searched).criteria == [
        Criterion(SEVERAL, (TokenMatch("urn:s", "A"),), negated=True)
    ]
    assert read(("code", "urn:s|a"), searched=searched).criteria == [
        Criterion("code", (TokenMatch("urn:s", "a"),))
    ]
    (typed,) = read(("identifier:of-type", "urn:t|MR|a"), searched=searched).criteria
    assert isinstance(typed, Criterion)
    assert TokenMatch("urn:t", "MR|A") in typed.any_of


@pytest.mark.parametrize(
    ("name", "is_known"), [("subject.identifier", True), ("who.identifier", False)]
)
def test_an_identifier_behind_one_of_several_patients_is_not_looked_for(
    name: str, *, is_known: bool
) -> None:
    who = SearchParameter(name="who", type="reference", paths=("subject", "performer"))
    parts = (patient(referred_by="subject"), replace(patient(referred_by="performer"), name="b"))
    two = indexer(replace(OBSERVATION, parts=parts, search=(*OBSERVATION.search, who)))

    found = read((name, "urn:s|1"), searched=two)

    assert found.unknown == ([] if is_known else [name])
    assert bool(found.criteria) is is_known


def test_ids_that_no_resource_has_find_nothing_beside_one_that_may_be() -> None:
    assert read(("_id", "nonsense"), ("_id", ID)).ids == frozenset()
    assert read(("_id", ID), ("_id", OTHER), ("_id", OTHER)).ids == frozenset()


def test_of_a_parameter_that_counts_once_only_its_own_former_values_are_left_out() -> None:
    reading = read(("_count", "1"), ("_total", "none"), ("_count", "2"), ("_elements", "code"))

    assert reading.understood == [("_total", "none"), ("_count", "2"), ("_elements", "code")]
