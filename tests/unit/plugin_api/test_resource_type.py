"""Entries as rules look at them, and what a declaration is without its optional attributes."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.plugin_api import Entry, Part, ResourceType
from fhirpub.plugin_api.identifier import EXACTLY_ONE
from fhirpub.plugin_api.resource_type import no_events, no_rules

SUBJECT: dict[str, Any] = {"reference": "Patient/p"}
CODING: dict[str, Any] = {"system": "http://loinc.org", "code": "58410-2"}
PERIOD: dict[str, Any] = {"start": "2026-01-01", "end": "2026-02-01"}
REPORT: dict[str, Any] = {
    "resourceType": "DiagnosticReport",
    "id": "r1",
    "status": "final",
    "code": {"coding": [CODING]},
    "effectivePeriod": PERIOD,
    "subject": SUBJECT,
}


def entry() -> Entry:
    return Entry(REPORT, "Parameters.parameter[0].resource")


def part(name: str, *, repeats: bool = False) -> Part:
    return Part(
        name=name, type="Observation", referred_by="result", required=False, repeats=repeats
    )


def declared(*parts: Part, **changes: Any) -> ResourceType:
    return ResourceType(
        name="DiagnosticReport",
        parts=parts,
        create_statuses=frozenset({"final"}),
        update_statuses=frozenset({"final"}),
        **changes,
    )


# Entries


def test_an_entry_is_not_plain_until_it_is_known_to_be() -> None:
    assert entry().is_plain is False


def test_objects_about_which_there_are_rules_are_found_wherever_they_stand() -> None:
    assert [id(one) for one in entry().rule_targets] == [id(PERIOD), id(SUBJECT)]


def test_objects_that_identify_are_found_wherever_they_stand() -> None:
    assert [id(one) for one in entry().identified] == [id(REPORT), id(CODING)]


def test_references_are_the_objects_that_have_one() -> None:
    assert entry().references == [SUBJECT]


def test_a_reference_may_state_the_type_of_what_it_leads_to() -> None:
    typed = {"reference": "Patient/p", "type": "Patient", "display": "P"}
    named = {"display": "P"}

    found = Entry({"resourceType": "Flag", "subject": typed, "author": named}, "").references

    assert found == [typed]


def test_references_that_were_found_elsewhere_are_not_looked_for_again() -> None:
    known = entry()

    known.references = [{"reference": "Patient/other"}]

    assert known.references == [{"reference": "Patient/other"}]
    assert [id(one) for one in known.rule_targets] == [id(PERIOD), id(SUBJECT)]


def test_an_object_has_a_place_below_its_resource() -> None:
    known = entry()

    assert known.place_of(CODING) == "code.coding[0]"
    assert known.place_of(SUBJECT) == "subject"
    assert known.place_of(REPORT) == ""


def test_an_object_is_known_by_its_identity_and_not_by_its_value() -> None:
    assert entry().place_of(dict(CODING)) == ""


# Declarations


def test_a_type_conforms_to_the_base_profile_unless_it_names_another() -> None:
    other = "https://lab.example/StructureDefinition/report"

    assert declared().canonical == "http://hl7.org/fhir/StructureDefinition/DiagnosticReport"
    assert declared(profile=other).canonical == other


def test_parts_that_repeat_are_repeating_in_their_order() -> None:
    it = declared(part("a", repeats=True), part("b"), part("c", repeats=True))

    assert [one.name for one in it.repeating] == ["a", "c"]
    assert declared(part("b")).repeating == ()


@pytest.mark.parametrize(
    ("name", "entry_name"), [("DiagnosticReport", "diagnosticReport"), ("Flag", "flag")]
)
def test_the_entry_of_a_resource_is_named_by_its_type(name: str, entry_name: str) -> None:
    it = ResourceType(
        name=name, parts=(), create_statuses=frozenset(), update_statuses=frozenset()
    )

    assert it.entry_name == entry_name


def test_only_the_status_can_be_updated_unless_declared_otherwise() -> None:
    it = declared()

    assert it.updatable == {"status"}
    assert it.identifier is EXACTLY_ONE
    assert not it.attachments_required
    assert (it.attachments, it.times, it.codings, it.summary, it.search) == ((),) * 5
    assert (it.state_flow, it.problems, it.schemas, it.event_types) == ({}, {}, {}, ())


def test_a_part_is_required_once_and_left_out_of_events_unless_declared_otherwise() -> None:
    usual = Part(name="a", type="Patient", referred_by="subject")

    assert (usual.required, usual.repeats, usual.include_in_events) == (True, False, False)
    assert (usual.statuses, usual.patient, usual.acyclic) == (frozenset(), "", ())


def test_a_type_without_functions_has_no_rules_and_no_events() -> None:
    it = declared()

    assert (it.rules, it.events) == (no_rules, no_events)
    assert [*no_rules(entry(), None)] == []  # type: ignore[arg-type]  # it looks at neither
    assert [*no_events(None)] == []  # type: ignore[arg-type]
