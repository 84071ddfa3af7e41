"""What a CapabilityStatement declares of the search for AuditEvents, and what a hint advises."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.audit.parameters import PARAMETERS, capability, declared, hint_of
from fhirpub.audit.search import read_parameters
from tests.unit.audit.test_search import TERMS

VALUES = {
    "_id": "0123456789ab-1-0",
    "_lastUpdated": "2027-01-15",
    "date": "2027-01-15",
    "action": "R",
    "agent": "c",
    "entity": "DiagnosticReport/a",
    "outcome": "0",
    "patient": "1",
    "subtype": "read",
}
TYPES = {
    "_id": "token",
    "_lastUpdated": "date",
    "action": "token",
    "agent": "reference",
    "date": "date",
    "entity": "reference",
    "outcome": "token",
    "patient": "reference",
    "subtype": "token",
}


@pytest.mark.parametrize("name", [one.name for one in PARAMETERS])
def test_every_declared_parameter_is_understood(name: str) -> None:
    search = read_parameters([(name, VALUES[name])], replace(TERMS))

    assert search.understood == [(name, VALUES[name])]
    assert search.issues == []


def test_each_parameter_is_declared_with_its_type() -> None:
    assert {one["name"]: one["type"] for one in declared()} == TYPES


def test_each_parameter_is_declared_with_the_definition_of_fhir() -> None:
    defined = {one["name"]: one["definition"] for one in declared()}

    for name in TYPES:
        base = f"Resource-{name[1:]}" if name.startswith("_") else f"AuditEvent-{name}"
        assert defined[name] == f"http://hl7.org/fhir/SearchParameter/{base}"


def test_each_parameter_is_explained() -> None:
    assert all(one["documentation"] == known.documentation != "" for one, known in zip(
        declared(), PARAMETERS, strict=True
    ))  # fmt: skip


def test_events_can_be_read_and_searched_and_nothing_else() -> None:
    found = capability()

    assert found["type"] == "AuditEvent"
    assert found["profile"] == "http://hl7.org/fhir/StructureDefinition/AuditEvent"
    assert found["interaction"] == [{"code": "read"}, {"code": "search-type"}]
    assert found["versioning"] == "versioned"
    assert found["conditionalRead"] == "full-support"
    assert found["searchParam"] == declared()
    assert "system/AuditEvent.rs" in found["documentation"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("_sort", "what can be sorted by: -date and -_lastUpdated, the order that there is"),
        ("_total", "the events of an audit trail are not counted: only none is known"),
        ("agent:not", "agent is known, but not with what follows it"),
        ("patient.name", "patient is known, but not with what follows it"),
        ("_count:x", "_count is known, but not with what follows it"),
        ("zzzzzzzz", "the CapabilityStatement lists those of AuditEvent"),
    ],
)
def test_a_name_that_is_not_known_gets_advice(name: str, hint: str) -> None:
    assert hint_of(name) == hint


def test_a_misspelt_name_gets_the_one_that_was_meant() -> None:
    assert "patient" in hint_of("pateint")
    assert "_summary" in hint_of("_sumary")


@pytest.mark.parametrize(
    "name", ["_count", "_elements", "_format", "_pretty", "_summary", "date", "patient"]
)
def test_a_known_name_with_something_behind_it_is_named_as_known(name: str) -> None:
    assert hint_of(f"{name}:exact") == f"{name} is known, but not with what follows it"
