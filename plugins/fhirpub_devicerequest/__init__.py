"""Adds DeviceRequest to the service, with the events ``device_request.*``."""

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

DEVICE_REQUEST = ResourceType(
    name="DeviceRequest",
    parts=(
        patient(referred_by="subject"),
        organization(referred_by="", required=False),
        practitioner(referred_by="requester"),
    ),
    create_statuses=_STATUSES - {"entered-in-error"},
    update_statuses=_STATUSES,
    updatable=frozenset("status priority occurrence[x] note".split()),
    times=("authoredOn", "occurrenceDateTime", "occurrencePeriod.start", "occurrencePeriod.end"),
    codings=("codeCodeableConcept", "reasonCode"),
    summary=(
        "intent",
        "priority",
        "code[x]",
        "subject",
        "occurrence[x]",
        "authoredOn",
        "requester",
        "performer",
    ),
    events=CompositionEvents(
        "device_request", elements=("intent", "priority", "code[x]", "authoredOn")
    ),
    search=(
        r4_parameter("DeviceRequest-instantiates-uri", "uri", "instantiatesUri"),
        r4_parameter("DeviceRequest-intent", "token", "intent"),
        r4_parameter("clinical-code", "token", "codeCodeableConcept"),
        r4_parameter("DeviceRequest-authored-on", "date", "authoredOn"),
        r4_parameter("DeviceRequest-event-date", "date", "occurrenceDateTime", "occurrencePeriod"),
        r4_parameter("DeviceRequest-subject", "reference", "subject"),
        r4_parameter("DeviceRequest-requester", "reference", "requester"),
    ),
    example={
        "resourceType": "DeviceRequest",
        "identifier": [{"system": "https://north-quay.example/prescriptions", "value": "V-7004"}],
        "status": "active",
        "intent": "order",
        "codeCodeableConcept": {"text": "Blood pressure monitor for the upper arm"},
        "subject": {"reference": "Patient/patient-1"},
        "authoredOn": "2026-03-02T14:17:00Z",
        "requester": {"reference": "Practitioner/practitioner-1"},
    },
)


@hookimpl
def fhirpub_resource_types() -> Sequence[ResourceType]:
    """Add DeviceRequest."""
    return [DEVICE_REQUEST]
