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
    r4_composite,
    r4_parameter,
)

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
    search=(
        r4_parameter("Observation-category", "token", "category"),
        r4_parameter("clinical-code", "token", "code"),
        r4_parameter(
            "clinical-date",
            "date",
            "effectiveDateTime",
            "effectiveInstant",
            "effectivePeriod",
            "effectiveTiming",
        ),
        r4_parameter("Observation-subject", "reference", "subject"),
        r4_parameter("Observation-performer", "reference", "performer"),
        r4_parameter("Observation-value-concept", "token", "valueCodeableConcept"),
        r4_parameter("Observation-value-date", "date", "valueDateTime", "valuePeriod"),
        r4_parameter("Observation-value-quantity", "quantity", "valueQuantity"),
        r4_parameter(
            "Observation-value-string", "string", "valueString", "valueCodeableConcept.text"
        ),
        r4_composite("Observation-code-value-concept", "code", "value-concept"),
        r4_composite("Observation-code-value-date", "code", "value-date"),
        r4_composite("Observation-code-value-quantity", "code", "value-quantity"),
        r4_composite("Observation-code-value-string", "code", "value-string"),
        r4_parameter("Observation-component-code", "token", "component.code"),
        r4_parameter(
            "Observation-component-value-concept", "token", "component.valueCodeableConcept"
        ),
        r4_parameter(
            "Observation-component-value-quantity", "quantity", "component.valueQuantity"
        ),
        r4_composite(
            "Observation-component-code-value-concept", "component-code", "component-value-concept"
        ),
        r4_composite(
            "Observation-component-code-value-quantity",
            "component-code",
            "component-value-quantity",
        ),
        r4_parameter("Observation-combo-code", "token", "code", "component.code"),
        r4_parameter(
            "Observation-combo-value-concept",
            "token",
            "valueCodeableConcept",
            "component.valueCodeableConcept",
        ),
        r4_parameter(
            "Observation-combo-value-quantity",
            "quantity",
            "valueQuantity",
            "component.valueQuantity",
        ),
        r4_composite("Observation-combo-code-value-concept", "combo-code", "combo-value-concept"),
        r4_composite(
            "Observation-combo-code-value-quantity", "combo-code", "combo-value-quantity"
        ),
    ),
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
