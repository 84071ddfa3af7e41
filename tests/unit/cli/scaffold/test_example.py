"""Examples have the elements that R4 requires, each with the simplest value."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.cli.scaffold.example import EXAMPLE_PARTS, example_of
from tests.element_tables import tables


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("Procedure", {"status": "preparation", "subject": {"display": "example"}}),
        (
            "Immunization",
            {
                "status": "completed",
                "vaccineCode": {"text": "example"},
                "patient": {"display": "example"},
                "occurrenceDateTime": "2026-03-02T08:15:00Z",
            },
        ),
        ("HumanName", {"text": "example"}),
        ("Period", {"start": "2026-03-02T08:15:00Z"}),
        ("Identifier", {"value": "example"}),
        ("Attachment", {"url": "https://lab.example/fhir/example"}),
        ("Quantity", {"value": 1}),
        ("Ratio", {"numerator": {"value": 1}}),
        ("Range", {"low": {"value": 1}}),
        ("CodeableConcept", {"text": "example"}),
    ],
)
def test_an_example_has_only_what_is_required_or_the_first_that_describes(
    path: str, expected: Any
) -> None:
    assert example_of(path, tables()) == expected


def test_an_element_below_a_type_may_be_empty() -> None:
    assert example_of("Patient.communication", tables()) == {"language": {"text": "example"}}
    assert example_of("Patient.contact", tables()) == {}


def test_what_can_be_repeated_is_a_list() -> None:
    content = example_of("DocumentReference", tables())["content"]

    assert content == [{"attachment": {"url": "https://lab.example/fhir/example"}}]


def test_the_parts_are_a_patient_and_an_organization_with_identifiers() -> None:
    found = {
        name: (part["resourceType"], part["id"], len(part["identifier"]))
        for name, part in EXAMPLE_PARTS.items()
    }

    assert found == {"patient": ("Patient", "p1", 1), "organization": ("Organization", "o1", 1)}


def test_a_resource_may_have_no_element_at_all() -> None:
    assert example_of("Patient", tables()) == {}


def test_of_several_types_the_simplest_is_taken() -> None:
    assert example_of("Communication.payload", tables()) == {"contentString": "example"}


def test_a_simple_type_is_taken_before_others_that_come_first() -> None:
    example = example_of("Group.characteristic", tables())

    assert example["valueBoolean"] is True
    assert [name for name in example if name.startswith("value")] == ["valueBoolean"]


def test_an_element_that_is_like_another_has_its_required_elements() -> None:
    (adjudication,) = example_of("ClaimResponse.addItem", tables())["adjudication"]

    assert adjudication == {"category": {"text": "example"}}


def test_a_data_type_with_required_elements_has_only_those() -> None:
    assert list(example_of("RelatedArtifact", tables())) == ["type"]
