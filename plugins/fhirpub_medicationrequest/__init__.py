"""Adds MedicationRequest to the service, with the events ``medication_request.*``."""

from __future__ import annotations

from collections.abc import Sequence

from fhirpub.plugin_api import (
    CompositionEvents,
    ResourceType,
    hookimpl,
    organization,
    patient,
    practitioner,
    r4_parameter,
)

_STATUSES = frozenset(
    "active on-hold cancelled completed entered-in-error stopped draft unknown".split()
)

MEDICATION_REQUEST = ResourceType(
    name="MedicationRequest",
    parts=(
        patient(referred_by="subject"),
        organization(referred_by="", required=False),
        practitioner(referred_by="requester"),
    ),
    create_statuses=_STATUSES - {"entered-in-error"},
    update_statuses=_STATUSES,
    updatable=frozenset("status statusReason note".split()),
    times=("authoredOn",),
    codings=("category", "medicationCodeableConcept", "reasonCode", "statusReason"),
    summary=(
        "intent",
        "category",
        "priority",
        "doNotPerform",
        "medication[x]",
        "subject",
        "authoredOn",
        "requester",
        "performer",
    ),
    events=CompositionEvents(
        "medication_request",
        elements=("intent", "priority", "doNotPerform", "medication[x]", "authoredOn"),
    ),
    search=(
        r4_parameter("MedicationRequest-intent", "token", "intent"),
        r4_parameter("MedicationRequest-category", "token", "category"),
        r4_parameter("clinical-code", "token", "medicationCodeableConcept"),
        r4_parameter("MedicationRequest-authoredon", "date", "authoredOn"),
        r4_parameter("MedicationRequest-subject", "reference", "subject"),
        r4_parameter("MedicationRequest-requester", "reference", "requester"),
    ),
    example={
        "resourceType": "MedicationRequest",
        "identifier": [{"system": "https://north-quay.example/prescriptions", "value": "P-7002"}],
        "status": "active",
        "intent": "order",
        "medicationCodeableConcept": {"text": "Losartan 50 mg tablet"},
        "subject": {"reference": "Patient/patient-1"},
        "authoredOn": "2026-03-02T14:15:00Z",
        "requester": {"reference": "Practitioner/practitioner-1"},
        "dosageInstruction": [
            {
                "text": "One tablet every morning",
                "timing": {"repeat": {"frequency": 1, "period": 1, "periodUnit": "d"}},
            }
        ],
    },
)


@hookimpl
def fhirpub_resource_types() -> Sequence[ResourceType]:
    """Add MedicationRequest."""
    return [MEDICATION_REQUEST]
