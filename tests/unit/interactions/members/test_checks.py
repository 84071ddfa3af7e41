"""Rules about what a report brings with it: its statuses, its keys and its references."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest

from fhirpub.app.context import create_context
from fhirpub.config.settings import Config
from fhirpub.errors import Issue
from fhirpub.fhir.strict_json import dumps, loads
from fhirpub.interactions.members.checks import check_members, merge_remarks
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.interactions.submission.record import Submission
from fhirpub.problems import ContentProblem
from fhirpub.testing.samples import new_id, new_member_id
from tests.bodies import register_body
from tests.panels import RESULTS, panel, result, specimen

CONTEXT = create_context(Config(), clock=lambda: 1_800_000_000_000)
TENANT_ID = "00000000-0000-4000-8000-000000000001"
RULE_OF_ID = "leads to no entry: there is no {} with this id"


def submission_of(body: dict[str, Any]) -> Submission:
    return from_parameters(loads(dumps(body)), CONTEXT.types["DiagnosticReport"])


def all_issues_of(*entries: dict[str, Any], **changes: Any) -> list[Issue]:
    submission = submission_of(panel("R-1", *entries, **changes))
    return [*chain.from_iterable(check_members(submission, CONTEXT, TENANT_ID))]


def issues_of(*entries: dict[str, Any], **changes: Any) -> list[Issue]:
    """Return what is wrong, and remarks, without those on codes of systems that are not held."""
    issues = all_issues_of(*entries, **changes)
    return [issue for issue in issues if issue.severity != "information"]


def found(*entries: dict[str, Any], **changes: Any) -> list[tuple[str, str, str]]:
    return [
        (issue.severity, issue.expression, issue.diagnostics)
        for issue in issues_of(*entries, **changes)
    ]


def at(number: int, element: str = "") -> str:
    """Return the place of the entry of a number, behind patient, organization and report."""
    return f"Parameters.parameter[{number + 2}].resource{element}"


def named(local_id: str, value: str, *, system: str = RESULTS, **changes: Any) -> dict[str, Any]:
    return result(local_id, identifier=[{"system": system, "value": value}], **changes)


def refer_to(*ids: str, type_name: str = "Observation") -> list[dict[str, str]]:
    return [{"reference": f"{type_name}/{id_}"} for id_ in ids]


def test_nothing_is_wrong_with_results_that_are_right() -> None:
    assert found(result("a"), result("b", hasMember=refer_to("a"))) == []


def test_without_members_nothing_is_asked() -> None:
    submission = submission_of(register_body("R-1"))

    assert [*check_members(submission, CONTEXT, TENANT_ID)] == []


def test_a_status_that_a_member_may_not_have_is_named() -> None:
    ((severity, place, said),) = found(result("a"), result("b", status="entered-in-error"))

    assert (severity, place) == ("error", at(2, ".status"))
    assert "entered-in-error" not in said
    assert "preliminary" in said


def test_a_status_of_a_member_without_a_rule_may_be_any() -> None:
    sent = specimen(status="entered-in-error")

    assert found(result("a", specimen={"reference": "Specimen/blood"}), sent) == []


def test_the_codes_of_each_member_are_looked_at_where_they_stand() -> None:
    issues = all_issues_of(result("a"), result("b", code={"text": "x"}), result("c"))

    assert [(issue.severity, issue.expression) for issue in issues] == [
        ("information", at(1, ".code.coding[0].system")),
        ("information", at(3, ".code.coding[0].system")),
    ]


def test_two_members_may_not_have_one_identifier() -> None:
    (issue,) = issues_of(named("a", "1"), named("b", "2"), named("c", "1"))

    assert (issue.severity, issue.expression) == ("error", at(3, ".identifier"))
    assert issue.diagnostics == (f"is the identifier of {at(1)}, too: use one of its own, or none")
    assert issue.details is ContentProblem.ENTRY_REPEATED


def test_three_members_of_one_identifier_are_all_compared_with_the_first() -> None:
    issues = issues_of(named("a", "1"), named("b", "1"), named("c", "1"))

    assert [issue.expression for issue in issues] == [
        at(2, ".identifier"),
        at(3, ".identifier"),
    ]
    assert all(at(1) in issue.diagnostics for issue in issues)


def test_one_value_in_two_systems_are_two_identifiers() -> None:
    assert found(named("a", "1"), named("b", "1", system="urn:other")) == []


def test_members_of_different_types_may_have_one_identifier() -> None:
    one = {"system": RESULTS, "value": "1"}

    assert (
        found(
            named("a", "1", specimen={"reference": "Specimen/blood"}), specimen(identifier=[one])
        )
        == []
    )


def test_a_reference_of_a_member_that_leads_to_no_entry_is_wrong() -> None:
    issue, *_more = issues_of(result("a", hasMember=refer_to("nowhere")))

    assert (issue.severity, issue.expression) == ("error", at(1, ".hasMember[0].reference"))
    assert issue.diagnostics == RULE_OF_ID.format("Observation")
    assert issue.details is ContentProblem.REFERENCE_UNRESOLVED


def test_a_reference_of_the_report_to_a_member_that_was_not_sent_is_wrong() -> None:
    errors = [one for one in found(result("a"), result=refer_to("a", "b")) if one[0] == "error"]

    assert errors == [
        (
            "error",
            "Parameters.parameter[2].resource.result[1].reference",
            RULE_OF_ID.format("Observation"),
        )
    ]


def test_the_report_may_refer_to_another_patient_than_it_brings() -> None:
    assert found(result("a"), subject={"reference": "Patient/another"}) == []


def test_a_member_may_not_refer_to_another_patient_than_was_sent() -> None:
    ((severity, place, said),) = found(result("a", subject={"reference": "Patient/another"}))

    assert (severity, place) == ("error", at(1, ".subject.reference"))
    assert said == RULE_OF_ID.format("Patient")


def test_a_reference_to_a_type_that_was_not_sent_may_lead_anywhere() -> None:
    assert found(result("a", specimen={"reference": "Specimen/elsewhere"})) == []


@pytest.mark.parametrize("version", ["", "/_history/1"])
def test_a_member_may_refer_to_one_that_was_registered_before(version: str) -> None:
    assert found(result("a", hasMember=refer_to(f"{new_member_id()}{version}"))) == []


def test_a_random_id_of_what_only_comes_with_others_is_a_mistake() -> None:
    sent = specimen(parent=[{"reference": f"Specimen/{new_id()}"}])
    errors = [
        one
        for one in found(result("a", specimen={"reference": "Specimen/blood"}), sent)
        if one[0] == "error"
    ]

    only_member = "Specimen" in CONTEXT.members and "Specimen" not in CONTEXT.types
    assert bool(errors) is only_member


def test_an_id_of_a_patient_here_may_be_of_either_form() -> None:
    sent = (result("a", subject={"reference": f"Patient/{id_()}"}) for id_ in IDS)

    assert [found(each) for each in sent] == [[], []]


IDS = (new_id, new_member_id)


def test_a_reference_that_is_no_text_is_left_to_other_rules() -> None:
    assert found(result("a", subject={"reference": 7}, specimen={"display": "x"})) == []


def test_a_member_does_not_lead_back_to_itself() -> None:
    (issue,) = issues_of(result("a", hasMember=refer_to("a")))

    assert (issue.severity, issue.expression) == ("error", at(1))
    assert issue.diagnostics == "leads back to itself by hasMember or derivedFrom"
    assert issue.details is ContentProblem.REFERENCE_WRONG


def test_a_long_way_back_is_found_once() -> None:
    ring = [
        result(f"o{number}", hasMember=refer_to(f"o{(number + 1) % 5}")) for number in range(5)
    ]

    assert [one[1] for one in found(*ring)] == [at(1)]


def test_a_way_back_by_two_elements_is_one() -> None:
    issues = found(result("a", hasMember=refer_to("b")), result("b", derivedFrom=refer_to("a")))

    assert [one[0] for one in issues] == ["error"]


def test_a_way_back_behind_others_is_found() -> None:
    issues = found(
        result("a", hasMember=refer_to("b", "c")),
        result("b"),
        result("c", hasMember=refer_to("d")),
        result("d", hasMember=refer_to("c")),
    )

    assert [one[1] for one in issues] == [at(3)]


def test_two_ways_to_one_member_lead_not_back() -> None:
    assert (
        found(
            result("a", hasMember=refer_to("b", "c")),
            result("b", hasMember=refer_to("d")),
            result("c", hasMember=refer_to("d")),
            result("d"),
        )
        == []
    )


def test_two_rings_are_both_found() -> None:
    issues = found(
        *(
            result(one, hasMember=refer_to(other))
            for one, other in (("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"))
        )
    )

    assert [one[1] for one in issues] == [at(1), at(3)]


def test_a_thousand_members_in_a_row_are_searched_without_recursion() -> None:
    row = [
        result(f"o{number}", hasMember=refer_to(f"o{number + 1}") if number < 999 else None)
        for number in range(1_000)
    ]

    assert found(*row) == []


def test_what_no_reference_leads_to_is_a_remark() -> None:
    (issue,) = issues_of(result("a"), result("b"), result=refer_to("a"))

    assert (issue.severity, issue.expression) == ("warning", at(2))
    assert issue.diagnostics == (
        "is stored, but no reference leads to it: readers of the report will not see it"
    )
    assert issue.details is ContentProblem.ENTRY_UNREFERENCED


def test_what_a_member_leads_to_is_seen() -> None:
    assert found(result("a", hasMember=refer_to("b")), result("b"), result=refer_to("a")) == []


def test_what_is_of_no_patient_is_a_remark() -> None:
    (issue,) = issues_of(result("a"), result("b", subject=None))

    assert (issue.severity, issue.expression) == ("warning", at(2))
    assert issue.diagnostics == "subject is missing: a search by patient will not find it"
    assert issue.details is ContentProblem.ELEMENT_RECOMMENDED


def test_a_practitioner_needs_no_patient() -> None:
    doctor = {"resourceType": "Practitioner", "id": "d1", "name": [{"family": "Paz"}]}

    assert found(result("a"), doctor, resultsInterpreter=[{"reference": "Practitioner/d1"}]) == []


def remark(at_: str, rule: str = "is missing") -> Issue:
    return Issue.warning(ContentProblem.ELEMENT_RECOMMENDED, rule, at_)


def test_errors_stand_before_remarks() -> None:
    error = Issue.error(ContentProblem.REFERENCE_WRONG, "is wrong", "a")
    submission = submission_of(panel("R-1", result("a")))

    merged = merge_remarks([remark("x"), error], submission)

    assert [issue.severity for issue in merged] == ["error", "warning"]


def test_one_remark_stands_for_many_places() -> None:
    places = [at(number, ".code") for number in (1, 2, 3)]
    submission = submission_of(panel("R-1", result("a")))

    assert len(merge_remarks(map(remark, places), submission)) == 1


def test_errors_of_many_places_stand_alone() -> None:
    errors = [
        Issue.error(ContentProblem.REFERENCE_WRONG, "is wrong", at(number, ".code"))
        for number in (1, 2)
    ]
    submission = submission_of(panel("R-1", result("a")))

    assert merge_remarks(errors, submission) == errors


def test_without_members_no_remarks_are_merged() -> None:
    remarks = [remark(at(number, ".code")) for number in (1, 2)]

    assert merge_remarks(iter(remarks), submission_of(register_body("R-1"))) == remarks
