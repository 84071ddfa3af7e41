"""What is answered to a body of another kind, and to entries with nearly the right name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fhirpub.testing.service import Integrator
from tests.bodies import register_body, report

BASE = "/fhir/r4/DiagnosticReport"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (report("E-1"), "is a DiagnosticReport: send it to DiagnosticReport itself (create)"),
        ({"resourceType": "Bundle"}, "is a Bundle"),
        ({"parameter": []}, "is an object without resourceType"),
        ([], "is an array"),
        (json.dumps(register_body("E-2")), "is a string: it was written as JSON twice"),
    ],
)
def test_a_body_of_another_kind_is_named(lab: Integrator, body: Any, words: str) -> None:
    refused = lab.register(body)

    assert (refused.status, refused.problems) == (400, ["body-unexpected"])
    assert words in refused.issues[0]["diagnostics"]


def test_parameters_sent_to_create_are_led_to_the_operation(lab: Integrator) -> None:
    refused = lab.request("POST", BASE, register_body("E-3"))

    assert "send it to DiagnosticReport/$register" in refused.issues[0]["diagnostics"]


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("diagnosticReport", "diagnosticreport"),
        ("diagnosticReport", "report"),
        ("organization", "organisation"),
        ("patient", "Patient"),
    ],
)
def test_an_entry_that_was_probably_meant_is_pointed_at(
    lab: Integrator, name: str, written: str
) -> None:
    body = register_body("E-4")
    names = [entry["name"] for entry in body["parameter"]]
    place = names.index(name)
    body["parameter"][place]["name"] = written

    refused = lab.register(body)

    assert refused.problems == ["entry-missing"]
    assert f"should this entry {written} be named so?" in refused.issues[0]["diagnostics"]
    assert refused.issue_expressions == {f"Parameters.parameter[{place}].name"}


def test_a_name_that_may_be_a_patients_is_not_repeated(lab: Integrator) -> None:
    body = register_body("E-5")
    body["parameter"][0]["name"] = "Juan Pérez"

    assert "Juan" not in lab.register(body).body.decode()


def test_a_misspelt_list_of_entries_is_recognized(lab: Integrator) -> None:
    body = register_body("E-6")
    body["parameters"] = body.pop("parameter")

    assert "did you mean parameter?" in lab.register(body).issues[0]["diagnostics"]


@pytest.mark.parametrize("name", ["conclusions", "Conclusion", "conclusio"])
def test_a_misspelt_element_is_recognized(lab: Integrator, name: str) -> None:
    refused = lab.register(register_body("E-7", **{name: "x"}))

    assert refused.problems == ["element-unknown"]
    assert refused.issues[0]["diagnostics"].endswith("did you mean conclusion?")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (
            {"valueReference": {"reference": "Patient/1"}},
            "no resource: a value or a reference",
        ),
        ({"resource": {"reference": "Patient/1"}}, "a Reference there: send the Patient itself"),
        ({"resource": {"resourceType": "Organization"}}, "and has an Organization there"),
        ({"resource": {"resourceType": "patient"}}, "did you mean Patient?"),
        ({"resource": {"resourceType": "Juan"}}, "an object of an unknown resourceType there"),
        ({"resource": {"name": []}}, "an object without resourceType there"),
        ({"resource": [{"resourceType": "Patient"}]}, "an array there"),
        ({"resource": "{}"}, "a string there"),
    ],
)
def test_what_an_entry_holds_in_place_of_a_resource_is_named(
    lab: Integrator, entry: dict[str, Any], words: str
) -> None:
    body = register_body("E-8")
    place = [one["name"] for one in body["parameter"]].index("patient")
    body["parameter"][place] = {"name": "patient", **entry}

    refused = lab.register(body)

    assert refused.problems[0] == "entry-invalid"
    assert words in refused.issues[0]["diagnostics"]
    assert f"Parameters.parameter[{place}]" in refused.issue_expressions
