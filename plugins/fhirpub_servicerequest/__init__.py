"""Adds ServiceRequest to the service, with the events ``service_request.*``."""

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

_STATUSES = frozenset("draft active on-hold revoked completed entered-in-error unknown".split())

SERVICE_REQUEST = ResourceType(
    name="ServiceRequest",
    parts=(
        patient(referred_by="subject"),
        organization(referred_by="", required=False),
        practitioner(referred_by="requester"),
    ),
    create_statuses=_STATUSES - {"entered-in-error"},
    update_statuses=_STATUSES,
    updatable=frozenset("status priority occurrence[x] patientInstruction note".split()),
    times=("authoredOn", "occurrenceDateTime", "occurrencePeriod.start", "occurrencePeriod.end"),
    codings=("category", "code", "orderDetail", "reasonCode"),
    summary=(
        "intent",
        "category",
        "priority",
        "doNotPerform",
        "code",
        "subject",
        "occurrence[x]",
        "authoredOn",
        "requester",
        "performer",
    ),
    events=CompositionEvents(
        "service_request",
        elements=("intent", "priority", "doNotPerform", "category", "code", "authoredOn"),
    ),
    search=(
        r4_parameter("ServiceRequest-instantiates-uri", "uri", "instantiatesUri"),
        r4_parameter("ServiceRequest-intent", "token", "intent"),
        r4_parameter("ServiceRequest-priority", "token", "priority"),
        r4_parameter("ServiceRequest-category", "token", "category"),
        r4_parameter("clinical-code", "token", "code"),
        r4_parameter("ServiceRequest-authored", "date", "authoredOn"),
        r4_parameter(
            "ServiceRequest-occurrence",
            "date",
            "occurrenceDateTime",
            "occurrencePeriod",
            "occurrenceTiming",
        ),
        r4_parameter("ServiceRequest-subject", "reference", "subject"),
        r4_parameter("ServiceRequest-requester", "reference", "requester"),
        r4_parameter("ServiceRequest-performer", "reference", "performer"),
    ),
    example={
        "resourceType": "ServiceRequest",
        "identifier": [{"system": "https://north-quay.example/orders", "value": "S-7003"}],
        "status": "active",
        "intent": "order",
        "priority": "routine",
        "category": [{"text": "Imaging"}],
        "code": {"text": "Chest radiograph, two views"},
        "subject": {"reference": "Patient/patient-1"},
        "authoredOn": "2026-03-02T14:16:00Z",
        "requester": {"reference": "Practitioner/practitioner-1"},
        "performer": [{"reference": "Organization/organization-1"}],
    },
)


@hookimpl
def fhirpub_resource_types() -> Sequence[ResourceType]:
    """Add ServiceRequest."""
    return [SERVICE_REQUEST]
