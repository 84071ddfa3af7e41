"""FHIR's own rules between elements, of the resource and of all that comes with it."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.fhir.strict_json import dumps, loads
from fhirpub.interactions.checks.fhir_rules import broken_fhir_rules
from fhirpub.interactions.submission.contained import from_contained
from tests.bodies import organization, patient, report
from tests.unit.interactions.checks.submitted import places, submitted
from tests.unit.interactions.updating import CONTEXT

REPORT = "Parameters.parameter[2].resource"
PATIENT = "Parameters.parameter[0].resource"


def found(**changes: Any) -> list[str]:
    return [place for place, _rule in places(broken_fhir_rules(submitted(**changes)))]


def test_nothing_is_wrong_with_a_report_that_is_right() -> None:
    assert found() == []


def test_a_period_that_ends_before_it_begins_is_wrong() -> None:
    period = {"start": "2026-11-21", "end": "2026-11-20"}

    assert found(report_changes={"effectiveDateTime": None, "effectivePeriod": period}) == [
        f"{REPORT}.effectivePeriod"
    ]


def test_the_parts_are_looked_at_where_they_stand() -> None:
    period = {"start": "2026-11-21", "end": "2026-11-20"}

    assert found(patient_changes={"name": [{"family": "Ash", "period": period}]}) == [
        f"{PATIENT}.name[0].period"
    ]


def test_a_reference_says_which_type_it_leads_to() -> None:
    subject = {"reference": "Patient/p1", "type": "Group"}

    assert found(report_changes={"subject": subject}) == [f"{REPORT}.subject.type"]


def test_a_contained_resource_that_nothing_refers_to_is_wrong() -> None:
    contained = [{"resourceType": "Group", "id": "g", "type": "person", "actual": True}]

    (place,) = found(report_changes={"contained": contained})

    assert place.startswith(f"{REPORT}.contained")


def test_what_a_part_of_create_contains_has_the_type_that_references_to_it_name() -> None:
    employer = {"resourceType": "Organization", "id": "e", "name": "Lab"}
    one = patient(id="p1", managingOrganization={"reference": "#e", "type": "Practitioner"})
    body = {
        **report("R-1", subject={"reference": "#p1"}, performer=[{"reference": "#o1"}]),
        "contained": [one, organization(id="o1"), employer],
    }
    submission = from_contained(loads(dumps(body)), CONTEXT.types["DiagnosticReport"])

    assert [place for place, _rule in places(broken_fhir_rules(submission))] == [
        "DiagnosticReport.contained[0].managingOrganization.type"
    ]


@pytest.mark.parametrize(("type_name", "wrong"), [("Patient", 0), ("Group", 1)])
def test_references_to_parts_are_compared_beside_those_to_what_parts_contain(
    type_name: str, wrong: int
) -> None:
    employer = {"resourceType": "Organization", "id": "e", "name": "Lab"}
    one = patient(id="p1", managingOrganization={"reference": "#e"})
    subject = {"reference": "#p1", "type": type_name}
    body = {
        **report("R-1", subject=subject, performer=[{"reference": "#o1"}]),
        "contained": [one, organization(id="o1"), employer],
    }
    submission = from_contained(loads(dumps(body)), CONTEXT.types["DiagnosticReport"])

    assert [place for place, _rule in places(broken_fhir_rules(submission))] == [
        "DiagnosticReport.subject.type"
    ] * wrong


def test_two_contained_resources_with_one_id_are_wrong() -> None:
    one = {"resourceType": "Group", "id": "g", "type": "person", "actual": True}
    changes = {"contained": [one, dict(one)], "basedOn": [{"reference": "#g"}]}

    assert f"{REPORT}.contained[1].id" in found(report_changes=changes)
