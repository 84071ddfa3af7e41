"""What a new plugin declares of its type is what the tables of R4 say of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fhirpub.cli.scaffold.example import EXAMPLE_PARTS
from fhirpub.cli.scaffold.plan import Blueprint, Role
from fhirpub.errors import PluginError
from tests.unit.cli.scaffold.plans import planned


def example_in(plan: Blueprint) -> dict[str, Any]:
    found: dict[str, Any] = plan.body["parameter"][-1]["resource"]
    return found


@pytest.mark.parametrize(
    ("type_name", "roles"),
    [
        ("Procedure", (Role("patient", "subject", required=True),)),
        (
            "DocumentManifest",
            (
                Role("patient", "subject", required=False),
                Role("organization", "author", required=False),
            ),
        ),
        (
            "DocumentReference",  # it has an author as well
            (
                Role("patient", "subject", required=False),
                Role("organization", "custodian", required=False),
            ),
        ),
        ("Coverage", (Role("patient", "beneficiary", required=True),)),
        ("Task", (Role("organization", "requester", required=False),)),
        ("Immunization", (Role("patient", "patient", required=True),)),
    ],
)
def test_parts_are_what_a_type_refers_to_first(type_name: str, roles: tuple[Role, ...]) -> None:
    assert planned(type_name).roles == roles


def test_statuses_are_those_of_the_type_in_their_order() -> None:
    plan = planned("Coverage")

    assert plan.statuses == ("active", "cancelled", "draft", "entered-in-error")
    assert plan.create_statuses == ("active", "cancelled", "draft")


def test_times_are_moments_and_both_ends_of_periods() -> None:
    assert planned("Media").times == (
        "createdDateTime",
        "issued",
        "createdPeriod.start",
        "createdPeriod.end",
    )


@pytest.mark.parametrize(
    ("type_name", "attachments"),
    [("DocumentReference", ("content.attachment",)), ("Media", ("content",)), ("Task", ())],
)
def test_documents_are_attachments_also_one_level_below(
    type_name: str, attachments: tuple[str, ...]
) -> None:
    assert planned(type_name).attachments == attachments


def test_codings_are_the_elements_with_codes_of_any_system() -> None:
    assert planned("Coverage").codings == ("type", "relationship")


def test_a_summary_has_what_every_resource_has_no_second_time() -> None:
    assert planned("Communication").summary == (
        *("instantiatesCanonical", "instantiatesUri", "basedOn", "partOf", "statusReason"),
        *("priority", "subject", "encounter", "reasonCode", "reasonReference"),
    )


@pytest.mark.parametrize(
    ("type_name", "elements"),
    [
        ("DocumentReference", ("masterIdentifier", "identifier")),
        ("Specimen", ("accessionIdentifier", "identifier")),
        ("Procedure", ()),
    ],
)
def test_an_identifier_of_its_own_is_the_key_before_the_others(
    type_name: str, elements: tuple[str, ...]
) -> None:
    assert planned(type_name).identified_by == elements


@pytest.mark.parametrize(("type_name", "has_list"), [("Procedure", True), ("Composition", False)])
def test_an_identifier_that_cannot_be_repeated_is_no_list(
    type_name: str, *, has_list: bool
) -> None:
    plan = planned(type_name)

    identifier = example_in(plan)["identifier"]
    one = {"system": f"https://lab.example/{type_name.lower()}", "value": "1001"}
    assert plan.has_list is has_list
    assert identifier == ([one] if has_list else one)


@pytest.mark.parametrize(
    ("type_name", "status"),
    [("Procedure", "completed"), ("Composition", "final"), ("DocumentManifest", "current")],
)
def test_an_example_is_finished_if_its_type_has_a_word_for_it(type_name: str, status: str) -> None:
    assert example_in(planned(type_name))["status"] == status


def test_an_example_refers_to_the_parts_that_come_with_it() -> None:
    plan = planned("DocumentManifest")

    names = [entry["name"] for entry in plan.body["parameter"]]
    patient, organization, _ = (entry["resource"] for entry in plan.body["parameter"])
    example = example_in(plan)
    assert plan.body["resourceType"] == "Parameters"
    assert names == ["patient", "organization", "documentManifest"]
    assert (patient, organization) == (EXAMPLE_PARTS["patient"], EXAMPLE_PARTS["organization"])
    assert example["resourceType"] == "DocumentManifest"
    assert example["subject"] == {"reference": "Patient/p1"}
    assert example["author"] == [{"reference": "Organization/o1"}]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (lambda plan: plan.plugin, "documentmanifest"),
        (lambda plan: plan.package, "fhirpub_documentmanifest"),
        (lambda plan: plan.distribution, "fhirpub-documentmanifest"),
        (lambda plan: plan.constant, "DOCUMENT_MANIFEST"),
        (lambda plan: plan.composition, "document_manifest"),
    ],
    ids=["plugin", "package", "distribution", "constant", "composition"],
)
def test_names_are_made_of_that_of_the_type(
    name: Callable[[Blueprint], str], expected: str
) -> None:
    assert name(planned("DocumentManifest")) == expected


@pytest.mark.parametrize(
    ("type_name", "words"),
    [
        ("Immunisation", "FHIR R4 has no resource type Immunisation; did you mean Immunization?"),
        ("Zzzzzz", "FHIR R4 has no resource type Zzzzzz"),
        (
            "Provenance",
            (
                "Provenance cannot be registered: it has no identifier; declare it by hand, with "
                "a function as its key"
            ),
        ),
        (
            "Patient",
            (
                "Patient cannot be registered: it has no status of type code, which "
                "registrations set and updates change"
            ),
        ),
    ],
)
def test_what_cannot_be_registered_is_refused_with_the_reason(type_name: str, words: str) -> None:
    with pytest.raises(PluginError) as refusal:
        planned(type_name)

    assert str(refusal.value) == words
