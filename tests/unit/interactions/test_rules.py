"""Rules for every type: their order and limits, statuses, codes, and times in UTC."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from fhirpub.config.settings import Config, FhirConfig, LimitsConfig
from fhirpub.errors import BrokenRule, InvalidContent, Issue, TooLarge
from fhirpub.fhir.document import Document
from fhirpub.interactions import rules
from fhirpub.interactions.context import Context
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.plugin_api import IdentifierRule
from fhirpub.problems import ContentProblem
from tests.panels import panel, specimen
from tests.unit.interactions.checks.submitted import places, submitted
from tests.unit.interactions.updating import CONTEXT, TENANT

ROLES = "http://terminology.hl7.org/CodeSystem/v2-0203"
TYPE = CONTEXT.types["DiagnosticReport"]
WRONG = Issue.error(ContentProblem.ELEMENT_MALFORMED, "is wrong", "a")
BROKEN = Issue.error(ContentProblem.RULE_BROKEN, "is broken", "b", code="business-rule")
WARNING = Issue.warning(ContentProblem.RULE_BROKEN, "is strange", "c")
REMARK = Issue.information(ContentProblem.RULE_BROKEN, "is noted", "d")


def with_limits(**limits: int) -> Context:
    return replace(CONTEXT, config=replace(Config(), limits=LimitsConfig(**limits)))


def test_without_errors_all_issues_are_returned() -> None:
    assert rules.refuse([REMARK, WARNING], CONTEXT) == [REMARK, WARNING]
    assert rules.refuse([], CONTEXT) == []


def test_errors_of_rules_alone_are_broken_rules() -> None:
    with pytest.raises(BrokenRule) as refused:
        rules.refuse([WARNING, BROKEN], CONTEXT)

    assert [*refused.value.issues] == [BROKEN]


def test_one_error_of_content_makes_all_errors_those_of_content() -> None:
    with pytest.raises(InvalidContent) as refused:
        rules.refuse([BROKEN, WARNING, WRONG], CONTEXT)

    assert [*refused.value.issues] == [WRONG, BROKEN]


def test_errors_come_first_and_those_of_content_before_those_of_rules() -> None:
    found = rules.sorted_for_response([REMARK, BROKEN, WARNING, WRONG], CONTEXT)

    assert found == [WRONG, BROKEN, REMARK, WARNING]


def test_a_hundred_issues_are_reported_and_no_more() -> None:
    assert len(rules.sorted_for_response([WARNING] * 100, CONTEXT)) == 100
    found = rules.sorted_for_response([*[BROKEN] * 100, WRONG], CONTEXT)

    assert (len(found), found[0]) == (100, WRONG)


def test_a_resource_has_at_most_so_many_bytes() -> None:
    context = with_limits(resource_bytes=1_000)
    rules.resource_within_limits(1_000, context)

    with pytest.raises(TooLarge) as refused:
        rules.resource_within_limits(1_001, context)

    [issue] = refused.value.issues
    assert issue.diagnostics == "has more than 1000 bytes beside its documents"
    assert issue.details == ContentProblem.BODY_TOO_LARGE


def test_each_document_that_is_too_large_is_named() -> None:
    sizes = enumerate((11, 10, 12, 0))
    documents = [Document("", "", b"a" * size, f"photo[{index}]") for index, size in sizes]

    with pytest.raises(TooLarge) as refused:
        rules.check_limits(documents, most=10, at="A")

    said = "has more than 10 bytes when decoded, the limit of a document"
    assert places(refused.value.issues) == [("A.photo[0].data", said), ("A.photo[2].data", said)]
    rules.check_limits(documents, most=12, at="A")


def of_status(sent: Any, *allowed: str) -> list[tuple[str, str]]:
    return places(rules.status({"status": sent}, frozenset(allowed)))


def test_a_status_is_one_of_those_of_the_operation() -> None:
    assert of_status("final", "final", "amended") == []
    for sent in ("registered", None, 7, ["final"]):
        assert of_status(sent, "final", "amended") == [("status", "must be one of amended, final")]
    assert places(rules.status({}, frozenset({"final"}))) == [("status", "must be one of final")]


def test_a_status_nearly_right_is_suggested() -> None:
    [(_at, said)] = of_status("Final", "final", "amended")

    assert said.startswith("must be one of amended, final")
    assert "did you mean final?" in said


FLOW = replace(TYPE, state_flow={"a": frozenset({"b", "c"}), "b": frozenset({"b"})})


def flow(old: str, new: str) -> list[tuple[str, str]]:
    return places(rules.state_flow({"status": old}, {"status": new}, FLOW))


def test_a_status_follows_those_before_it() -> None:
    assert flow("a", "b") == flow("a", "c") == flow("b", "b") == []


def test_a_status_that_cannot_follow_is_refused_with_those_that_can() -> None:
    assert flow("a", "d") == [("status", "d cannot follow a; what can: b, c")]
    assert flow("b", "a") == [("status", "a cannot follow b; what can: b")]
    assert flow("x", "a") == [("status", "a cannot follow x; what can: nothing")]


def test_a_status_that_must_change_is_refused_as_itself() -> None:
    said = "a DiagnosticReport that is a is updated with another status: b, c"

    assert flow("a", "a") == [("status", said)]


def converted(resource: dict[str, Any], *paths: str, **settings: Any) -> list[tuple[str, str]]:
    config = replace(Config(), fhir=FhirConfig(**settings))
    zone = ZoneInfo(settings.get("default_timezone", "UTC"))
    context = replace(CONTEXT, config=config, default_zone=zone)
    return places(rules.times_as_utc(resource, paths, context))


def test_times_are_converted_to_utc() -> None:
    resource = {"issued": "2026-11-20T10:05:00+02:00", "other": "2026-11-20T10:05:00+02:00"}

    assert converted(resource, "issued", "missing") == []
    assert resource == {"issued": "2026-11-20T08:05:00Z", "other": "2026-11-20T10:05:00+02:00"}


@pytest.mark.parametrize("text", ["2026", "2026-11-20", "2026-11-20T10:05:00Z"])
def test_dates_and_times_in_utc_stay(text: str) -> None:
    resource = {"issued": text}

    assert converted(resource, "issued") == []
    assert resource == {"issued": text}


def test_an_assumed_zone_is_a_warning() -> None:
    resource = {"issued": "2026-07-20T10:05:00"}
    zone = "America/New_York"

    found = converted(resource, "issued", default_timezone=zone)

    assert found == [("issued", f"has no offset: read as {zone}")]
    assert resource == {"issued": "2026-07-20T14:05:00Z"}


def test_nested_times_are_converted_in_each_place() -> None:
    period = {"start": "2026-11-20T10:05:00+02:00", "end": "2026-11-20T11:05:00+02:00"}
    resource = {"event": [{"period": period}]}

    assert converted(resource, "event.period.start", "event.period.end") == []
    assert period == {"start": "2026-11-20T08:05:00Z", "end": "2026-11-20T09:05:00Z"}


def test_a_time_beside_a_date_keeps_its_offset() -> None:
    period = {"start": "2026-11-20", "end": "2026-11-20T01:00:00+02:00"}

    converted({"period": period}, "period.end")

    assert period["end"] == "2026-11-20T01:00:00+02:00"


def test_a_time_that_utc_cannot_have_is_an_error_in_its_place() -> None:
    resource = {"event": {"at": "0001-01-01T00:00:00+02:00"}}

    [issue] = rules.times_as_utc(resource, ("event.at",), CONTEXT)

    assert (issue.severity, issue.expression) == ("error", "event.at")
    assert issue.details == ContentProblem.TIME_INVALID
    assert resource == {"event": {"at": "0001-01-01T00:00:00+02:00"}}


def test_a_time_that_is_no_text_is_left_to_the_schema() -> None:
    resource: dict[str, Any] = {"issued": 7}

    assert converted(resource, "issued") == []
    assert resource == {"issued": 7}


def test_times_of_a_submission_are_named_where_they_stand() -> None:
    submission = submitted(report_changes={"issued": "2026-11-20T10:05:00"})

    found = [*rules.all_times_as_utc(submission, CONTEXT)]

    assert [issue.expression for issue in found] == ["Parameters.parameter[2].resource.issued"]


def test_times_of_a_member_are_converted_as_its_own_type_declares() -> None:
    drawn = {"collectedDateTime": "2026-11-20T10:05:00+02:00"}
    submission = from_parameters(panel("R-1", specimen(collection=drawn)), TYPE)

    assert [*rules.all_times_as_utc(submission, CONTEXT)] == []

    [member] = submission.members.values()
    assert member.resource["collection"] == {"collectedDateTime": "2026-11-20T08:05:00Z"}


def test_entities_of_narratives_become_characters_in_parts_too() -> None:
    div = '<div xmlns="http://www.w3.org/1999/xhtml">&eacute;</div>'
    text = {"status": "generated", "div": div}
    submission = submitted(report_changes={"text": text}, patient_changes={"text": text})

    rules.write_narratives_in_characters(submission)

    for entry in (submission.entry, submission.parts["patient"]):
        assert entry.resource["text"]["div"].endswith(">é</div>")


def structure_of(**changes: Any) -> list[tuple[str, str]]:
    submission = submitted(**changes)
    return places(issue for found in rules.structure(submission, CONTEXT, "t") for issue in found)


def test_a_part_needs_an_id() -> None:
    found = structure_of(patient_changes={"id": None})

    assert ("Parameters.parameter[0].resource.id", "is required: references need it") in found


def test_nothing_is_wrong_with_the_structure_of_a_report_that_is_right() -> None:
    assert structure_of() == []


def test_a_status_of_no_report_is_refused_with_those_that_can_be_sent() -> None:
    found = structure_of(report_changes={"status": "done"})

    assert [place for place, _said in found] == ["Parameters.parameter[2].resource.status"]
    assert found[0][1].startswith(f"must be one of {', '.join(sorted(TYPE.create_statuses))}")


def test_of_several_identifiers_each_problem_is_named() -> None:
    several = replace(TYPE, identifier=IdentifierRule(most=2))
    report = submitted().entry.resource
    (sent,) = report["identifier"]
    wrong = [sent, {**sent, "value": "R-2"}, {**sent, "value": "R-3", "use": "best"}]

    found = [
        issue.expression
        for issues in rules.check_structure(
            {**report, "identifier": wrong}, several, CONTEXT, TYPE.create_statuses
        )
        for issue in issues
    ]

    assert found == ["identifier", "identifier[2].use"]


def test_contained_resources_without_a_schema_are_looked_at() -> None:
    wrong = {"resourceType": "Device", "id": "d", "nickname": "a"}

    found = structure_of(report_changes={"contained": [wrong]})

    assert found
    for place, _said in found:
        assert place.startswith("Parameters.parameter[2].resource.contained[0]")


def test_places_of_issues_begin_with_that_of_their_entry() -> None:
    submission = submitted()

    assert places(rules.each_below(submission.entry, [WRONG])) == [
        ("Parameters.parameter[2].resource.a", "is wrong")
    ]


def test_a_code_of_a_part_that_fhir_does_not_have_is_refused_in_its_place() -> None:
    found = structure_of(patient_changes={"gender": "x", "maritalStatus": {"text": 1}})

    assert [place for place, _said in found] == [
        "Parameters.parameter[0].resource.gender",
        "Parameters.parameter[0].resource.maritalStatus.text",
    ]


def test_what_the_schema_finds_in_a_right_identifier_is_refused() -> None:
    one = {"system": "urn:s:1", "value": "1", "use": "x"}

    found = structure_of(report_changes={"identifier": [one]})

    assert [place for place, _said in found] == [
        "Parameters.parameter[2].resource.identifier[0].use"
    ]


def test_of_a_wrong_identifier_only_the_rule_is_reported() -> None:
    found = structure_of(report_changes={"identifier": {"system": 5}})

    assert [place for place, _said in found] == ["Parameters.parameter[2].resource.identifier"]


@pytest.mark.parametrize(
    ("element", "place"),
    [
        ({"system": ROLES, "code": "no-such"}, "at.a.code"),
        ({"coding": [{"system": ROLES, "code": "no-such"}]}, "at.a.coding[0].code"),
    ],
)
def test_an_unknown_code_is_a_warning_in_its_place(element: dict[str, Any], place: str) -> None:
    found = rules.codings({"a": element}, ["a"], CONTEXT.rules_for(TENANT.id), below="at")

    assert [(one.severity, one.expression) for one in found] == [("warning", place)]


def test_a_contained_resource_with_a_schema_is_left_to_the_schema() -> None:
    wrong = {"resourceType": "Patient", "gender": 5}
    unknown = {"resourceType": "Basic", "code": 5}

    found = [
        [issue.expression for issue in issues]
        for issues in rules.contained({"contained": [wrong, unknown, 7]}, CONTEXT)
    ]

    assert found == [["contained[1].code"]]
