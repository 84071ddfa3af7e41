"""Which elements of the types of the shelf can be updated, are searched by, and are in events."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from fhirpub.plugin_api import CompositionEvents, ResourceType
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


class Promised(NamedTuple):
    """Names of elements, with blanks between them."""

    updatable: str
    searched: str
    codings: str
    times: str
    event: tuple[str, str]
    """What the names of its events begin with, and the elements that they have."""
    referred: dict[str, str]
    """Which element refers to each resource that comes along."""


RESULTS = (
    "value-concept value-date value-quantity value-string code-value-concept code-value-date"
    " code-value-quantity code-value-string component-code component-value-concept"
    " component-value-quantity component-code-value-concept component-code-value-quantity"
    " combo-code combo-value-concept combo-value-quantity combo-code-value-concept"
    " combo-code-value-quantity"
)
OBSERVED = "effectiveDateTime effectiveInstant effectivePeriod.start effectivePeriod.end issued"
OCCURRENCE = "authoredOn occurrenceDateTime occurrencePeriod.start occurrencePeriod.end"
TYPES: list[tuple[ResourceType, Promised]] = [
    (
        DIAGNOSTIC_REPORT,
        Promised(
            "status conclusion presentedForm",
            "category code date issued subject performer results-interpreter result specimen"
            " based-on",
            "category code",
            "effectiveDateTime effectivePeriod.start effectivePeriod.end issued"
            " presentedForm.creation",
            ("diagnostic_report", ""),
            {
                "patient": "subject",
                "organization": "performer",
                "observation": "result",
                "specimen": "specimen",
                "serviceRequest": "basedOn",
                "practitioner": "resultsInterpreter",
            },
        ),
    ),
    (
        OBSERVATION,
        Promised(
            "status value[x] dataAbsentReason interpretation component issued note",
            f"category code date subject performer {RESULTS}",
            "category code dataAbsentReason interpretation component.code",
            OBSERVED,
            ("observation", "category code effective[x] issued"),
            {"patient": "subject", "organization": "", "practitioner": "performer"},
        ),
    ),
    (
        SPECIMEN,
        Promised(
            "status receivedTime condition note",
            "type accession container-id collected subject parent",
            "type condition",
            "receivedTime collection.collectedDateTime collection.collectedPeriod.start"
            " collection.collectedPeriod.end",
            ("specimen", "type receivedTime"),
            {"patient": "subject"},
        ),
    ),
    (
        ENCOUNTER,
        Promised(
            "status statusHistory period length reasonCode diagnosis",
            "class type date length subject participant service-provider",
            "class type serviceType reasonCode",
            "period.start period.end",
            ("encounter_outpatient", "class type serviceType period"),
            {
                "patient": "subject",
                "organization": "serviceProvider",
                "practitioner": "participant.individual",
            },
        ),
    ),
    (
        IMAGING_STUDY,
        Promised(
            "status series numberOfSeries numberOfInstances note description",
            "modality started subject basedon interpreter",
            "procedureCode reasonCode",
            "started series.started",
            ("imaging_study", "modality started procedureCode"),
            {"patient": "subject", "practitioner": "interpreter"},
        ),
    ),
    (
        DOCUMENT_REFERENCE,
        Promised(
            "status docStatus content description",
            "type category date period subject author custodian relatesto",
            "type category",
            "date content.attachment.creation context.period.start context.period.end",
            ("document_reference", "docStatus type category"),
            {"patient": "subject", "organization": "custodian", "practitioner": "author"},
        ),
    ),
    (
        IMMUNIZATION,
        Promised(
            "status statusReason note reaction",
            "date vaccine-code lot-number performer",
            "vaccineCode statusReason reasonCode route site",
            "occurrenceDateTime recorded reaction.date",
            ("immunization", "vaccineCode occurrence[x]"),
            {"patient": "patient", "organization": "", "practitioner": "performer.actor"},
        ),
    ),
    (
        SERVICE_REQUEST,
        Promised(
            "status priority occurrence[x] note patientInstruction",
            "instantiates-uri intent priority category code authored occurrence subject"
            " requester performer",
            "category code orderDetail reasonCode",
            OCCURRENCE,
            ("service_request", "intent priority doNotPerform category code authoredOn"),
            {"patient": "subject", "organization": "", "practitioner": "requester"},
        ),
    ),
    (
        DEVICE_REQUEST,
        Promised(
            "status priority occurrence[x] note",
            "instantiates-uri intent code authored-on event-date subject requester",
            "codeCodeableConcept reasonCode",
            OCCURRENCE,
            ("device_request", "intent priority code[x] authoredOn"),
            {"patient": "subject", "organization": "", "practitioner": "requester"},
        ),
    ),
    (
        MEDICATION_REQUEST,
        Promised(
            "status statusReason note",
            "intent category code authoredon subject requester",
            "category medicationCodeableConcept reasonCode statusReason",
            "authoredOn",
            (
                "medication_request",
                "intent priority doNotPerform medication[x] authoredOn",
            ),
            {"patient": "subject", "organization": "", "practitioner": "requester"},
        ),
    ),
]
every_type = pytest.mark.parametrize(
    ("declared", "promised"), TYPES, ids=[declared.name for declared, _ in TYPES]
)


@every_type
def test_an_update_may_replace_these_elements_and_no_others(
    declared: ResourceType, promised: Promised
) -> None:
    assert declared.updatable == {*promised.updatable.split()}


@every_type
def test_a_type_is_searched_by_these_parameters(
    declared: ResourceType, promised: Promised
) -> None:
    assert [one.name for one in declared.search] == promised.searched.split()


@every_type
def test_codes_of_these_elements_are_looked_up(declared: ResourceType, promised: Promised) -> None:
    assert {*declared.codings} == {*promised.codings.split()}


@every_type
def test_times_of_these_elements_are_stored_in_utc(
    declared: ResourceType, promised: Promised
) -> None:
    assert {*declared.times} == {*promised.times.split()}


@every_type
def test_events_have_these_elements(declared: ResourceType, promised: Promised) -> None:
    assert isinstance(declared.events, CompositionEvents)
    prefix, elements = promised.event

    assert declared.events.composition == prefix
    assert [*declared.events.elements] == elements.split()


@every_type
def test_each_resource_that_comes_along_is_referred_to_by_its_element(
    declared: ResourceType, promised: Promised
) -> None:
    assert {part.name: part.referred_by for part in declared.parts} == promised.referred


PLAIN_PATHS = {
    "results-interpreter": ("resultsInterpreter",),
    "based-on": ("basedOn",),
    "date": ("effectiveDateTime", "effectivePeriod"),
}


def test_a_parameter_of_reports_compares_the_element_of_its_name() -> None:
    found = {one.name: one.paths for one in DIAGNOSTIC_REPORT.search}

    assert found == {name: PLAIN_PATHS.get(name, (name,)) for name in found}


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("code-value-concept", "code", "value-concept"),
        ("code-value-date", "code", "value-date"),
        ("code-value-quantity", "code", "value-quantity"),
        ("code-value-string", "code", "value-string"),
        ("component-code-value-concept", "component-code", "component-value-concept"),
        ("component-code-value-quantity", "component-code", "component-value-quantity"),
        ("combo-code-value-concept", "combo-code", "combo-value-concept"),
        ("combo-code-value-quantity", "combo-code", "combo-value-quantity"),
    ],
)
def test_a_composite_compares_a_code_with_the_value_beside_it(
    name: str, first: str, second: str
) -> None:
    (found,) = [one for one in OBSERVATION.search if one.name == name]

    assert found.components == (first, second)


@pytest.mark.parametrize(
    ("member", "times", "codings"),
    [
        (
            "observation",
            OBSERVED,
            "category code dataAbsentReason interpretation component.code",
        ),
        ("specimen", "receivedTime collection.collectedDateTime", "type"),
        (
            "serviceRequest",
            "authoredOn occurrenceDateTime",
            "category code orderDetail reasonCode",
        ),
        ("practitioner", "", ""),
    ],
)
def test_members_of_a_report_are_checked_as_resources_of_their_own(
    member: str, times: str, codings: str
) -> None:
    (part,) = [one for one in DIAGNOSTIC_REPORT.parts if one.name == member]

    assert {*part.times} == {*times.split()}
    assert {*part.codings} == {*codings.split()}
    assert part.patient == ("" if member == "practitioner" else "subject")
    assert not part.include_in_events


def test_results_of_a_report_are_found_as_observations_are_and_by_what_they_refer_to() -> None:
    (part,) = [one for one in DIAGNOSTIC_REPORT.parts if one.name == "observation"]
    names = {one.name for one in part.search}

    references = {"specimen", "based-on", "has-member", "derived-from"}
    assert names == {one.name for one in OBSERVATION.search} | references


def test_a_specimen_is_known_by_what_is_on_its_labels() -> None:
    rule = SPECIMEN.identifier

    assert rule.elements == ("accessionIdentifier", "identifier", "container.identifier")
    assert rule.most == 20
    assert [(form.blanks, form.case) for form in rule.forms] == [("remove", "upper")]


def test_a_study_is_known_by_its_uid_among_other_numbers() -> None:
    rule = IMAGING_STUDY.identifier

    assert (rule.most, rule.systems) == (20, ("urn:dicom:uid",))
    assert [(form.system, form.prefix) for form in rule.forms] == [("urn:dicom:uid", "urn:oid:")]


def test_a_document_is_known_by_its_master_identifier() -> None:
    assert DOCUMENT_REFERENCE.identifier.elements == ("masterIdentifier",)


def test_a_vaccination_is_not_known_by_a_number_of_the_person() -> None:
    rule = IMMUNIZATION.identifier

    assert rule.uses == ("official", "usual", "", "secondary")
    assert {system.rpartition("/")[2] for system in rule.refused_systems} == {
        *("us-ssn", "us-mbi", "us-medicare")
    }
