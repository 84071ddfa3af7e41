"""What ``_include`` and ``_revinclude`` can name."""

from __future__ import annotations

import pytest

from fhirpub.interactions.parameters import SearchIndexer
from fhirpub.interactions.search.includes import Include, parse_include
from fhirpub.plugin_api import ResourceType, SearchParameter, patient
from tests.indexers import indexer


def referring(type_name: str, **references: str) -> SearchIndexer:
    declared = ResourceType(
        name=type_name,
        parts=(patient(referred_by="subject"),),
        create_statuses=frozenset({"final"}),
        update_statuses=frozenset({"final"}),
        search=(
            SearchParameter(name="code", type="token", paths=("code",)),
            *(
                SearchParameter(name=name, type="reference", paths=(path,))
                for name, path in references.items()
            ),
        ),
    )
    return indexer(declared)


TYPES = {
    "DiagnosticReport": referring("DiagnosticReport", result="result", subject="subject"),
    "Observation": referring("Observation", specimen="specimen"),
}


@pytest.mark.parametrize(
    ("value", "include"),
    [
        ("*", Include()),
        ("DiagnosticReport:*", Include(source="DiagnosticReport")),
        ("DiagnosticReport:result", Include(source="DiagnosticReport", parameter="result")),
        (
            "DiagnosticReport:result:Observation",
            Include(source="DiagnosticReport", parameter="result", target="Observation"),
        ),
        ("DiagnosticReport:code", None),
        ("DiagnosticReport:other", None),
        ("DiagnosticReport", None),
        ("Observation:specimen", None),
        ("Encounter:subject", None),
        ("", None),
    ],
)
def test_an_include_names_references_of_the_type_that_is_searched(
    value: str, include: Include | None
) -> None:
    assert parse_include(value, "DiagnosticReport", TYPES) == include


def test_with_iterate_it_may_be_any_type() -> None:
    found = parse_include("Observation:specimen", "DiagnosticReport", TYPES, iterate=True)

    assert found == Include(source="Observation", parameter="specimen", iterate=True)


@pytest.mark.parametrize(
    ("value", "is_known"),
    [
        ("DiagnosticReport:result", True),
        ("Observation:specimen", True),
        ("DiagnosticReport:*", False),
        ("*", False),
        ("DiagnosticReport:code", False),
    ],
)
def test_a_reverse_include_names_one_parameter_of_any_type(value: str, *, is_known: bool) -> None:
    found = parse_include(value, "Observation", TYPES, reverse=True)

    assert (found is not None) is is_known


@pytest.mark.parametrize(
    ("include", "names"),
    [
        (Include(), {("subject", "Patient"), ("result", "")}),
        (Include(parameter="patient"), {("subject", "Patient")}),
        (Include(parameter="patient", target="Group"), set()),
        (Include(parameter="subject", target="Group"), {("subject", "Group")}),
        (Include(source="Observation"), set()),
    ],
)
def test_references_are_those_of_the_parameters_with_their_target(
    include: Include, names: set[tuple[str, str]]
) -> None:
    found = set(include.references_of(TYPES["DiagnosticReport"]))

    assert names <= found
    assert bool(names) is bool(found)
