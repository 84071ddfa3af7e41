"""Valid request bodies of a laboratory."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]"
    b"/Count 1>>endobj 3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]>>endobj\n"
    b"trailer<</Root 1 0 R>>\n%%EOF\n"
)
SYSTEM = "https://lab.example/reports"


def with_changes(element: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return an element with changes; one to None leaves a member out."""
    return {name: item for name, item in (element | changes).items() if item is not None}


def document(data: bytes = PDF, **changes: Any) -> dict[str, Any]:
    """Return an attachment; a change to None leaves the element out."""
    attachment = {
        "contentType": "application/pdf",
        "title": "Blood count",
        "data": base64.b64encode(data).decode(),
        "hash": hashlib.sha256(data).hexdigest(),
        "creation": "2026-11-20T10:05:00Z",
    }
    return with_changes(attachment, changes)


def patient(**changes: Any) -> dict[str, Any]:
    """Return a patient; a change to None leaves the element out."""
    resource = {
        "resourceType": "Patient",
        "id": "p1",
        "name": [{"family": "López", "given": ["Ana", "Inés"]}],
        "identifier": [
            {
                "system": "http://hl7.org/fhir/sid/AR",
                "value": "AAB123456",
                "type": {
                    "coding": [
                        {
                            "system": "http://terminology.hl7.org/CodeSystem/v2-0203",
                            "code": "PPN",
                        }
                    ]
                },
            }
        ],
        "telecom": [{"system": "email", "value": "ana@example.org", "use": "home"}],
        "gender": "female",
        "birthDate": "1980-02-29",
    }
    return with_changes(resource, changes)


def organization(**changes: Any) -> dict[str, Any]:
    """Return an organization; a change to None leaves the element out."""
    resource = {
        "resourceType": "Organization",
        "id": "o1",
        "name": "Laboratorio Uno",
        "identifier": [{"system": "https://registry.example/organizations", "value": "77"}],
    }
    return with_changes(resource, changes)


def report(value: str, *, system: str = SYSTEM, **changes: Any) -> dict[str, Any]:
    """Return a report; a change to None leaves the element out."""
    resource = {
        "resourceType": "DiagnosticReport",
        "id": "r1",
        "identifier": [{"system": system, "value": value}],
        "status": "final",
        "category": [
            {
                "coding": [
                    {
                        "system": "http://terminology.hl7.org/CodeSystem/v2-0074",
                        "code": "HM",
                        "display": "Hematology",
                    }
                ]
            }
        ],
        "code": {"text": "Blood count"},
        "subject": {"reference": "Patient/p1"},
        "performer": [{"reference": "Organization/o1"}],
        "effectiveDateTime": "2026-11-20T10:00:00Z",
        "issued": "2026-11-20T10:05:00Z",
        "conclusion": "Within the reference ranges",
        "presentedForm": [document()],
    }
    return with_changes(resource, changes)


def self_contained(value: str, **changes: Any) -> dict[str, Any]:
    """Return a report for create, which contains its parts."""
    parts: dict[str, Any] = {
        "id": None,
        "contained": [patient(), organization()],
        "subject": {"reference": "#p1"},
        "performer": [{"reference": "#o1"}],
    }
    return report(value, **parts | changes)


def register_body(value: str, **changes: Any) -> dict[str, Any]:
    """Return a body of ``$register``; changes go to the report."""
    return parameters(
        patient=patient(), organization=organization(), diagnosticReport=report(value, **changes)
    )


def parameters(**entries: Any) -> dict[str, Any]:
    """Return Parameters with these entries."""
    return {
        "resourceType": "Parameters",
        "parameter": [{"name": name, "resource": entry} for name, entry in entries.items()],
    }
