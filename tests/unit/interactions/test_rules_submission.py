"""What rules find in a submission whose structure is right: in its resource, parts and entries."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any

import pytest

from fhirpub.interactions import rules
from fhirpub.interactions.submission.record import Submission
from fhirpub.plugin_api import Entry
from tests.unit.interactions.checks.submitted import places, submitted
from tests.unit.interactions.updating import CONTEXT, TENANT

ENTRY = "Parameters.parameter"
UNSUPPORTED = [{"url": "urn:x", "valueCode": "a"}]


def found_in(submission: Submission) -> list[str]:
    issues = chain.from_iterable(rules.check_submission(submission, CONTEXT, TENANT.id))
    return [place for place, _rule in places(one for one in issues if one.severity == "error")]


def test_nothing_is_wrong_with_a_report_that_is_right() -> None:
    assert found_in(submitted()) == []


@pytest.mark.parametrize(
    ("changes", "number"),
    [("patient_changes", 0), ("organization_changes", 1), ("report_changes", 2)],
)
def test_modifiers_are_refused_wherever_they_stand(changes: str, number: int) -> None:
    changed: dict[str, Any] = {changes: {"modifierExtension": UNSUPPORTED}}

    assert found_in(submitted(**changed)) == [f"{ENTRY}[{number}].resource.modifierExtension"]


def test_modifiers_around_the_entries_are_refused() -> None:
    around = Entry({"resourceType": "Parameters", "implicitRules": "urn:x"}, "Parameters")

    assert found_in(replace(submitted(), envelope=around)) == ["Parameters.implicitRules"]


def test_the_id_of_the_tenant_is_refused_in_the_system_of_an_identifier() -> None:
    identifier = [{"system": f"https://lab.example/{TENANT.id}", "value": "1"}]

    assert found_in(submitted(report_changes={"identifier": identifier})) == [
        f"{ENTRY}[2].resource.identifier[0].system"
    ]


def test_rules_of_parts_and_references_are_asked() -> None:
    changes = {"subject": {"reference": "Patient/other"}, "status": "nonsense"}
    submission = submitted(report_changes=changes, patient_changes={"birthDate": "2000-01"})

    assert found_in(submission) == [
        f"{ENTRY}[2].resource.status",
        f"{ENTRY}[0].resource.birthDate",
        f"{ENTRY}[2].resource.subject.reference",
    ]
