"""Which entry of Parameters was meant, and what another body is called in its place."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.errors import InvalidContent, Issue
from fhirpub.fhir.explanation.envelope import entries_of, missing_entry, wrong_entry

TYPES = frozenset({"Bundle", "Observation", "Patient"})
ADVICE = {"Bundle": "send each of them"}
AT = "Parameters.parameter"


def refused(body: Any) -> Issue:
    with pytest.raises(InvalidContent) as raised:
        entries_of(body, TYPES, advice=ADVICE)
    (issue,) = raised.value.issues
    return issue


def said_of(resource: Any) -> str:
    sentence = wrong_entry({"name": "patient", "resource": resource}, "Patient", TYPES)
    return sentence.removeprefix("must hold a Patient in resource, and has ")


def meant_by(*others: dict[str, Any]) -> tuple[str, str | None]:
    places = [(other, f"{AT}[{number}]") for number, other in enumerate(others)]
    issue = missing_entry("patient", "Patient", places)
    assert (issue.severity, issue.details) == ("error", "entry-missing")
    return issue.diagnostics, issue.expression


def test_the_entries_are_those_of_the_body() -> None:
    entries = [{"name": "patient"}, 1]

    assert (
        entries_of({"resourceType": "Parameters", "parameter": entries}, TYPES, advice={})
        is entries
    )


def test_another_resource_is_refused_with_the_advice_for_its_kind() -> None:
    issue = refused({"resourceType": "Bundle", "parameter": [{}]})

    assert issue.diagnostics == (
        "the body must be a Parameters resource, and is a Bundle: send each of them"
    )
    assert issue.details == "body-unexpected"


@pytest.mark.parametrize("body", [[{"resourceType": "Parameters"}], "Parameters", None])
def test_what_is_no_object_is_no_parameters_resource(body: Any) -> None:
    assert refused(body).details == "body-unexpected"


@pytest.mark.parametrize("entries", [[], {}, {"name": "patient"}, "patient"])
def test_entries_that_are_no_array_or_an_empty_one_are_refused(entries: Any) -> None:
    issue = refused({"resourceType": "Parameters", "parameter": entries})

    assert issue.diagnostics == "must be an array of entries, each with a name and a resource"
    assert (issue.expression, issue.details) == (AT, "entry-invalid")


def test_the_name_that_was_sent_in_place_of_the_entries_is_recognized() -> None:
    issue = refused({"resourceType": "Parameters", "parameters": [{}]})

    assert issue.diagnostics.endswith("a name and a resource; did you mean parameter?")


def test_without_entries_the_refusal_names_what_they_must_be() -> None:
    issue = refused({"resourceType": "Parameters"})

    assert issue.diagnostics == "must be an array of entries, each with a name and a resource"


def test_a_name_beside_entries_of_the_right_name_gets_no_suggestion() -> None:
    issue = refused({"resourceType": "Parameters", "parameter": [], "parameters": [{}]})

    assert "did you mean" not in issue.diagnostics


@pytest.mark.parametrize(
    ("resource", "said"),
    [
        (None, "no resource: a value or a reference does not stand for it"),
        ({"reference": "Patient/1"}, "a Reference there: send the Patient itself"),
        ({"reference": "a", "resourceType": "Bundle"}, "a Bundle there"),
        ({"resourceType": "Bundle"}, "a Bundle there"),
        (
            {"resourceType": "Patien"},
            "an object of an unknown resourceType there: did you mean Patient?",
        ),
        ({"resourceType": "Patient"}, "a Patient there"),
        ({"resourceType": 7}, "an object of an unknown resourceType there"),
        ({}, "an object without resourceType there"),
        ([], "an array there"),
        ("Patient", "a string there"),
    ],
)
def test_what_an_entry_has_in_place_of_its_resource_is_named(resource: Any, said: str) -> None:
    assert said_of(resource) == said


def test_without_another_entry_the_array_is_the_place_of_a_missing_one() -> None:
    assert meant_by() == ("an entry named patient is required", AT)


def test_an_entry_of_nearly_the_same_name_was_meant() -> None:
    assert meant_by({"name": "other"}, {"name": "Patient"}) == (
        "an entry named patient is required: should this entry Patient be named so?",
        f"{AT}[1].name",
    )


def test_an_entry_with_a_resource_of_the_type_was_meant() -> None:
    patient = {"name": "subject", "resource": {"resourceType": "Patient"}}

    assert meant_by({"name": "x", "resource": {"resourceType": "Bundle"}}, patient) == (
        "an entry named patient is required: should this entry subject be named so?",
        f"{AT}[1].name",
    )


def test_the_first_of_two_that_were_meant_is_named_alone() -> None:
    said, at = meant_by({"name": "patients"}, {"name": "Patient"})

    assert (said.count("named so?"), at) == (1, f"{AT}[0].name")


def test_a_name_that_is_not_plain_is_not_repeated() -> None:
    said, at = meant_by({"name": "Juan P.", "resource": {"resourceType": "Patient"}})

    assert (said, at) == (
        "an entry named patient is required: should this entry be named so?",
        f"{AT}[0].name",
    )


@pytest.mark.parametrize(("before", "is_found"), [(9, True), (10, False)])
def test_the_first_ten_entries_are_looked_at(before: int, *, is_found: bool) -> None:
    said, _at = meant_by(*[{"name": "x"}] * before, {"name": "Patient"})

    assert ("named so?" in said) == is_found
