"""Bodies of reports that come with their results."""

from __future__ import annotations

from typing import Any

from fhirpub.testing.service import Answer
from tests.bodies import organization, patient, report, with_changes

RESULTS = "https://lab.example/results"
LOINC = "http://loinc.org"


def result(local_id: str, value: float = 13.2, **changes: Any) -> dict[str, Any]:
    """Return an observation; a change to None leaves the element out."""
    resource = {
        "resourceType": "Observation",
        "id": local_id,
        "status": "final",
        "code": {"text": local_id, "coding": [{"system": LOINC, "code": "718-7"}]},
        "subject": {"reference": "Patient/p1"},
        "effectiveDateTime": "2026-11-20T10:00:00Z",
        "valueQuantity": {
            "value": value,
            "unit": "g/dL",
            "system": "http://unitsofmeasure.org",
            "code": "g/dL",
        },
    }
    return with_changes(resource, changes)


def specimen(local_id: str = "blood", **changes: Any) -> dict[str, Any]:
    """Return a specimen; a change to None leaves the element out."""
    resource = {
        "resourceType": "Specimen",
        "id": local_id,
        "type": {"text": "Venous blood"},
        "subject": {"reference": "Patient/p1"},
        "collection": {"collectedDateTime": "2026-11-20T09:00:00Z"},
    }
    return with_changes(resource, changes)


def panel(value: str, *entries: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a body of ``$register`` with a patient, an organization, a report, and these.

    The report refers to all observations, unless ``result`` is among its changes.
    """
    led_to = [
        {"reference": f"Observation/{entry.get('id')}"}
        for entry in entries
        if entry["resourceType"] == "Observation"
    ]
    every = [patient(), organization(), report(value, **{"result": led_to or None} | changes)]
    return {
        "resourceType": "Parameters",
        "parameter": [
            {"name": _entry_name(resource), "resource": resource}
            for resource in (*every, *entries)
        ],
    }


def addresses(answer: Answer) -> list[str]:
    """Return the addresses of the members that a registration answers with."""
    assert answer.status == 201, answer.body
    return [
        entry["valueReference"]["reference"]
        for entry in answer.json["parameter"]
        if "valueReference" in entry
    ]


def _entry_name(resource: dict[str, Any]) -> str:
    name: str = resource["resourceType"]
    return name[0].lower() + name[1:]
