"""Adds DocumentReference to the service, whose documents are kept as those of reports are."""

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

_SCHEMA = Path(__file__).with_name("DocumentReference.schema.json")
_STATUSES = frozenset("current superseded entered-in-error".split())

DOCUMENT_REFERENCE = ResourceType(
    name="DocumentReference",
    parts=(
        patient(referred_by="subject"),
        organization(referred_by="custodian", required=False),
        practitioner(referred_by="author"),
    ),
    create_statuses=_STATUSES - {"entered-in-error"},
    update_statuses=_STATUSES,
    updatable=frozenset("status docStatus description content".split()),
    # The identifier of this version of the document. It may have any others beside it.
    identifier=IdentifierRule(elements=("masterIdentifier",)),
    attachments=("content.attachment",),
    attachments_required=True,
    times=("date", "content.attachment.creation", "context.period.start", "context.period.end"),
    codings=("type", "category"),
    summary=("docStatus", "type", "category", "subject", "date", "author", "custodian"),
    events=CompositionEvents("document_reference", elements=("docStatus", "type", "category")),
    search=(
        r4_parameter("clinical-type", "token", "type"),
        r4_parameter("DocumentReference-category", "token", "category"),
        r4_parameter("DocumentReference-date", "date", "date"),
        r4_parameter("DocumentReference-period", "date", "context.period"),
        r4_parameter("DocumentReference-subject", "reference", "subject"),
        r4_parameter("DocumentReference-author", "reference", "author"),
        r4_parameter("DocumentReference-custodian", "reference", "custodian"),
        r4_parameter("DocumentReference-relatesto", "reference", "relatesTo.target"),
    ),
    schemas={"DocumentReference": json.loads(_SCHEMA.read_bytes())},
    example={
        "resourceType": "DocumentReference",
        "masterIdentifier": {
            "system": "https://north-quay.example/documents",
            "value": "DOC-000417",
        },
        "identifier": [{"system": "https://north-quay.example/letters", "value": "417"}],
        "status": "current",
        "docStatus": "final",
        "type": {"text": "Discharge letter"},
        "subject": {"reference": "Patient/patient-1"},
        "date": "2026-03-02T10:40:00Z",
        "author": [{"reference": "Practitioner/practitioner-1"}],
        "custodian": {"reference": "Organization/organization-1"},
        "content": [
            {
                "attachment": {
                    "contentType": "application/pdf",
                    "title": "Discharge letter",
                    "data": "JVBERi0xLjQKMSAwIG9iajw8L1R5cGUvQ2F0YWxvZy9QYWdlcyAyIDAgUj4+ZW5kb2Jq"
                    "IDIgMCBvYmo8PC9UeXBlL1BhZ2VzL0tpZHNbXS9Db3VudCAwPj5lbmRvYmoKdHJhaWxl"
                    "cjw8L1Jvb3QgMSAwIFI+PgolJUVPRgo=",
                    "hash": "CTk4PYnhxKv17MW7gWoZVqHzstg=",
                    "creation": "2026-03-02T10:40:00Z",
                }
            }
        ],
    },
)


@hookimpl
def fhirpub_resource_types() -> Sequence[ResourceType]:
    """Add DocumentReference."""
    return [DOCUMENT_REFERENCE]
