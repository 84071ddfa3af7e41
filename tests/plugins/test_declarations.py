"""What the types of the shelf declare, against FHIR R4 and against itself; without a service."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from fhirpub.plugin_api import CompositionEvents, ResourceType
from fhirpub.webhooks.management.event_types import EventTypes
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

OBSERVED = "registered preliminary final amended corrected cancelled entered-in-error unknown"
REQUEST = "draft active on-hold revoked completed entered-in-error unknown"


class Shelved(NamedTuple):
    """A type of the shelf, and what it is expected to declare."""

    declared: ResourceType
    statuses: str
    searched: set[str]
    """The elements by whose time it is searched."""
    times: set[str]
    """Those of their times that are stored in UTC."""
    patient: str = "subject"
    is_found_by_subject: bool = True
    required: tuple[str, ...] = ("patient",)
    documents: tuple[str, ...] = ()


REPORT = Shelved(
    DIAGNOSTIC_REPORT,
    "",  # which status may follow which: test_diagnosticreport_rules.py
    {"effectiveDateTime", "effectivePeriod", "issued"},
    {"effectiveDateTime", "effectivePeriod.start", "effectivePeriod.end", "issued"},
    required=("patient", "organization"),
    documents=("presentedForm",),
)
OTHERS = (
    Shelved(
        OBSERVATION,
        OBSERVED,
        {
            *("effectiveDateTime", "effectiveInstant", "effectivePeriod", "effectiveTiming"),
            *("valueDateTime", "valuePeriod"),
        },
        {"effectiveDateTime", "effectiveInstant", "effectivePeriod.start", "effectivePeriod.end"},
    ),
    Shelved(
        SPECIMEN,
        "available unavailable unsatisfactory entered-in-error",
        {"collection.collectedDateTime", "collection.collectedPeriod"},
        {
            *("collection.collectedDateTime", "collection.collectedPeriod.start"),
            "collection.collectedPeriod.end",
        },
    ),
    Shelved(
        ENCOUNTER,
        "planned arrived triaged in-progress onleave finished cancelled entered-in-error unknown",
        {"period"},
        {"period.start", "period.end"},
    ),
    Shelved(
        IMAGING_STUDY,
        "registered available cancelled entered-in-error unknown",
        {"started"},
        {"started"},
    ),
    Shelved(
        DOCUMENT_REFERENCE,
        "current superseded entered-in-error",
        {"context.period", "date"},
        {"context.period.start", "context.period.end", "date"},
        documents=("content.attachment",),
    ),
    Shelved(
        IMMUNIZATION,
        "completed entered-in-error not-done",
        {"occurrenceDateTime"},
        {"occurrenceDateTime"},
        patient="patient",  # the name by which all types are searched
        is_found_by_subject=False,
    ),
    Shelved(
        SERVICE_REQUEST,
        REQUEST,
        {"authoredOn", "occurrenceDateTime", "occurrencePeriod", "occurrenceTiming"},
        {"authoredOn", "occurrenceDateTime", "occurrencePeriod.start", "occurrencePeriod.end"},
    ),
    Shelved(
        DEVICE_REQUEST,
        REQUEST,
        {"authoredOn", "occurrenceDateTime", "occurrencePeriod"},
        {"authoredOn", "occurrenceDateTime", "occurrencePeriod.start", "occurrencePeriod.end"},
    ),
    Shelved(
        MEDICATION_REQUEST,
        "active on-hold cancelled completed entered-in-error stopped draft unknown",
        {"authoredOn"},
        {"authoredOn"},
    ),
)


def name_of(shelved: Shelved) -> str:
    return shelved.declared.name


every_type = pytest.mark.parametrize("shelved", [REPORT, *OTHERS], ids=name_of)


@pytest.mark.parametrize("shelved", OTHERS, ids=name_of)
def test_nothing_is_registered_as_an_error_and_all_may_become_one(shelved: Shelved) -> None:
    every = {*shelved.statuses.split()}

    assert shelved.declared.update_statuses == every
    assert shelved.declared.create_statuses == every - {"entered-in-error"}


@every_type
def test_a_status_can_be_updated(shelved: Shelved) -> None:
    assert "status" in shelved.declared.updatable


@every_type
def test_what_says_which_resource_it_is_cannot_be_updated(shelved: Shelved) -> None:
    declared = shelved.declared
    fixed = {"identifier", "subject", "patient", "code", "id", "meta", "contained"}

    assert fixed.isdisjoint(declared.updatable)
    assert declared.updatable.isdisjoint(declared.identifier.elements)
    assert declared.updatable.isdisjoint(
        {part.referred_by.partition(".")[0] for part in declared.parts}
    )


@every_type
def test_endpoints_can_subscribe_to_its_events_and_to_no_others(shelved: Shelved) -> None:
    emitted = shelved.declared.events
    assert isinstance(emitted, CompositionEvents)
    known = [one for one in EventTypes.of([shelved.declared]).all if one.resource]

    assert {one.name.partition(".")[0] for one in known} == {emitted.composition}


@every_type
def test_the_times_that_are_searched_by_are_stored_in_utc(shelved: Shelved) -> None:
    dates = [one for one in shelved.declared.search if one.type == "date"]

    assert {path for one in dates for path in one.paths} == shelved.searched
    assert shelved.times <= {*shelved.declared.times}


@every_type
def test_only_the_patient_is_required_of_what_comes_along(shelved: Shelved) -> None:
    required = [part.name for part in shelved.declared.parts if part.required]

    assert required == [*shelved.required]


@every_type
def test_resources_are_found_by_the_element_that_refers_to_their_patient(
    shelved: Shelved,
) -> None:
    parts, search = shelved.declared.parts, shelved.declared.search
    found = {one.paths for one in search if one.type == "reference"}

    assert [part.referred_by for part in parts if part.type == "Patient"] == [shelved.patient]
    assert (("subject",) in found) is shelved.is_found_by_subject


@every_type
def test_documents_are_required_where_there_are_any(shelved: Shelved) -> None:
    assert shelved.declared.attachments == shelved.documents
    assert shelved.declared.attachments_required == bool(shelved.documents)


@pytest.mark.parametrize(("length", "is_uid"), [(64, True), (65, False)])
def test_a_uid_has_at_most_64_characters(length: int, *, is_uid: bool) -> None:
    (form,) = IMAGING_STUDY.identifier.forms
    assert form.check is not None

    assert form.check("1" * length) == is_uid


def test_the_results_of_a_report_have_all_statuses_but_that_of_an_error() -> None:
    members = {part.name: part.statuses for part in DIAGNOSTIC_REPORT.parts if part.repeats}

    assert members == {
        "observation": {*OBSERVED.split()} - {"entered-in-error"},
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
