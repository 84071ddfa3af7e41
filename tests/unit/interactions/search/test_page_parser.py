"""The parameters that say what an answer looks like: their values, limits and refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.interactions.query_parser import Reading
from fhirpub.interactions.search.includes import Include
from fhirpub.interactions.search.page_parser import Asked
from fhirpub.interactions.versions import MAX_COUNTED
from fhirpub.plugin_api import SearchParameter, practitioner
from fhirpub.problems import OperationProblem
from fhirpub.storage.criteria import NEWEST_FIRST, Order
from tests.indexers import indexer
from tests.unit.interactions.reading import (
    INDEXER,
    OBSERVATION,
    TENANT,
    context_of,
    problems,
    read,
)


def finished(*parameters: tuple[str, str]) -> Reading:
    reading = read(*parameters)
    reading.finish()
    return reading


def test_nothing_that_is_asked_for_is_the_usual_answer() -> None:
    reading = Reading(INDEXER, TENANT, context_of(page_size=33), alone=False)

    assert (reading.count, reading.count_up_to) == (33, MAX_COUNTED)
    assert (reading.summary, reading.elements, reading.included) == ("", "", {})
    assert reading.order == NEWEST_FIRST


@pytest.mark.parametrize(
    ("value", "count"), [("0", 0), ("1", 1), ("007", 7), ("999999999", 999_999_999)]
)
def test_a_count_is_a_whole_number(value: str, count: int) -> None:
    reading = read(("_count", value))

    assert (reading.count, problems(reading)) == (count, [])


@pytest.mark.parametrize("value", ["-1", "1.0", "x", "1000000000", "\u0661", "+1", "1 ", "\u00b2"])
def test_another_count_is_refused(value: str) -> None:
    reading = read(("_count", value))

    assert problems(reading) == [("_count", "must be a whole number of at least 0")]
    assert reading.count == 20


@pytest.mark.parametrize(
    ("value", "count_up_to"), [("none", 0), ("estimate", None), ("accurate", None)]
)
def test_a_total_is_counted_as_asked_for(value: str, count_up_to: int | None) -> None:
    reading = read(("_total", value))

    assert (reading.count_up_to, problems(reading)) == (count_up_to, [])


def test_another_total_is_refused() -> None:
    reading = read(("_total", "exact"))

    assert problems(reading) == [("_total", "must be none, estimate or accurate")]


@pytest.mark.parametrize("value", ["true", "text", "data", "count", "false"])
def test_a_summary_is_one_of_five(value: str) -> None:
    reading = read(("_summary", value))

    assert (reading.summary, problems(reading)) == (value, [])


def test_another_summary_is_refused() -> None:
    assert problems(read(("_summary", "yes"))) == [
        ("_summary", "must be true, text, data, count or false")
    ]


def test_elements_are_two_hundred_at_most() -> None:
    names = ",".join(["code"] * 200)

    assert read(("_elements", names)).elements == names
    assert problems(read(("_elements", names))) == []
    assert problems(read(("_elements", f"{names},code"))) == [
        ("_elements", "must not have more than 200 names")
    ]


@pytest.mark.parametrize(
    ("value", "order"),
    [
        ("_id", [Order("_id")]),
        ("-identifier", [Order("identifier", descending=True)]),
        ("_lastUpdated,-_id", [Order("_lastUpdated"), Order("_id", descending=True)]),
        ("_id,-_id", [Order("_id")]),
    ],
)
def test_an_order_is_by_what_every_resource_has(value: str, order: list[Order]) -> None:
    assert [*read(("_sort", value)).order] == order


def test_an_order_is_by_a_parameter_as_it_is_stored() -> None:
    known = INDEXER.parameters["date"]

    (first,) = read(("_sort", "-date")).order

    assert first == Order(known.stored, descending=True, kind=known.kind)


def test_orders_that_come_one_after_another_go_on() -> None:
    reading = read(("_sort", "-_lastUpdated"), ("_sort", "_id"), ("_sort", "_lastUpdated"))

    assert reading.order == (Order("_lastUpdated", descending=True), Order("_id"))


@pytest.mark.parametrize("value", ["nonsense", "_id,nonsense", "", ",", "--_id", "code-value"])
def test_an_order_by_something_else_is_not_known(value: str) -> None:
    reading = read(("_sort", value or ","))

    assert reading.order == NEWEST_FIRST
    assert reading.unknown == ["_sort"]


def test_a_name_that_is_not_known_leaves_the_others_out() -> None:
    reading = read(("_sort", "-_id,nonsense"), ("_sort", "_id"))

    assert reading.order == (Order("_id"),)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_count", "1"),
        ("_sort", "_id"),
        ("_total", "none"),
        ("_summary", "true"),
        ("_elements", "code"),
    ],
)
def test_they_have_no_modifiers(name: str, value: str) -> None:
    said = "does not support this modifier; it has none"

    assert problems(read((f"{name}:exact", value))) == [(name, said)]
    assert read((f"{name}.x", value)).unknown == [f"{name}.x"]
    assert read((name, value)).unknown == []


def test_a_refusal_is_one_of_parameters() -> None:
    (issue,) = read(("_total", "x")).issues

    assert issue.details is OperationProblem.PARAMETER_INVALID


def test_an_include_is_remembered_once() -> None:
    include = Include(source="Observation", parameter="encounter")
    reading = read(*[("_include", "Observation:encounter")] * 3)

    assert [*reading.included] == [include]
    assert problems(reading) == []


def test_an_include_may_iterate() -> None:
    reading = read(("_include:iterate", "Observation:encounter"))

    (include,) = reading.included
    assert (include.iterate, include.reverse) == (True, False)


def test_an_include_may_go_back() -> None:
    reading = read(("_revinclude", "Observation:encounter"))

    (include,) = reading.included
    assert (include.iterate, include.reverse) == (False, True)


@pytest.mark.parametrize("name", ["_include", "_revinclude"])
def test_another_modifier_of_an_include_is_refused(name: str) -> None:
    reading = read((f"{name}:recurse", "Observation:encounter"))

    said = "does not support this modifier; it has :iterate"
    assert problems(reading) == [(name, said)]
    assert reading.unknown == []
    assert reading.included == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_include", "nonsense"),
        ("_include.x", "Observation:encounter"),
        ("_include:iterate.x", "Observation:encounter"),
        ("_include:recurse.x", "Observation:encounter"),
        ("_revinclude", "*"),
    ],
)
def test_an_include_that_leads_nowhere_is_not_known(name: str, value: str) -> None:
    reading = read((name, value))

    assert (reading.unknown, reading.included) == ([name], {})


def test_twenty_includes_may_be_asked_for() -> None:
    includes = [("_include", f"Observation:encounter:T{number}") for number in range(21)]

    assert problems(read(*includes[:20])) == []
    assert problems(read(*includes)) == [("_include", "must not stand more than 20 times")]


def test_those_that_go_back_count_with_the_others() -> None:
    includes = [("_include", f"Observation:encounter:T{number}") for number in range(20)]
    back = ("_revinclude", "Observation:encounter")

    assert problems(read(*includes, back)) == [
        ("_revinclude", "must not stand more than 20 times")
    ]


@pytest.mark.parametrize("summary", ["true", "text", "data", "count"])
def test_elements_and_a_summary_are_refused(summary: str) -> None:
    reading = finished(("_elements", "code"), ("_summary", summary))

    assert problems(reading) == [("_summary", "cannot go with _elements")]


def test_elements_go_with_no_summary() -> None:
    assert problems(finished(("_elements", "code"), ("_summary", "false"))) == []
    assert problems(finished(("_elements", "code"))) == []
    assert problems(finished(("_summary", "true"))) == []


def test_a_summary_of_texts_includes_nothing() -> None:
    include = ("_include", "Observation:encounter")
    said = "cannot be text together with _include"

    assert problems(finished(include, ("_summary", "text"))) == [("_summary", said)]
    assert problems(finished(include, ("_summary", "true"))) == []
    assert problems(finished(("_summary", "text"))) == []


def test_nothing_is_looked_at_together_before_the_end() -> None:
    assert problems(read(("_elements", "code"), ("_summary", "true"))) == []


def test_the_modifiers_that_there_are_are_listed() -> None:
    reading = read()

    reading.refuse_modifiers(Asked("x:y", "x", "y", "", "1"), "above", "below")

    said = "does not support this modifier; it has :above, :below"
    assert problems(reading) == [("x", said)]


def test_an_include_that_is_known_is_among_what_is_understood() -> None:
    reading = read(("_include", "Observation:subject"))

    assert reading.unknown == []
    assert [*reading.included] == [Include(source="Observation", parameter="subject")]


def test_an_order_by_a_part_of_a_name_is_by_the_texts_of_that_part() -> None:
    member = replace(practitioner(referred_by="performer"), repeats=True)
    declared = replace(
        OBSERVATION,
        name="Practitioner",
        parts=(),
        create_statuses=frozenset(),
        search=(
            SearchParameter(name="name", type="string", paths=("name",)),
            SearchParameter(name="family", type="string", paths=("name.family",)),
        ),
    )
    reading = read(("_sort", "-family"), searched=indexer(declared, member=member))

    assert [*reading.order] == [Order("name", descending=True, kind="family")]


def test_an_include_may_go_back_from_what_is_included() -> None:
    reading = read(("_revinclude:iterate", "Observation:encounter"))

    (include,) = reading.included
    assert (include.iterate, include.reverse) == (True, True)
