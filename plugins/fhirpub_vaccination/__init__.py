"""Adds Immunization to the service."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from fhirpub.plugin_api import (
    CompositionEvents,
    IdentifierRule,
    ResourceType,
    hookimpl,
    organization,
    patient,
    practitioner,
    r4_parameter,
)

_SCHEMA = Path(__file__).with_name("Immunization.schema.json")
_STATUSES = frozenset("completed not-done entered-in-error".split())

IMMUNIZATION = ResourceType(
    name="Immunization",
    parts=(
        patient(referred_by="patient"),
        organization(referred_by="", required=False),
        practitioner(referred_by="performer.actor"),
    ),
    create_statuses=_STATUSES - {"entered-in-error"},
    update_statuses=_STATUSES,
    updatable=frozenset("status statusReason note reaction".split()),
    # Registries and practices each add one. That of a person would make each vaccination the same.
    identifier=IdentifierRule(
        most=10,
        uses=("official", "usual", "", "secondary"),
        refused_systems=frozenset(
            {
                "http://hl7.org/fhir/sid/us-medicare",
                "http://hl7.org/fhir/sid/us-mbi",
                "http://hl7.org/fhir/sid/us-ssn",
            }
        ),
    ),
    times=("occurrenceDateTime", "recorded", "reaction.date"),
    codings=("statusReason", "vaccineCode", "site", "route", "reasonCode"),
    summary=("vaccineCode", "patient", "occurrence[x]", "performer", "lotNumber"),
    events=CompositionEvents("immunization", elements=("vaccineCode", "occurrence[x]")),
    search=(
        r4_parameter("clinical-date", "date", "occurrenceDateTime"),
        r4_parameter("Immunization-vaccine-code", "token", "vaccineCode"),
        r4_parameter("Immunization-lot-number", "string", "lotNumber"),
        r4_parameter("Immunization-performer", "reference", "performer.actor"),
    ),
    schemas={"Immunization": json.loads(_SCHEMA.read_bytes())},
    example={
        "resourceType": "Immunization",
        "identifier": [
            {
                "use": "official",
                "system": "https://north-quay.example/vaccinations",
                "value": "V-2026-000417",
            }
        ],
        "status": "completed",
        "vaccineCode": {"coding": [{"system": "http://hl7.org/fhir/sid/cvx", "code": "140"}]},
        "patient": {"reference": "Patient/patient-1"},
        "occurrenceDateTime": "2026-03-02T08:15:00Z",
        "lotNumber": "QX-0417",
        "performer": [{"actor": {"reference": "Practitioner/practitioner-1"}}],
    },
)


@hookimpl
def fhirpub_resource_types() -> Sequence[ResourceType]:
    """Add Immunization."""
    return [IMMUNIZATION]
