"""The resources that a report brings with it: results, specimens, orders and practitioners."""

from __future__ import annotations

from dataclasses import replace

from fhirpub.plugin_api import Part, practitioner, r4_parameter
from fhirpub_observation.search import USUAL, VALUES

_RESULT = {
    "resourceType": "Observation",
    "id": "hemoglobin",
    "identifier": [{"system": "https://north-quay.example/results", "value": "417-HB"}],
    "status": "final",
    "code": {
        "text": "Hemoglobin",
        "coding": [{"system": "http://loinc.org", "code": "718-7"}],
    },
    "subject": {"reference": "Patient/patient-1"},
    "effectiveDateTime": "2026-03-02T08:15:00Z",
    "valueQuantity": {
        "value": 13.2,
        "unit": "g/dL",
        "system": "http://unitsofmeasure.org",
        "code": "g/dL",
    },
}
_SPECIMEN = {
    "resourceType": "Specimen",
    "id": "blood",
    "accessionIdentifier": {"system": "https://north-quay.example/specimens", "value": "417"},
    "type": {"text": "Venous blood"},
    "subject": {"reference": "Patient/patient-1"},
    "collection": {"collectedDateTime": "2026-03-02T08:15:00Z"},
}
_ORDER = {
    "resourceType": "ServiceRequest",
    "id": "order",
    "identifier": [{"system": "https://north-quay.example/orders", "value": "S-7003"}],
    "status": "completed",
    "intent": "order",
    "code": {"text": "Complete blood count"},
    "subject": {"reference": "Patient/patient-1"},
}

RESULT = Part(
    name="observation",
    type="Observation",
    referred_by="result",
    required=False,
    repeats=True,
    statuses=frozenset("registered preliminary final amended corrected cancelled unknown".split()),
    times=(
        "effectiveDateTime",
        "effectiveInstant",
        "effectivePeriod.start",
        "effectivePeriod.end",
        "issued",
    ),
    codings=("category", "code", "dataAbsentReason", "interpretation", "component.code"),
    search=(
        *USUAL,
        r4_parameter("Observation-specimen", "reference", "specimen"),
        r4_parameter("Observation-based-on", "reference", "basedOn"),
        r4_parameter("Observation-has-member", "reference", "hasMember"),
        r4_parameter("Observation-derived-from", "reference", "derivedFrom"),
        *VALUES,
    ),
    patient="subject",
    acyclic=("hasMember", "derivedFrom"),
    example=_RESULT,
)

SPECIMEN = Part(
    name="specimen",
    type="Specimen",
    referred_by="specimen",
    required=False,
    repeats=True,
    times=("receivedTime", "collection.collectedDateTime"),
    codings=("type",),
    search=(
        r4_parameter("Specimen-type", "token", "type"),
        r4_parameter("Specimen-accession", "token", "accessionIdentifier"),
        r4_parameter(
            "Specimen-collected",
            "date",
            "collection.collectedDateTime",
            "collection.collectedPeriod",
        ),
        r4_parameter("Specimen-subject", "reference", "subject"),
        r4_parameter("Specimen-parent", "reference", "parent"),
    ),
    patient="subject",
    acyclic=("parent",),
    example=_SPECIMEN,
)

ORDER = Part(
    name="serviceRequest",
    type="ServiceRequest",
    referred_by="basedOn",
    required=False,
    repeats=True,
    statuses=frozenset("draft active on-hold revoked completed unknown".split()),
    times=("authoredOn", "occurrenceDateTime"),
    codings=("category", "code", "orderDetail", "reasonCode"),
    search=(
        r4_parameter("ServiceRequest-instantiates-uri", "uri", "instantiatesUri"),
        r4_parameter("ServiceRequest-category", "token", "category"),
        r4_parameter("clinical-code", "token", "code"),
        r4_parameter("ServiceRequest-authored", "date", "authoredOn"),
        r4_parameter("ServiceRequest-subject", "reference", "subject"),
        r4_parameter("ServiceRequest-requester", "reference", "requester"),
    ),
    patient="subject",
    acyclic=("basedOn", "replaces"),
    example=_ORDER,
)

PRACTITIONER = replace(
    practitioner(referred_by="resultsInterpreter"),
    include_in_events=False,
    repeats=True,
    search=(
        r4_parameter("Practitioner-name", "string", "name"),
        r4_parameter("individual-family", "string", "name.family"),
        r4_parameter("individual-given", "string", "name.given"),
    ),
)

MEMBERS = (RESULT, SPECIMEN, ORDER, PRACTITIONER)
