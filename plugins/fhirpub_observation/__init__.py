"""Adds Observation to the service, with the events ``observation.*``."""

from __future__ import annotations

from collections.abc import Sequence

from fhirpub.plugin_api import (
    CompositionEvents,
    ResourceType,
    hookimpl,
    organization,
    patient,
    practitioner,
)
from fhirpub_observation.search import USUAL, VALUES

_STATUSES = frozenset(
    "registered preliminary final amended corrected cancelled entered-in-error unknown".split()
)

OBSERVATION = ResourceType(
    name="Observation",
    parts=(
        patient(referred_by="subject"),
        organization(referred_by="", required=False),
        practitioner(referred_by="performer"),
    ),
    create_statuses=_STATUSES - {"entered-in-error"},
    update_statuses=_STATUSES,
    updatable=frozenset(
        "status value[x] dataAbsentReason interpretation component issued note".split()
    ),
    times=(
        "effectiveDateTime",
        "effectiveInstant",
        "effectivePeriod.start",
        "effectivePeriod.end",
        "issued",
    ),
    codings=("category", "code", "dataAbsentReason", "interpretation", "component.code"),
    summary=("category", "code", "subject", "effective[x]", "issued", "performer"),
    events=CompositionEvents(
        "observation", elements=("category", "code", "effective[x]", "issued")
    ),
    search=(*USUAL, *VALUES),
    example={
        "resourceType": "Observation",
        "identifier": [{"system": "https://north-quay.example/observations", "value": "O-9005"}],
        "status": "final",
        "category": [
            {
                "coding": [
                    {
                        "system": "http://terminology.hl7.org/CodeSystem/observation-category",
                        "code": "vital-signs",
                    }
                ]
            }
        ],
        "code": {
            "text": "Body weight",
            "coding": [{"system": "http://loinc.org", "code": "29463-7"}],
        },
        "subject": {"reference": "Patient/patient-1"},
        "effectiveDateTime": "2026-03-02T14:05:00Z",
        "performer": [
            {"reference": "Practitioner/practitioner-1"},
            {"reference": "Organization/organization-1"},
        ],
        "valueQuantity": {
            "value": 71.5,
            "unit": "kg",
            "system": "http://unitsofmeasure.org",
            "code": "kg",
        },
    },
)


@hookimpl
def fhirpub_resource_types() -> Sequence[ResourceType]:
    """Add Observation."""
    return [OBSERVATION]
