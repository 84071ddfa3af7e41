"""The long way: everything that is wrong with a submission, in the order of the refusal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.config.patients import PatientsConfig
from fhirpub.config.settings import Config
from fhirpub.errors import InvalidContent, Issue
from fhirpub.interactions.submission.record import Submission
from fhirpub.interactions.validation.explanation import explain
from fhirpub.interactions.validation.validation import take_documents
from fhirpub.problems import ContentProblem
from fhirpub.runtime.stages import run_to_completion
from tests.panels import result
from tests.unit.interactions.checks.submitted import submitted
from tests.unit.interactions.members.test_versions import submitted as with_members
from tests.unit.interactions.updating import CONTEXT, TENANT

REPORT, PATIENT = "Parameters.parameter[2].resource", "Parameters.parameter[0].resource"
KNOWN = Issue.warning(ContentProblem.RULE_BROKEN, "was known before", "a")
FIRST = Issue.error(ContentProblem.RULE_BROKEN, "is wrong", "b", code="business-rule")
SYSTEM = "https://registry.example/persons"


def explained(
    submission: Submission, *known: Issue, tenant_id: str = TENANT.id, **changes: Any
) -> list[Issue]:
    take_documents(submission)
    context = replace(CONTEXT, **changes)
    return run_to_completion(explain(submission, known, context=context, tenant_id=tenant_id))


def refused(submission: Submission, *known: Issue, **changes: Any) -> list[Issue]:
    with pytest.raises(InvalidContent) as raised:
        explained(submission, *known, **changes)
    return [*raised.value.issues]


def places(issues: list[Issue]) -> list[str]:
    return [issue.expression for issue in issues if issue.severity == "error"]


def test_nothing_is_wrong_with_what_is_right() -> None:
    assert places(explained(submitted())) == []


def test_what_was_known_before_comes_first() -> None:
    assert explained(submitted(), KNOWN)[0] == KNOWN
    period = {"start": "2026-11-21", "end": "2026-11-20"}

    found = explained(
        submitted(report_changes={"effectiveDateTime": None, "effectivePeriod": period}), KNOWN
    )

    assert found[0] == KNOWN
    assert found[1].expression == f"{REPORT}.effectivePeriod"


def test_a_wrong_structure_is_refused_with_the_errors_known_before() -> None:
    found = refused(submitted(report_changes={"status": 5}), KNOWN, FIRST)

    assert places(found) == [f"{REPORT}.status", "b"]
    assert KNOWN not in found


def test_what_was_wrong_about_the_entries_comes_before_their_structure() -> None:
    submission = submitted(report_changes={"status": 5})
    submission.wrong = [FIRST]

    assert places(refused(submission)) == ["b", f"{REPORT}.status"]


def test_a_document_that_is_no_base64_is_named_in_its_entry() -> None:
    form = {"contentType": "application/pdf", "data": "AAAA!"}

    found = refused(submitted(report_changes={"presentedForm": [form]}))

    assert f"{REPORT}.presentedForm[0].data" in places(found)
    assert all(one.startswith(f"{REPORT}.presentedForm[0]") for one in places(found))


def _category(report: dict[str, Any]) -> None:
    del report["category"]


def _period(report: dict[str, Any]) -> None:
    del report["effectiveDateTime"]
    report["effectivePeriod"] = {"start": "2026-11-21", "end": "2026-11-20"}


@pytest.mark.parametrize(
    ("change", "place"),
    [(_category, f"{REPORT}.category"), (_period, f"{REPORT}.effectivePeriod")],
    ids=["a rule of the type", "a rule of FHIR"],
)
def test_rules_are_asked_beside_a_wrong_structure(
    change: Callable[[dict[str, Any]], None], place: str
) -> None:
    submission = submitted(patient_changes={"gender": 5})
    change(submission.entry.resource)

    found = places(refused(submission))

    assert found == [f"{PATIENT}.gender", place]


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"report_changes": {"subject": {"reference": 5}}}, f"{REPORT}.subject.reference"),
        ({"report_changes": {"text": {"status": "generated", "div": 5}}}, f"{REPORT}.text.div"),
        ({"patient_changes": {"id": 5}}, f"{PATIENT}.id"),
    ],
    ids=["in a reference", "in the narrative", "in a part"],
)
def test_what_only_follows_from_a_wrong_structure_is_not_named_as_well(
    changes: dict[str, Any], place: str
) -> None:
    assert places(refused(submitted(**changes))) == [place]


def test_members_are_checked_with_all_else() -> None:
    twice = with_members(result("a"), result("a"))

    assert any("parameter[4]" in one for one in places(refused(twice)))


def with_two_numbers(**changes: Any) -> tuple[Submission, Config]:
    """Return a patient with two numbers of a register, and settings that name persons by it."""
    numbers = [{"system": SYSTEM, "value": value} for value in "12"]
    config = replace(CONTEXT.config, patients=PatientsConfig(person_systems=[SYSTEM]))
    return submitted(patient_changes={"identifier": numbers, **changes}), config


def test_an_ambiguous_person_is_a_warning_that_refuses_nothing() -> None:
    submission, config = with_two_numbers()

    (issue,) = [
        one for one in explained(submission, config=config) if one.details == "person-ambiguous"
    ]
    assert issue.severity == "warning"
    assert issue.expression == f"{PATIENT}.identifier"


def test_an_ambiguous_person_adds_no_error_to_a_refusal() -> None:
    submission, config = with_two_numbers(gender=5)

    assert places(refused(submission, config=config)) == [f"{PATIENT}.gender"]


@pytest.mark.parametrize(
    ("tenant_id", "errors"),
    [(TENANT.id, []), ("other", ["Parameters.parameter[1].resource.identifier[0].value"])],
    ids=["its own", "another"],
)
def test_the_rules_of_a_part_know_the_tenant(tenant_id: str, errors: list[str]) -> None:
    identifier = {"system": SYSTEM, "value": TENANT.id}
    submission = submitted(organization_changes={"identifier": [identifier]})
    fhir = replace(CONTEXT.config.fhir, organization_namespaces=[SYSTEM])
    config = replace(CONTEXT.config, fhir=fhir)

    found = explained(submission, tenant_id=tenant_id, config=config)

    assert places(found) == errors
    assert [one.expression for one in found if one.details == "organization-mismatch"] == errors
