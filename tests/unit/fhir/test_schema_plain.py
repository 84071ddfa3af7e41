"""What a plain schema accepts is valid, and breaks none of the rules that are not asked then."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from fhirpub.errors import Issue
from fhirpub.fhir.elements import objects_in
from fhirpub.fhir.identity import identity_problems, repeated_element_ids
from fhirpub.fhir.invariants import broken_invariants, mistyped_references, repeated_ids
from fhirpub.fhir.schema import Schemas, own_schemas
from fhirpub.interactions.checks.unusual_elements import about_unusual_elements
from fhirpub.plugin_api import Entry
from tests.strategies import RESOURCE_TYPES, resource_of
from tests.unit.fhir.test_schema_parity import mutated, relaxed

SCHEMAS = own_schemas()
EXTENSION = {"url": "https://lab.example/x", "valueString": "x"}
ADDITIONS: list[tuple[str, Any]] = [
    ("_status", {"extension": [EXTENSION]}),
    ("contained", [{"resourceType": "Patient", "id": "p"}]),
    ("data", "AAAA"),
    ("div", "<div xmlns='http://www.w3.org/1999/xhtml'>x</div>"),
    ("end", "2020-01-01"),
    ("extension", [EXTENSION]),
    ("extension", [{"url": "x"}]),
    ("id", "same"),
    ("implicitRules", "https://lab.example/rules"),
    ("modifierExtension", [EXTENSION]),
    ("profile", ["https://lab.example/profile"]),
    ("profile", ["#profile"]),
    ("profile", ["profile"]),
    ("profile", "profile"),
    ("reference", "#p"),
    ("reference", "Patient/p"),
    ("reference", "https://lab.example/Patient/p"),
    ("reference", "patient"),
    ("reference", "urn:uuid:x"),
    ("reference", "Patient/p "),
    ("low", {"value": 2}),
    ("high", {"value": 1}),
    ("valueRange", {"low": {"value": 2}, "high": {"value": 1}}),
    ("start", "2021-01-01"),
    ("system", "HTTPS://lab.example"),
    ("system", "https://lab.example"),
    ("system", "phone"),
    ("system", "urn:ietf:rfc:3986"),
    ("system", "urn:oid:x"),
    ("text", {"status": "generated", "div": "x"}),
    ("type", "Organization"),
    ("value", "x"),
]
PLAIN = {"reference": "Patient/p", "system": "http://unitsofmeasure.org"}
REPORT: dict[str, Any] = {
    "resourceType": "DiagnosticReport",
    "id": "r1",
    "meta": {"profile": ["https://lab.example/profile"]},
    "identifier": [{"system": "https://lab.example", "value": "1", "period": {"start": "2020"}}],
    "status": "final",
    "code": {"coding": [{"system": "http://loinc.org", "code": "1"}], "text": "x"},
    "subject": {"reference": "Patient/p", "display": "x"},
    "performer": [{"reference": "https://lab.example/Organization/1"}],
    "presentedForm": [{"contentType": "application/pdf", "data": "AAAA"}],
}
UNUSUAL: dict[str, tuple[str, ...]] = {
    "a sibling": ("_status",),
    "an extension": ("subject", "extension"),
    "an extension of a sibling": ("subject", "_display"),
    "a modifier": ("modifierExtension",),
    "implicit rules": ("implicitRules",),
    "a contained resource": ("contained",),
    "a narrative": ("text",),
    "an id of an element": ("code", "id"),
    "a type of a reference": ("subject", "type"),
    "a local reference": ("subject", "reference"),
    "the end of a period": ("effectivePeriod",),
    "a system that is no web address": ("code", "coding"),
    "a profile that is no web address": ("meta",),
    "data without a type": ("presentedForm",),
}
VALUES: dict[tuple[str, ...], Any] = {
    ("_status",): {"extension": [EXTENSION]},
    ("subject", "extension"): [EXTENSION],
    ("subject", "_display"): {"extension": [EXTENSION]},
    ("modifierExtension",): [EXTENSION],
    ("implicitRules",): "https://lab.example/rules",
    ("contained",): [{"resourceType": "Patient", "id": "p"}],
    ("text",): {
        "status": "additional",
        "div": "<div xmlns='http://www.w3.org/1999/xhtml'>x</div>",
    },
    ("code", "id"): "same",
    ("subject", "type"): "Organization",
    ("subject", "reference"): "#p",
    ("effectivePeriod",): {"start": "2021", "end": "2020"},
    ("code", "coding"): [{"system": "urn:oid:x", "code": "1"}],
    ("meta",): {"profile": ["profile"]},
    ("presentedForm",): [{"data": "AAAA"}],
}


def problems(resource: dict[str, Any]) -> Iterator[Issue]:
    """Yield what the rules find that are not asked of a plain resource."""
    entry = Entry(resource, resource["resourceType"])
    yield from SCHEMAS.explain(resource["resourceType"], resource)
    yield from broken_invariants(resource, entry.rule_targets, entry.place_of, ())
    yield from repeated_ids(resource)
    yield from identity_problems(entry.identified, entry.rule_targets, entry.place_of)
    yield from repeated_element_ids(resource, entry.identified, entry.place_of)
    yield from mistyped_references(entry.rule_targets, entry.place_of, {})
    yield from chain.from_iterable(about_unusual_elements(entry))


def plain_part(value: Any, *, root: bool = True) -> Any:
    """Return a value without most of what is unusual."""
    if isinstance(value, list):
        return [plain_part(one, root=root) for one in value]
    if not isinstance(value, dict):
        return value
    unusual = {"extension", "modifierExtension", "contained", "implicitRules", "end", "type"}
    unusual |= {"high", "instantiatesCanonical"}
    unusual -= {"type"} if root or not isinstance(value.get("type"), str) else set()
    return {
        name: PLAIN[name] if name in PLAIN and isinstance(member, str) else plain_member
        for name, member in value.items()
        if name[:1] != "_" and name not in unusual and (root or name != "id")
        if not (isinstance(member, dict) and "div" in member)
        if (plain_member := plain_part(member, root=False)) or isinstance(member, bool | int)
    }


@st.composite
def nearly_plain(draw: st.DrawFn, type_name: str) -> list[dict[str, Any]]:
    """Create a resource that may be plain, and others with one addition."""
    plain = plain_part(draw(resource_of(type_name)))
    found = [plain]
    for _ in range(6):
        mutant = copy.deepcopy(plain)
        objects = objects_in(mutant)
        name, value = draw(st.sampled_from(ADDITIONS))
        objects[draw(st.integers(0, len(objects) - 1))][name] = copy.deepcopy(value)
        found.append(mutant)
    return found


@pytest.mark.parametrize("type_name", RESOURCE_TYPES)
def test_a_plain_resource_breaks_no_rule_that_is_not_asked(type_name: str) -> None:
    @relaxed
    @given(st.one_of(nearly_plain(type_name), mutated(type_name)))
    def nothing_is_wrong(resources: list[dict[str, Any]]) -> None:
        for resource in resources:
            if SCHEMAS.plain.accepts(type_name, resource):
                assert [*problems(resource)] == []
                found = [*map(id, SCHEMAS.plain.references_in(resource))]
                assert len({*found}) == len(found)
                assert {*found} == {id(o) for o in objects_in(resource) if "reference" in o}

    nothing_is_wrong()


@pytest.mark.parametrize("type_name", RESOURCE_TYPES)
def test_the_resources_that_are_tried_include_plain_ones(type_name: str) -> None:
    find(
        nearly_plain(type_name),
        lambda found: SCHEMAS.plain.accepts(type_name, found[0]),
        settings=settings(relaxed, max_examples=2_000, phases=[Phase.generate]),
    )


def test_a_usual_report_is_plain() -> None:
    assert SCHEMAS.plain.accepts("DiagnosticReport", REPORT)


@pytest.mark.parametrize("place", UNUSUAL.values(), ids=UNUSUAL)
def test_what_rules_look_at_is_not_plain(place: tuple[str, ...]) -> None:
    report = copy.deepcopy(REPORT)
    holder = report
    for name in place[:-1]:
        holder = holder[name]
    holder[place[-1]] = VALUES[place]
    assert not SCHEMAS.plain.accepts("DiagnosticReport", report)


def test_a_range_with_a_high_and_a_canonical_are_not_plain() -> None:
    observation = {"resourceType": "Observation", "status": "final", "code": {"text": "x"}}
    limits = {"low": {"value": 1}, "high": {"value": 2}}
    request: dict[str, Any] = {
        "resourceType": "ServiceRequest",
        "status": "active",
        "intent": "order",
        "subject": {"reference": "Patient/p"},
    }

    assert SCHEMAS.plain.accepts("Observation", {**observation, "referenceRange": [limits]})
    assert not SCHEMAS.plain.accepts("Observation", {**observation, "valueRange": limits})
    assert SCHEMAS.plain.accepts("ServiceRequest", request)
    defined = {**request, "instantiatesCanonical": ["https://lab.example/plan"]}
    assert not SCHEMAS.plain.accepts("ServiceRequest", defined)


def test_a_type_with_a_schema_of_a_plugin_is_never_plain() -> None:
    document = {
        "type": "object",
        "required": ["resourceType"],
        "properties": {"resourceType": {"const": "Immunization"}},
    }
    schemas = Schemas({"Immunization": document})
    assert schemas.accepts("Immunization", {"resourceType": "Immunization"})
    assert not schemas.plain.accepts("Immunization", {"resourceType": "Immunization"})
