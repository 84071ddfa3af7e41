"""What the types of the shelf declare, against FHIR R4 and against itself; without a service."""

from __future__ import annotations

import pytest

from fhirpub.plugin_api import ResourceType
from fhirpub_devicerequest import DEVICE_REQUEST
from fhirpub_diagnosticreport.rules import DIAGNOSTIC_REPORT
from fhirpub_documentreference import DOCUMENT_REFERENCE
from fhirpub_encounter import ENCOUNTER
from fhirpub_imagingstudy import IMAGING_STUDY
from fhirpub_medicationrequest import MEDICATION_REQUEST
from fhirpub_observation import OBSERVATION
from fhirpub_servicerequest import SERVICE_REQUEST
from fhirpub_specimen import SPECIMEN
from fhirpub_vaccination import IMMUNIZATION

REQUEST = "draft active on-hold revoked completed entered-in-error unknown"
STATUSES = {
    "Observation": "registered preliminary final amended corrected cancelled entered-in-error "
    "unknown",
    "Specimen": "available unavailable unsatisfactory entered-in-error",
    "Encounter": "planned arrived triaged in-progress onleave finished cancelled "
    "entered-in-error unknown",
    "ImagingStudy": "registered available cancelled entered-in-error unknown",
    "DocumentReference": "current superseded entered-in-error",
    "Immunization": "completed entered-in-error not-done",
    "ServiceRequest": REQUEST,
    "DeviceRequest": REQUEST,
    "MedicationRequest": "active on-hold cancelled completed entered-in-error stopped draft "
    "unknown",
}
OTHERS = (
    OBSERVATION,
    SPECIMEN,
    ENCOUNTER,
    IMAGING_STUDY,
    DOCUMENT_REFERENCE,
    IMMUNIZATION,
    SERVICE_REQUEST,
    DEVICE_REQUEST,
    MEDICATION_REQUEST,
)
every_type = pytest.mark.parametrize(
    "declared", [DIAGNOSTIC_REPORT, *OTHERS], ids=lambda one: one.name
)


@pytest.mark.parametrize("declared", OTHERS, ids=lambda one: one.name)
def test_nothing_is_registered_as_an_error_and_all_may_become_one(declared: ResourceType) -> None:
    every = {*STATUSES[declared.name].split()}

    assert declared.update_statuses == every
    assert declared.create_statuses == every - {"entered-in-error"}


@every_type
def test_a_status_can_be_updated(declared: ResourceType) -> None:
    assert "status" in declared.updatable


@every_type
def test_what_says_which_resource_it_is_cannot_be_updated(declared: ResourceType) -> None:
    fixed = {"identifier", "subject", "patient", "code", "id", "meta", "contained"}

    assert fixed.isdisjoint(declared.updatable)
    assert declared.updatable.isdisjoint(declared.identifier.elements)
    assert declared.updatable.isdisjoint(
        {part.referred_by.partition(".")[0] for part in declared.parts}
    )


@every_type
def test_the_times_that_are_searched_by_are_stored_in_utc(declared: ResourceType) -> None:
    searched = {path for one in declared.search if one.type == "date" for path in one.paths}
    times = {
        end
        for path in searched
        if not path.startswith("value") and not path.endswith("Timing")
        for end in (
            (f"{path}.start", f"{path}.end") if path.lower().endswith("period") else (path,)
        )
    }

    assert times <= {*declared.times}


@every_type
def test_only_the_patient_is_required_of_what_comes_along(declared: ResourceType) -> None:
    required = [part.name for part in declared.parts if part.required]

    assert required == (
        ["patient", "organization"] if declared is DIAGNOSTIC_REPORT else ["patient"]
    )


@every_type
def test_resources_are_found_by_the_element_that_refers_to_their_patient(
    declared: ResourceType,
) -> None:
    (element,) = [part.referred_by for part in declared.parts if part.type == "Patient"]

    if declared is IMMUNIZATION:  # its element has the name by which all are searched
        assert element == "patient"
    else:
        assert element == "subject"
        found = {one.paths for one in declared.search if one.type == "reference"}
        assert ("subject",) in found


@every_type
def test_documents_are_required_where_there_are_any(declared: ResourceType) -> None:
    documents = {
        "DiagnosticReport": ("presentedForm",),
        "DocumentReference": ("content.attachment",),
    }
    expected = documents.get(declared.name, ())

    assert declared.attachments == expected
    assert declared.attachments_required == bool(expected)


@pytest.mark.parametrize(("length", "is_uid"), [(64, True), (65, False)])
def test_a_uid_has_at_most_64_characters(length: int, *, is_uid: bool) -> None:
    (form,) = IMAGING_STUDY.identifier.forms
    assert form.check is not None

    assert form.check("1" * length) == is_uid


def test_the_results_of_a_report_have_all_statuses_but_that_of_an_error() -> None:
    members = {part.name: part.statuses for part in DIAGNOSTIC_REPORT.parts if part.repeats}

    assert members == {
        "observation": {*STATUSES["Observation"].split()} - {"entered-in-error"},
        "serviceRequest": {*REQUEST.split()} - {"entered-in-error"},
        "specimen": frozenset(),
        "practitioner": frozenset(),
    }


def test_members_of_a_report_lead_into_no_circle() -> None:
    acyclic = {part.name: part.acyclic for part in DIAGNOSTIC_REPORT.parts if part.repeats}

    assert acyclic == {
        "observation": ("hasMember", "derivedFrom"),
        "serviceRequest": ("basedOn", "replaces"),
        "specimen": ("parent",),
        "practitioner": (),
    }
