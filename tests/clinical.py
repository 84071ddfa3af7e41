"""Valid request bodies of specimens, imaging studies, documents and vaccinations."""

from __future__ import annotations

from typing import Any

from tests.bodies import document, organization, parameters, patient, with_changes
from tests.compositions import practitioner

DICOM = "urn:dicom:uid"
TUBES = "https://lab.example/tubes"


def specimen(value: str, *, system: str, **changes: Any) -> dict[str, Any]:
    """Return a specimen; a change to None leaves the element out."""
    resource = {
        "resourceType": "Specimen",
        "accessionIdentifier": {"system": system, "value": value},
        "status": "available",
        "type": {"text": "Venous blood"},
        "subject": {"reference": "Patient/p1"},
        "receivedTime": "2026-11-20T10:00:00Z",
        "collection": {"collectedDateTime": "2026-11-20T08:00:00Z"},
        "container": [{"identifier": [{"system": TUBES, "value": f"t {value}"}]}],
    }
    return with_changes(resource, changes)


def imaging_study(uid: str, *, system: str = DICOM, **changes: Any) -> dict[str, Any]:
    """Return a study; a change to None leaves the element out."""
    resource = {
        "resourceType": "ImagingStudy",
        "identifier": [
            {"system": "https://lab.example/accessions", "value": f"A-{uid}"},
            {"system": system, "value": uid},
        ],
        "status": "available",
        "subject": {"reference": "Patient/p1"},
        "started": "2026-11-20T10:00:00Z",
        "interpreter": [{"reference": "Practitioner/d1"}],
        "numberOfSeries": 1,
        "description": "Chest, two views",
    }
    return with_changes(resource, changes)


def document_reference(value: str, *, system: str, **changes: Any) -> dict[str, Any]:
    """Return a document; a change to None leaves the element out."""
    resource = {
        "resourceType": "DocumentReference",
        "masterIdentifier": {"system": system, "value": value},
        "identifier": [
            {"system": "https://lab.example/letters", "value": f"{value}-a"},
            {"system": "https://lab.example/archive", "value": f"{value}-b"},
        ],
        "status": "current",
        "type": {"text": "Discharge letter"},
        "subject": {"reference": "Patient/p1"},
        "date": "2026-11-20T10:00:00Z",
        "author": [{"reference": "Practitioner/d1"}],
        "custodian": {"reference": "Organization/o1"},
        "content": [{"attachment": document()}],
    }
    return with_changes(resource, changes)


def immunization(value: str, *, system: str, **changes: Any) -> dict[str, Any]:
    """Return a vaccination; a change to None leaves the element out."""
    resource = {
        "resourceType": "Immunization",
        "identifier": [
            {"system": "https://registry.example/vaccinations", "value": f"r-{value}"},
            {"use": "official", "system": system, "value": value},
        ],
        "status": "completed",
        "vaccineCode": {"text": "Influenza"},
        "patient": {"reference": "Patient/p1"},
        "occurrenceDateTime": "2026-11-20T10:00:00Z",
        "lotNumber": "QX-0417",
        "performer": [{"actor": {"reference": "Practitioner/d1"}}],
    }
    return with_changes(resource, changes)


def with_patient(resource: dict[str, Any], **others: Any) -> dict[str, Any]:
    """Return a body of ``$register`` with a resource, its patient and others."""
    name = resource["resourceType"]
    own = {f"{name[0].lower()}{name[1:]}": resource}
    return parameters(patient=patient(), **others, **own)


def with_author(resource: dict[str, Any], **others: Any) -> dict[str, Any]:
    """Return a body of ``$register`` with a resource, its patient, its author and others."""
    return with_patient(resource, practitioner=practitioner(), **others)


def with_custodian(resource: dict[str, Any]) -> dict[str, Any]:
    """Return a body of ``$register`` with a document, its patient, author and custodian."""
    return with_author(resource, organization=organization())
