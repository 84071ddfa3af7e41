"""Entries of Parameters: taken, repeated, missing or wrong, each with the place and the words."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.errors import InvalidContent
from fhirpub.interactions.submission import parameters
from fhirpub.interactions.submission.parameters import from_parameters, from_wrapped
from fhirpub.interactions.submission.record import ANY_RESOURCE, Submission
from fhirpub.plugin_api import Part, ResourceType

PANEL = ResourceType(
    name="Basic",
    schemas={},
    create_statuses=frozenset(),
    update_statuses=frozenset(),
    attachments=("form", "content.attachment"),
    parts=(
        Part(name="patient", type="Patient", referred_by="subject"),
        Part(name="author", type="Practitioner", referred_by="author", required=False),
        Part(
            name="result", type="Observation", referred_by="result", repeats=True, required=False
        ),
    ),
)
BASIC = {"resourceType": "Basic", "id": "b"}
PATIENT = {"resourceType": "Patient", "id": "p"}


def entry(name: str, resource: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "resource": resource, **more}


def observation(local_id: str) -> dict[str, Any]:
    return entry("result", {"resourceType": "Observation", "id": local_id})


def sent(*entries: Any, **more: Any) -> dict[str, Any]:
    return {"resourceType": "Parameters", "parameter": [*entries], **more}


USUAL = (entry("patient", PATIENT), entry("basic", BASIC))


def read(*entries: Any, **more: Any) -> Submission:
    return from_parameters(sent(*entries, **more), PANEL)


def wrong(*entries: Any) -> list[tuple[str, str, str]]:
    return [(one.expression, one.diagnostics, one.details) for one in read(*entries).wrong]


def refusal(body: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidContent) as refused:
        from_parameters(body, PANEL)
    return [(issue.expression, issue.diagnostics) for issue in refused.value.issues]


def test_entries_that_repeat_are_numbered_in_their_order() -> None:
    submission = read(observation("x"), *USUAL, observation("y"))

    assert [*submission.members] == ["result[0]", "result[1]"]
    assert [one.at for one in submission.members.values()] == [
        "Parameters.parameter[0].resource",
        "Parameters.parameter[3].resource",
    ]
    assert submission.declared["result[1]"] is PANEL.parts[2]
    assert submission.local == {
        "Observation/x": "result[0]",
        "Observation/y": "result[1]",
        "Patient/p": "patient",
    }
    assert {*submission.parts} == {"patient", "result[0]", "result[1]"}
    assert submission.entry.at == "Parameters.parameter[2].resource"


def test_without_entries_that_repeat_there_are_no_members() -> None:
    submission = read(*USUAL, entry("more", {"resourceType": "Basic"}))

    assert submission.members == {}


@pytest.mark.parametrize(("number", "refused"), [(2, False), (3, True)])
def test_so_many_entries_may_repeat(
    monkeypatch: pytest.MonkeyPatch, number: int, *, refused: bool
) -> None:
    monkeypatch.setattr(parameters, "MAX_MEMBERS", 2)
    results = [observation(str(one)) for one in range(number)]

    found = wrong(*USUAL, *results)

    assert found == (
        [
            (
                "Parameters.parameter",
                "has 3 entries that may repeat; there can be 2",
                "entries-too-many",
            )
        ]
        if refused
        else []
    )


def test_the_limit_is_that_of_the_documentation() -> None:
    assert parameters.MAX_MEMBERS == 1_000


def test_an_entry_that_must_not_repeat_is_refused_the_second_time() -> None:
    assert wrong(*USUAL, entry("patient", {**PATIENT, "id": "q"})) == [
        (
            "Parameters.parameter[2]",
            "the entry patient stands here more than once",
            "entry-repeated",
        )
    ]


def test_the_first_of_two_entries_counts() -> None:
    submission = read(*USUAL, entry("patient", {**PATIENT, "id": "q"}))

    assert submission.parts["patient"].resource == PATIENT


def test_only_a_required_entry_is_missing() -> None:
    assert wrong(entry("basic", BASIC)) == [
        ("Parameters.parameter", "an entry named patient is required", "entry-missing")
    ]


def test_an_entry_with_the_resource_of_a_missing_one_is_where_it_is_named() -> None:
    assert wrong(entry("basic", BASIC), entry("person", PATIENT)) == [
        (
            "Parameters.parameter[1].name",
            "an entry named patient is required: should this entry person be named so?",
            "entry-missing",
        )
    ]


def test_an_entry_that_is_wrong_is_not_missing_as_well() -> None:
    ((place, rule, details),) = wrong(entry("patient", BASIC), entry("basic", BASIC))

    assert (place, details) == ("Parameters.parameter[0]", "entry-invalid")
    assert rule == "must hold a Patient in resource, and has a Basic there"


def test_without_the_resource_itself_nothing_can_be_read() -> None:
    assert refusal(sent(entry("patient", PATIENT))) == [
        ("Parameters.parameter", "an entry named basic is required")
    ]


@pytest.mark.parametrize("broken", ["x", None, [], {}, {"name": 7}, {"resource": PATIENT}])
def test_an_entry_without_a_name_cannot_be_read(broken: Any) -> None:
    assert refusal(sent(*USUAL, broken)) == [
        ("Parameters.parameter[2]", "must be an object with a name")
    ]


def test_two_resources_with_one_id_are_named_at_the_second() -> None:
    assert wrong(*USUAL, observation("x"), observation("x")) == [
        (
            "Parameters.parameter[3].resource.id",
            "is the id of the entry result[0], too",
            "entry-repeated",
        )
    ]


def test_one_id_of_two_types_are_two_resources() -> None:
    assert wrong(*USUAL, observation("p")) == []


# Entries that are not taken


def test_an_unknown_entry_is_ignored_with_a_remark() -> None:
    (remark,) = read(*USUAL, {"name": "note", "valueString": "x"}).remarks

    assert (remark.severity, remark.expression) == ("information", "Parameters.parameter[2]")
    assert (remark.diagnostics, remark.details) == ("is ignored: not known", "entry-ignored")


def test_an_unknown_resource_is_ignored_with_a_warning() -> None:
    (remark,) = read(*USUAL, entry("note", {"resourceType": "Basic"})).remarks

    assert (remark.severity, remark.code) == ("warning", "not-supported")
    assert remark.diagnostics == "is ignored with its resource: not known"


def test_remarks_on_unknown_entries_end_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parameters, "MAX_ISSUES", 2)

    submission = read(*USUAL, *({"name": f"n{number}"} for number in range(3)))

    assert len(submission.remarks) == 2
    assert len(submission.untaken) == 3


def test_all_that_was_sent_is_the_content() -> None:
    entries = (*USUAL, {"name": "note", "valueString": "x"})

    assert read(*entries).content == [*entries]


# What stands around the resources


def test_entries_with_names_and_resources_alone_need_no_look() -> None:
    assert read(observation("x"), *USUAL).envelope is None


def test_what_stands_around_resources_is_looked_at_without_them() -> None:
    submission = read(*USUAL, {"name": "note", "valueString": "x"}, id="e")

    assert submission.envelope is not None
    assert submission.envelope.at == "Parameters"
    assert submission.envelope.resource == {
        "resourceType": "Parameters",
        "id": "e",
        "parameter": [
            entry("patient", ANY_RESOURCE),
            entry("basic", ANY_RESOURCE),
            {"name": "note", "valueString": "x"},
        ],
    }


@pytest.mark.parametrize("name", ["valueString", "part", "_valueString"])
def test_an_entry_with_a_resource_has_no_value(name: str) -> None:
    found = wrong(entry("patient", PATIENT, **{name: "x"}), entry("basic", BASIC))

    assert found == [
        (
            "Parameters.parameter[0]",
            "must have a resource, and neither value nor part (inv-1)",
            "entry-invalid",
        )
    ]


def test_an_entry_with_a_resource_may_have_an_extension() -> None:
    assert wrong(entry("patient", PATIENT, extension=[]), entry("basic", BASIC)) == []


# Attachments beside the resource


def test_attachments_beside_the_resource_are_moved_into_it() -> None:
    submission = read(entry("patient", PATIENT), entry("basic", dict(BASIC), form=[{"a": 1}]))

    assert submission.wrong == []
    assert submission.entry.resource == {**BASIC, "form": [{"a": 1}]}


@pytest.mark.parametrize(("inside", "is_same"), [([{"a": 1}], True), ([{"a": 2}], False)])
def test_attachments_that_stand_twice_must_be_the_same(
    inside: list[dict[str, int]], *, is_same: bool
) -> None:
    basic = entry("basic", {**BASIC, "form": inside}, form=[{"a": 1}])

    if is_same:
        assert wrong(entry("patient", PATIENT), basic) == []
    else:
        assert refusal(sent(entry("patient", PATIENT), basic)) == [
            ("Parameters.parameter[1].form", "differs from resource.form: send it once")
        ]


def test_attachments_must_be_a_list() -> None:
    basic = entry("basic", dict(BASIC), form={"a": 1})

    assert refusal(sent(entry("patient", PATIENT), basic)) == [
        ("Parameters.parameter[1].form", "must be a list")
    ]


def test_attachments_beside_another_resource_stay() -> None:
    submission = read(entry("patient", dict(PATIENT), form=[1]), entry("basic", BASIC))

    assert submission.parts["patient"].resource == PATIENT


# FHIR's own body of $validate


def test_the_resource_is_that_of_the_entry_of_its_name() -> None:
    basic = {**BASIC, "subject": {"reference": "#p"}, "contained": [PATIENT]}
    body = sent({"name": "mode", "valueCode": "create"}, entry("resource", basic))

    submission = from_wrapped(body, PANEL)

    assert submission.parts["patient"].resource == PATIENT
    assert submission.envelope is not None
    assert submission.envelope.resource["parameter"] == [
        {"name": "mode", "valueCode": "create"},
        entry("resource", ANY_RESOURCE),
    ]


def test_the_entry_of_the_resource_has_no_value() -> None:
    body = sent("x", entry("resource", BASIC, valueCode="x"))

    with pytest.raises(InvalidContent) as refused:
        from_wrapped(body, PANEL)
    assert [issue.expression for issue in refused.value.issues] == ["Parameters.parameter[1]"]


def test_without_an_entry_of_that_name_there_is_no_resource() -> None:
    with pytest.raises(InvalidContent):
        from_wrapped(sent(entry("basic", BASIC)), PANEL)
