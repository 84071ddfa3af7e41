"""The names of search parameters that are not known, and which were meant."""

from __future__ import annotations

import pytest

from fhirpub.interactions.checks.search_names import (
    expression_of,
    hint_of,
    refuse_unknown,
    unused_empty,
    unused_unknown,
)
from tests.unit.interactions.reading import INDEXER


def no_hint(_name: str) -> str:
    return ""


def hint(name: str) -> str:
    return hint_of(INDEXER, name)


def test_an_empty_parameter_is_named_once() -> None:
    issues = [*unused_empty(["code", "code", "date:missing", "a b"])]

    assert [issue.diagnostics for issue in issues] == [
        "the search parameter code has no value and was not used",
        "the search parameter date:missing has no value and was not used",
        "the search parameter (unknown) has no value and was not used",
    ]
    assert {(issue.severity, issue.details) for issue in issues} == {
        ("warning", "parameter-empty")
    }


def test_an_unknown_parameter_is_named_once_with_its_hint() -> None:
    issues = [*unused_unknown(["cod", "cod", "\n"], lambda name: f"hint for {name}")]

    assert [issue.diagnostics for issue in issues] == [
        "the search parameter cod is not supported and was not used; hint for cod",
        "the search parameter (unknown) is not supported and was not used; hint for (unknown)",
    ]
    assert {(issue.severity, issue.details) for issue in issues} == {
        ("warning", "parameter-unknown")
    }


@pytest.mark.parametrize("name", ["_sort", "_include", "_revinclude"])
def test_a_parameter_that_names_something_is_known_itself(name: str) -> None:
    (unused,) = unused_unknown([name], no_hint)
    (refused,) = refuse_unknown([name], no_hint)

    assert unused.diagnostics == (
        f"what the search parameter {name} names is not supported and was not used"
    )
    assert refused.diagnostics == "names what is not supported"


def test_an_unknown_parameter_is_refused_where_each_must_be_known() -> None:
    issues = [*refuse_unknown(["cod:exact", "a b"], lambda name: f"hint for {name}")]

    assert [(one.severity, one.expression, one.diagnostics) for one in issues] == [
        ("error", "cod", "cannot be searched by; hint for cod:exact"),
        ("error", "", "cannot be searched by; hint for a b"),
    ]


@pytest.mark.parametrize(("number", "is_hinted"), [(9, True), (10, False)])
def test_only_the_first_names_get_a_hint(number: int, *, is_hinted: bool) -> None:
    names = [f"x{one}" for one in range(number + 1)]

    *_first, last = refuse_unknown(names, lambda _name: "hint")

    assert last.diagnostics.endswith("; hint") is is_hinted


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("code", "code"),
        ("code:exact", "code"),
        ("_id", "_id"),
        ("patient.identifier", "patient.identifier"),
        ("1code", ""),
        ("co de", ""),
        ("", ""),
        ("x" * 64, "x" * 64),
        ("x" * 65, ""),
    ],
)
def test_a_name_is_shown_if_it_can_be_one(name: str, shown: str) -> None:
    assert expression_of(name) == shown


# Hints


def test_what_can_be_sorted_by_is_listed() -> None:
    listed = hint("_sort").removeprefix("what can be sorted by: ").split(", ")

    assert listed[:3] == ["_id", "identifier", "_lastUpdated"]
    assert "date" in listed
    assert {"encounter", "subject", "patient", "code-value", "combo"}.isdisjoint(listed)
    assert len(listed) == len({*listed})


def test_what_can_be_included_is_listed_with_its_type() -> None:
    listed = hint("_include").removeprefix("what can be included: ").split(", ")

    assert {*listed} == {"Observation:encounter", "Observation:subject", "Observation:patient"}


def test_what_refers_is_described() -> None:
    assert hint("_revinclude").startswith("what refers is named by its type, a colon,")


@pytest.mark.parametrize("name", ["patient.name", "subject.identifier.value"])
def test_of_what_is_referred_to_only_the_identifier_is_searched(name: str) -> None:
    base = name.partition(".")[0]

    assert hint(name) == (
        f"of what {base} refers to, the identifier can be searched: {base}.identifier"
    )


@pytest.mark.parametrize("name", ["code:above", "date:exact", "_id:missing", "encounter.name"])
def test_what_is_known_is_not_known_with_what_follows(name: str) -> None:
    base = name.partition(":")[0].partition(".")[0]

    assert hint(name) == f"{base} is known, but not with what follows it"


@pytest.mark.parametrize(
    "name",
    [
        "_id",
        "identifier",
        "_lastUpdated",
        "_sort",
        "_include",
        "_revinclude",
        "_count",
        "_elements",
        "_format",
        "_summary",
        "_total",
    ],
)
def test_what_each_type_is_searched_with_is_known_and_suggested(name: str) -> None:
    assert hint(f"{name}:x") == f"{name} is known, but not with what follows it"
    assert hint(name[:-1]) == f"did you mean {name}?"


def test_a_name_that_is_nearly_right_is_suggested() -> None:
    assert hint("cod") == "did you mean code?"
    assert hint("_lastupdated") == "did you mean _lastUpdated?"


def test_of_any_other_name_nothing_is_known() -> None:
    assert hint("zzzzzzzz") == "the CapabilityStatement lists those of Observation"
    assert hint("zzzzzzzz.name") == "the CapabilityStatement lists those of Observation"


@pytest.mark.parametrize("name", ["subject:x", "subject:Patient"])
def test_a_reference_with_something_else_behind_it_is_known_itself(name: str) -> None:
    assert hint(name) == "subject is known, but not with what follows it"


def test_behind_a_reference_the_identifier_is_suggested() -> None:
    assert hint("subject.name") == (
        "of what subject refers to, the identifier can be searched: subject.identifier"
    )
