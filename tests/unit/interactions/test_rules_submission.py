"""What rules find in a submission whose structure is right: in its resource, parts and entries."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any

import pytest

from fhirpub.errors import Issue
from fhirpub.interactions import rules
from fhirpub.interactions.submission.record import Submission
from fhirpub.interactions.validation.usual import find_plain
from fhirpub.plugin_api import Entry
from fhirpub.problems import ContentProblem
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


# What marks of plain resources must not hide


def test_what_is_wrong_with_a_part_behind_a_plain_one_is_named() -> None:
    submission = submitted(organization_changes={"name": 5})
    find_plain(submission, CONTEXT)

    found = chain.from_iterable(rules.structure(submission, CONTEXT, TENANT.id))

    assert submission.parts["patient"].is_plain
    assert [place for place, _rule in places(found)] == [f"{ENTRY}[1].resource.name"]


def test_entities_become_characters_in_a_part_of_a_plain_resource() -> None:
    div = '<div xmlns="http://www.w3.org/1999/xhtml">&eacute;</div>'
    submission = submitted(patient_changes={"text": {"status": "generated", "div": div}})
    find_plain(submission, CONTEXT)

    rules.write_narratives_in_characters(submission)

    assert submission.entry.is_plain
    assert submission.parts["patient"].resource["text"]["div"].endswith(">é</div>")


@pytest.mark.parametrize(
    ("problem", "is_said"),
    [(ContentProblem.CODE_NOT_ALLOWED, True), (ContentProblem.RULE_BROKEN, False)],
)
def test_of_a_code_that_fhir_lacks_only_what_a_rule_says_of_codes_is_said(
    problem: ContentProblem, *, is_said: bool
) -> None:
    submission = submitted(patient_changes={"gender": "x"})
    said = Issue.error(problem, "must be one of a", f"{ENTRY}[0].resource.gender")
    declared = replace(submission.declared["patient"], rules=lambda _entry, _context: [said])
    submission.declared = {**submission.declared, "patient": declared}

    (found,) = chain.from_iterable(rules.structure(submission, CONTEXT, TENANT.id))

    assert (found == said) is is_said
    assert found.details == "code-not-allowed"


def test_a_reference_to_an_entry_that_is_not_taken_is_refused() -> None:
    submission = submitted(report_changes={"encounter": {"reference": "Encounter/e"}})
    entry = {"name": "visit", "resource": {"resourceType": "Encounter", "id": "e"}}
    submission.untaken = [Entry(entry, f"{ENTRY}[3]")]

    assert found_in(submission) == [f"{ENTRY}[2].resource.encounter.reference"]
