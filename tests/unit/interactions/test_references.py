"""References between entries: where they must lead, what is remarked, and what they become."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import Issue
from fhirpub.fhir.strict_json import dumps, loads
from fhirpub.interactions.references import (
    describe,
    other_references,
    point_references_at,
    references_to_parts,
    references_to_untaken,
)
from fhirpub.interactions.submission.contained import from_contained
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.interactions.submission.record import Submission
from fhirpub.plugin_api import Entry
from fhirpub.problems import ContentProblem
from fhirpub.testing.samples import new_id
from tests.bodies import register_body, self_contained
from tests.panels import panel, result
from tests.unit.interactions.checks.submitted import places, submitted
from tests.unit.interactions.updating import CONTEXT

TYPE = CONTEXT.types["DiagnosticReport"]
HELD_HERE = "is kept as it is: whether it is held here is not looked up"
NOT_HERE = "refers to nothing that is held here: "


def contained(**changes: Any) -> Submission:
    return from_contained(loads(dumps(self_contained("R-1", **changes))), TYPE)


def to_parts(**changes: Any) -> list[tuple[str, str]]:
    return places(references_to_parts(submitted(report_changes=changes)))


def test_references_to_all_parts_are_right() -> None:
    assert to_parts() == []
    assert places(references_to_parts(contained())) == []


def test_a_part_must_be_referred_to() -> None:
    submission = submitted(report_changes={"subject": None})

    [issue] = references_to_parts(submission)

    assert (issue.expression, issue.diagnostics) == ("subject", "is required")
    assert issue.details == ContentProblem.ELEMENT_REQUIRED


def test_a_reference_to_something_else_than_the_part_is_wrong() -> None:
    said = (
        "must refer to the Patient of the entry patient, by Patient/ and the id of that resource"
    )

    for literal in ("Patient/p2", "Organization/o1", "#p1"):
        assert to_parts(subject={"reference": literal}) == [("subject.reference", said)]
    assert to_parts(subject={"display": "a"}) == [("subject.reference", said)]


def test_one_of_several_references_must_lead_to_the_part() -> None:
    other, right = {"reference": "Organization/o2"}, {"reference": "Organization/o1"}

    assert to_parts(performer=[other, right]) == []
    [(place, _said)] = to_parts(performer=[other, other])
    assert place == "performer[0].reference"


def test_a_contained_part_is_referred_to_by_its_id() -> None:
    submission = contained()
    submission.entry.resource["subject"] = {"reference": "Patient/p1"}

    assert places(references_to_parts(submission)) == [
        ("subject.reference", "must refer to the contained Patient, by # and its id")
    ]


def test_a_part_without_an_id_needs_no_reference() -> None:
    submission = submitted(
        patient_changes={"id": None}, report_changes={"subject": {"reference": "Patient/p1"}}
    )

    assert places(references_to_parts(submission)) == []


def remarks(reference: dict[str, Any]) -> list[tuple[str, str, str]]:
    submission = submitted(report_changes={"basedOn": [reference]})
    found = other_references(submission, CONTEXT)
    return [(one.severity, one.expression, one.diagnostics) for one in found]


AT = "basedOn[0].reference"


@pytest.mark.parametrize("type_name", ["Patient", "Organization", "DiagnosticReport"])
def test_a_reference_in_the_form_of_ours_is_kept_with_a_remark(type_name: str) -> None:
    literal = f"{type_name}/{new_id()}"

    assert remarks({"reference": literal}) == [("information", AT, HELD_HERE)]
    assert remarks({"reference": f"{literal}/_history/2"}) == [("information", AT, HELD_HERE)]


@pytest.mark.parametrize(
    ("literal", "advice"),
    [
        ("Patient/p2", "contain it, or give an absolute URL"),
        ("Encounter/1f3b1026-a480-4272-af8f-ee561fef767f", "contain it, or give an absolute URL"),
        (
            "Patient?identifier=1",
            "a search is a reference in transactions only; send Reference.identifier",
        ),
        ("p1", "a reference is Type/id, #id or an absolute URL"),
    ],
)
def test_a_reference_that_leads_nowhere_is_a_warning(literal: str, advice: str) -> None:
    assert remarks({"reference": literal}) == [("warning", AT, f"{NOT_HERE}{advice}")]


@pytest.mark.parametrize(
    "reference",
    [
        {"reference": "https://x.example/Patient/1"},
        {"reference": "urn:uuid:0b7e2a54-6d1c-4f0e-9a58-3c41f7d2e901"},
        {"reference": "#a"},
        {"reference": "Patient/p1"},
        {"reference": 7},
        {"display": "a"},
    ],
)
def test_other_references_need_no_remark(reference: dict[str, Any]) -> None:
    assert remarks(reference) == []


def with_untaken(**changes: Any) -> Submission:
    body = register_body("R-1", **changes)
    other = {"resourceType": "Practitioner", "id": "d1"}
    body["parameter"].append({"name": "doctor", "resource": other})
    return from_parameters(loads(dumps(body)), TYPE)


@pytest.mark.parametrize("literal", ["Practitioner/d1", "Practitioner/d1/_history/3"])
def test_a_reference_to_an_entry_that_is_not_taken_is_refused(literal: str) -> None:
    submission = with_untaken(resultsInterpreter=[{"reference": literal}])

    [issue] = references_to_untaken(submission)

    assert issue.expression == ("Parameters.parameter[2].resource.resultsInterpreter[0].reference")
    assert issue.diagnostics == (
        "refers to Parameters.parameter[3].resource, which is not taken: contain it and refer to "
        "its #id"
    )
    assert issue.details == ContentProblem.REFERENCE_TO_IGNORED


def test_an_entry_that_nothing_refers_to_may_be_left() -> None:
    for literal in ("Practitioner/d2", "#d1", "https://x.example/Practitioner/d1"):
        submission = with_untaken(resultsInterpreter=[{"reference": literal}])
        assert list(references_to_untaken(submission)) == []


def pointed(submission: Submission, **ids: str) -> dict[str, Any]:
    point_references_at(submission, ids, "R")
    return submission.entry.resource


def test_references_lead_to_the_ids_that_parts_are_given() -> None:
    resource = pointed(submitted(), patient="P", organization="O")

    assert resource["subject"]["reference"] == "Patient/P"
    assert resource["performer"][0]["reference"] == "Organization/O"


def test_a_reference_that_must_lead_to_a_part_says_who_it_is() -> None:
    resource = pointed(submitted(), patient="P", organization="O")

    assert resource["subject"] == {
        "reference": "Patient/P",
        "identifier": {"system": "http://hl7.org/fhir/sid/AR", "value": "AAB123456"},
        "display": "Ana Inés López",
    }
    assert resource["performer"][0]["display"] == "Laboratorio Uno"


def test_references_to_others_stay_as_they_are() -> None:
    given = [{"reference": "ServiceRequest/s1"}]

    resource = pointed(submitted(report_changes={"basedOn": given}), patient="P", organization="O")

    assert resource["basedOn"] == given


def test_references_between_parts_lead_to_the_ids_that_they_are_given() -> None:
    employer = {"reference": "Organization/o1"}
    submission = submitted(patient_changes={"managingOrganization": employer})

    pointed(submission, patient="1", organization="2")

    one = submission.parts["patient"].resource
    assert one["managingOrganization"]["reference"] == "Organization/2"


def test_a_contained_part_leads_to_its_container_by_the_id_of_that() -> None:
    submission = contained()
    submission.parts["patient"].resource["link"] = [{"other": {"reference": "#"}}]

    point_references_at(submission, {"patient": "P", "organization": "O"}, "R")

    linked = submission.parts["patient"].resource["link"][0]["other"]
    assert linked["reference"] == "DiagnosticReport/R"


def test_members_lead_to_the_resource_and_its_parts() -> None:
    to_report = {"reference": "DiagnosticReport/r1"}
    body = panel("R-1", result("a", partOf=[to_report], derivedFrom=[to_report]))
    submission = from_parameters(loads(dumps(body)), TYPE)
    [key] = submission.members

    resource = pointed(submission, patient="P", organization="O", **{key: "M"})

    member = submission.members[key].resource
    assert member["partOf"][0]["reference"] == "DiagnosticReport/R"
    assert member["subject"]["reference"] == "Patient/P"
    assert "display" not in member["subject"]
    assert resource["result"] == [{"reference": "Observation/M"}]


def described(part: dict[str, Any], **reference: Any) -> dict[str, Any]:
    describe(reference, part)
    return reference


def test_what_the_sender_gave_is_kept() -> None:
    part = {"identifier": [{"system": "a", "value": "b"}], "name": "c"}
    given = {"identifier": {"value": "x"}, "display": "y"}

    assert described(part, **given) == given


def test_the_first_whole_identifier_alone_describes_a_part() -> None:
    rows = [{"value": "1"}, {"system": "a"}, {"system": "a", "value": "2", "use": "usual"}]
    others = [{"system": "b", "value": "3"}]

    assert described({"identifier": [*rows, *others]}) == {
        "identifier": {"system": "a", "value": "2"}
    }


@pytest.mark.parametrize(
    ("name", "display"),
    [
        ([{"text": "A B", "family": "C"}], "A B"),
        ([{"given": ["A", "B"], "family": "C"}], "A B C"),
        ([{"family": "C"}], "C"),
        ([{"given": ["A"]}], "A"),
        ([{"use": "old", "family": "A"}, {"family": "B"}], "B"),
        ("Lab", "Lab"),
    ],
)
def test_a_part_is_shown_by_its_name(name: Any, display: str) -> None:
    assert described({"name": name}) == {"display": display}


@pytest.mark.parametrize("name", [None, "", [], [{}], 7])
def test_a_part_without_a_name_is_shown_by_nothing(name: Any) -> None:
    assert described({"name": name}) == {}


def test_a_part_to_which_no_element_must_refer_need_not_be_referred_to() -> None:
    parts = tuple(replace(part, referred_by="") for part in TYPE.parts)
    submission = replace(
        submitted(report_changes={"subject": None, "performer": None}),
        type=replace(TYPE, parts=parts),
    )

    assert places(references_to_parts(submission)) == []


def test_references_to_what_is_not_taken_are_left_alone_if_an_entry_may_be_misnamed() -> None:
    untaken = Entry({"resource": {"resourceType": "Device", "id": "d"}}, "at")
    referring = {"basedOn": [{"reference": "Device/d"}]}
    submission = replace(submitted(report_changes=referring), untaken=[untaken])

    assert [
        place.rpartition(".")[0] for place, _ in places(references_to_untaken(submission))
    ] == ["Parameters.parameter[2].resource.basedOn[0]"]
    submission.wrong = [Issue.error(ContentProblem.ENTRY_MISSING, "is required", "at")]
    assert places(references_to_untaken(submission)) == []


def test_references_to_parts_behind_one_that_was_not_sent_are_looked_at() -> None:
    submission = submitted(report_changes={"performer": [{"reference": "Organization/x"}]})
    del submission.parts["patient"]

    assert [place for place, _rule in places(references_to_parts(submission))] == [
        "performer[0].reference"
    ]
