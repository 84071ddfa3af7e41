"""What is read as usual is read as everything else is; what is not usual is left to that."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import InvalidContent
from fhirpub.interactions.submission import parameters
from fhirpub.interactions.submission.record import Submission
from fhirpub.interactions.submission.usual import read_usual
from fhirpub.plugin_api import Entry, Part
from fhirpub.testing.mutations import mutants
from fhirpub_diagnosticreport.rules import DIAGNOSTIC_REPORT
from tests.bodies import register_body

BODY = register_body("A-1")
RESULT = {"name": "observation", "resource": {"resourceType": "Observation", "id": "o1"}}


def shown(submission: Submission) -> dict[str, Any]:
    """Return all that a submission holds, to compare it."""
    fields = {name: getattr(submission, name) for name in submission.__slots__}
    return {name: _shown(value) for name, value in fields.items()}


def _shown(value: Any) -> Any:
    if isinstance(value, Entry):
        return value.at, value.resource
    if isinstance(value, dict):
        return [(name, _shown(one)) for name, one in value.items()]
    return [_shown(one) for one in value] if isinstance(value, list | tuple) else value


def read(body: Any) -> Submission:
    """Read a body as if it was not usual."""
    return parameters._read(body, DIAGNOSTIC_REPORT)


def test_a_usual_body_is_read_as_any_other() -> None:
    usual = read_usual(BODY, DIAGNOSTIC_REPORT)

    assert usual is not None
    assert shown(usual) == shown(read(BODY))


def test_whatever_is_read_as_usual_is_read_as_any_other() -> None:
    number = 0
    for mutant in mutants(BODY, seed=7, number=2_000):
        usual = read_usual(copy.deepcopy(mutant), DIAGNOSTIC_REPORT)
        if usual is not None:
            number += 1
            assert shown(usual) == shown(read(mutant))
    assert number > 1_000


def without(body: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a body without an entry."""
    return {**body, "parameter": [one for one in body["parameter"] if one["name"] != name]}


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        "parameter",
        {"resourceType": "Parameters"},
        {**BODY, "id": "x"},
        {**BODY, "resourceType": "Bundle"},
        {**BODY, "parameter": {}},
        {**BODY, "parameter": "x"},
        {**BODY, "parameter": [*BODY["parameter"], BODY["parameter"][0]]},
        {**BODY, "parameter": [*BODY["parameter"], {"name": "x", "resource": {}}]},
        {**BODY, "parameter": [*BODY["parameter"], {"name": [], "resource": {}}]},
        {**BODY, "parameter": [*BODY["parameter"], {"name": "observation", "resource": 1}]},
        {**BODY, "parameter": [*BODY["parameter"], RESULT]},
        without(BODY, "patient"),
        without(BODY, "diagnosticReport"),
    ],
)
def test_what_is_not_usual_is_looked_at_more_closely(body: Any) -> None:
    assert read_usual(body, DIAGNOSTIC_REPORT) is None


def test_a_part_that_need_not_be_there_may_be_missing() -> None:
    parts = tuple(replace(one, required=one.name == "patient") for one in DIAGNOSTIC_REPORT.parts)
    declared = replace(DIAGNOSTIC_REPORT, parts=parts)

    usual = read_usual(without(BODY, "organization"), declared)

    assert usual is not None
    assert [*usual.parts] == ["patient"]
    assert read_usual(without(BODY, "patient"), declared) is None


def test_a_body_without_the_resource_is_refused_as_before() -> None:
    with pytest.raises(InvalidContent):
        parameters.from_parameters(without(BODY, "diagnosticReport"), DIAGNOSTIC_REPORT)


@pytest.mark.parametrize(("local_id", "is_usual"), [("p2", True), ("p1", False)])
def test_two_parts_of_one_type_are_usual_with_ids_of_their_own(
    local_id: str, *, is_usual: bool
) -> None:
    guardian = Part(name="guardian", type="Patient", referred_by="", required=False)
    declared = replace(DIAGNOSTIC_REPORT, parts=(*DIAGNOSTIC_REPORT.parts, guardian))
    body = copy.deepcopy(BODY)
    resource = {"resourceType": "Patient", "id": local_id}
    body["parameter"].append({"name": "guardian", "resource": resource})

    assert (read_usual(body, declared) is not None) is is_usual
