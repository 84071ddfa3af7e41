"""Adds Encounter to the service, with the events ``encounter_outpatient.*``."""

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
    "planned arrived triaged in-progress onleave finished cancelled".split()
    + "entered-in-error unknown".split()
)

ENCOUNTER = ResourceType(
    name="Encounter",
    parts=(
        patient(referred_by="subject"),
        organization(referred_by="serviceProvider", required=False),
        practitioner(referred_by="participant.individual"),
    ),
    create_statuses=_STATUSES - {"entered-in-error"},
    update_statuses=_STATUSES,
    updatable=frozenset("status statusHistory period length reasonCode diagnosis".split()),
    times=("period.start", "period.end"),
    codings=("class", "type", "serviceType", "reasonCode"),
    summary=(
        "class",
        "type",
        "serviceType",
        "subject",
        "participant",
        "period",
        "serviceProvider",
    ),
    events=CompositionEvents(
        "encounter_outpatient", elements=("class", "type", "serviceType", "period")
    ),
    event_types=("encounter_outpatient.created", "encounter_outpatient.updated"),
    search=(
        r4_parameter("Encounter-class", "token", "class"),
        r4_parameter("clinical-type", "token", "type"),
        r4_parameter("clinical-date", "date", "period"),
        r4_parameter("Encounter-length", "quantity", "length"),
        r4_parameter("Encounter-subject", "reference", "subject"),
        r4_parameter("Encounter-participant", "reference", "participant.individual"),
        r4_parameter("Encounter-service-provider", "reference", "serviceProvider"),
    ),
    example={
        "resourceType": "Encounter",
        "identifier": [{"system": "https://north-quay.example/encounters", "value": "E-5001"}],
        "status": "finished",
        "class": {
            "system": "http://terminology.hl7.org/CodeSystem/v3-ActCode",
            "code": "AMB",
            "display": "ambulatory",
        },
        "serviceType": {"text": "Internal medicine"},
        "subject": {"reference": "Patient/patient-1"},
        "participant": [{"individual": {"reference": "Practitioner/practitioner-1"}}],
        "period": {"start": "2026-03-02T14:00:00Z", "end": "2026-03-02T14:20:00Z"},
        "serviceProvider": {"reference": "Organization/organization-1"},
    },
)


@hookimpl
def fhirpub_resource_types() -> Sequence[ResourceType]:
    """Add Encounter."""
    return [ENCOUNTER]
