"""Adds Specimen to the service: material that is registered before any report of it."""

from __future__ import annotations

from collections.abc import Sequence

from fhirpub.plugin_api import (
    CompositionEvents,
    IdentifierRule,
    ResourceType,
    ValueForm,
    hookimpl,
    patient,
    r4_parameter,
)

_STATUSES = frozenset("available unavailable unsatisfactory entered-in-error".split())

SPECIMEN = ResourceType(
    name="Specimen",
    parts=(patient(referred_by="subject"),),
    create_statuses=_STATUSES - {"entered-in-error"},
    update_statuses=_STATUSES,
    updatable=frozenset("status receivedTime condition note".split()),
    # What is on the label is typed and scanned: blanks and case make no other specimen.
    identifier=IdentifierRule(
        elements=("accessionIdentifier", "identifier", "container.identifier"),
        most=20,
        forms=(ValueForm(blanks="remove", case="upper"),),
    ),
    times=(
        "receivedTime",
        "collection.collectedDateTime",
        "collection.collectedPeriod.start",
        "collection.collectedPeriod.end",
    ),
    codings=("type", "condition"),
    summary=("type", "subject", "receivedTime", "collection"),
    events=CompositionEvents("specimen", elements=("type", "receivedTime")),
    search=(
        r4_parameter("Specimen-type", "token", "type"),
        r4_parameter("Specimen-accession", "token", "accessionIdentifier"),
        r4_parameter("Specimen-container-id", "token", "container.identifier"),
        r4_parameter(
            "Specimen-collected",
            "date",
            "collection.collectedDateTime",
            "collection.collectedPeriod",
        ),
        r4_parameter("Specimen-subject", "reference", "subject"),
        r4_parameter("Specimen-parent", "reference", "parent"),
    ),
    example={
        "resourceType": "Specimen",
        "accessionIdentifier": {
            "system": "https://north-quay.example/specimens",
            "value": "2026-000417",
        },
        "status": "available",
        "type": {"text": "Venous blood"},
        "subject": {"reference": "Patient/patient-1"},
        "receivedTime": "2026-03-02T08:40:00Z",
        "collection": {"collectedDateTime": "2026-03-02T08:15:00Z"},
        "container": [
            {"identifier": [{"system": "https://north-quay.example/tubes", "value": "T-90417"}]}
        ],
    },
)


@hookimpl
def fhirpub_resource_types() -> Sequence[ResourceType]:
    """Add Specimen."""
    return [SPECIMEN]
