"""Adds ImagingStudy to the service, by its DICOM Study Instance UID."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from fhirpub.plugin_api import (
    CompositionEvents,
    IdentifierRule,
    ResourceType,
    ValueForm,
    hookimpl,
    patient,
    practitioner,
    r4_parameter,
)

_SCHEMA = Path(__file__).with_name("ImagingStudy.schema.json")
_STATUSES = frozenset("registered available cancelled entered-in-error unknown".split())
_DICOM = "urn:dicom:uid"
_MAX_UID = 64


def _is_short_enough(uid: str) -> bool:
    """Return whether a UID has no more characters than DICOM allows (PS3.5, section 9)."""
    return len(uid) <= _MAX_UID


IMAGING_STUDY = ResourceType(
    name="ImagingStudy",
    parts=(patient(referred_by="subject"), practitioner(referred_by="interpreter")),
    create_statuses=_STATUSES - {"entered-in-error"},
    update_statuses=_STATUSES,
    updatable=frozenset("status description numberOfSeries numberOfInstances series note".split()),
    # Modalities send the UID as it is, FHIR's examples send it as a URN: both are one study.
    identifier=IdentifierRule(
        most=20,
        systems=(_DICOM,),
        forms=(
            ValueForm(
                system=_DICOM,
                blanks="trim",
                prefix="urn:oid:",
                pattern=r"[0-2](\.(0|[1-9][0-9]*))+",
                check=_is_short_enough,
                words="must be a DICOM UID of at most 64 characters, with or without urn:oid:",
            ),
        ),
    ),
    times=("started", "series.started"),
    codings=("procedureCode", "reasonCode"),
    summary=(
        "modality",
        "subject",
        "started",
        "interpreter",
        "numberOfSeries",
        "numberOfInstances",
        "description",
    ),
    events=CompositionEvents("imaging_study", elements=("modality", "started", "procedureCode")),
    search=(
        r4_parameter("ImagingStudy-modality", "token", "modality", "series.modality"),
        r4_parameter("ImagingStudy-started", "date", "started"),
        r4_parameter("ImagingStudy-subject", "reference", "subject"),
        r4_parameter("ImagingStudy-basedon", "reference", "basedOn"),
        r4_parameter("ImagingStudy-interpreter", "reference", "interpreter"),
    ),
    schemas={"ImagingStudy": json.loads(_SCHEMA.read_bytes())},
    example={
        "resourceType": "ImagingStudy",
        "identifier": [
            {"system": _DICOM, "value": "urn:oid:2.999.840.113654.2.3.417"},
            {"system": "https://north-quay.example/accessions", "value": "R-2026-0417"},
        ],
        "status": "available",
        "subject": {"reference": "Patient/patient-1"},
        "started": "2026-03-02T08:15:00Z",
        "interpreter": [{"reference": "Practitioner/practitioner-1"}],
        "numberOfSeries": 1,
        "numberOfInstances": 2,
        "description": "Chest, two views",
        "series": [
            {
                "uid": "2.999.840.113654.2.3.417.1",
                "modality": {
                    "system": "http://dicom.nema.org/resources/ontology/DCM",
                    "code": "DX",
                },
            }
        ],
    },
)


@hookimpl
def fhirpub_resource_types() -> Sequence[ResourceType]:
    """Add ImagingStudy."""
    return [IMAGING_STUDY]
