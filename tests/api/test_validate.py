"""$validate returns the issues that a registration would return, and stores nothing."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.testing.service import Answer, Integrator
from tests.bodies import SYSTEM, organization, patient, register_body, report

PATH = "/fhir/r4/DiagnosticReport/$validate"


def validate(lab: Integrator, body: Any) -> Answer:
    return lab.request("POST", PATH, body)


def severities(answer: Answer) -> list[str]:
    return [issue["severity"] for issue in answer.issues]


def contained(value: str, **changes: Any) -> dict[str, Any]:
    return report(
        value,
        contained=[patient(), organization()],
        subject={"reference": "#p1"},
        performer=[{"reference": "#o1"}],
        **changes,
    )


def wrapped(resource: Any, **others: Any) -> dict[str, Any]:
    entries = [{"name": name, **value} for name, value in others.items()]
    return {
        "resourceType": "Parameters",
        "parameter": [{"name": "resource", "resource": resource}, *entries],
    }


def test_a_body_that_would_be_registered_is_reported_as_such(lab: Integrator) -> None:
    answer = validate(lab, register_body("V-1"))

    assert (answer.status, severities(answer)) == (200, ["information"])
    assert "would be registered" in answer.issues[0]["diagnostics"]


def test_nothing_is_stored(lab: Integrator) -> None:
    validate(lab, register_body("V-2"))

    found = lab.get(f"/fhir/r4/DiagnosticReport?identifier={SYSTEM}|V-2")
    assert found.json["total"] == 0


def test_a_taken_identifier_is_reported(lab: Integrator) -> None:
    location = lab.register(register_body("V-3")).headers["location"]

    answer = validate(lab, register_body("V-3"))

    assert location.split("/")[-3] in answer.issues[0]["diagnostics"]


def test_errors_of_both_kinds_and_warnings_are_reported_at_once(lab: Integrator) -> None:
    answer = validate(
        lab,
        register_body(
            "V-4",
            status="amended",
            subject={"reference": "Patient/another"},
            category=[
                {
                    "coding": [
                        {"system": "http://terminology.hl7.org/CodeSystem/v2-0074", "code": "?"}
                    ]
                }
            ],
        ),
    )

    kinds = {(issue["severity"], issue["code"]) for issue in answer.issues}
    assert answer.status == 200
    assert {("error", "exception"), ("error", "business-rule"), ("warning", "invalid")} <= kinds


def test_all_that_is_wrong_with_the_structure_is_reported(lab: Integrator) -> None:
    answer = validate(lab, register_body("V-5", issued="yesterday", conclusion=7))

    at = "Parameters.parameter[2].resource"
    assert answer.issue_expressions == {f"{at}.issued", f"{at}.conclusion"}


def test_a_resource_is_validated_as_by_create(lab: Integrator) -> None:
    good = validate(lab, contained("V-6"))
    bad = validate(lab, contained("V-6", status="amended"))

    assert severities(good) == ["information"]
    assert bad.issue_expressions == {"DiagnosticReport.status"}


def test_a_resource_can_come_as_fhir_wraps_it(lab: Integrator) -> None:
    answer = validate(lab, wrapped(contained("V-7"), mode={"valueCode": "create"}))

    assert severities(answer) == ["information"]


def test_what_cannot_be_tried_is_a_400(lab: Integrator) -> None:
    answer = validate(
        lab,
        wrapped(
            contained("V-8"),
            mode={"valueCode": "delete"},
            profile={"valueUri": "https://elsewhere.example/profile"},
        ),
    )

    assert (answer.status, len(answer.issues)) == (400, 2)


@pytest.mark.parametrize("query", ["mode=update", "profile=https://elsewhere.example/profile"])
def test_what_the_url_asks_to_be_tried_is_heeded_too(lab: Integrator, query: str) -> None:
    answer = lab.request("POST", f"{PATH}?{query}", contained("V-9"))

    assert (answer.status, answer.issue_expressions) == (400, {query.partition("=")[0]})


def test_a_resource_may_come_with_a_mode_in_the_url(lab: Integrator) -> None:
    answer = lab.request("POST", f"{PATH}?mode=create", contained("V-10"))

    assert (answer.status, severities(answer)) == (200, ["information"])


@pytest.mark.parametrize(("version", "status"), [("", 200), ("|4.0.1", 200), ("|3.0.2", 400)])
def test_the_profile_of_the_type_may_be_named_with_its_version(
    lab: Integrator, version: str, status: int
) -> None:
    profile = f"http://hl7.org/fhir/StructureDefinition/DiagnosticReport{version}"

    answer = validate(lab, wrapped(contained("V-11"), profile={"valueUri": profile}))

    assert answer.status == status


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "mode", "valueCode": "delete"},
        {"name": "profile", "valueCanonical": "https://elsewhere.example/profile"},
    ],
)
def test_another_try_is_a_400_without_a_resource_too(
    lab: Integrator, entry: dict[str, Any]
) -> None:
    answer = validate(lab, {"resourceType": "Parameters", "parameter": [entry]})

    assert answer.status == 400


def test_a_body_that_is_no_json_is_a_400(lab: Integrator) -> None:
    assert validate(lab, b"{").status == 400


def test_a_stray_value_is_reported_and_no_fault(lab: Integrator) -> None:
    strays = [[], "x", {"resourceType": "Parameters", "parameter": 1}, wrapped(None), {}]

    answers = [validate(lab, stray) for stray in strays]

    assert [answer.status for answer in answers] == [200] * len(strays)
    assert all("error" in severities(answer) for answer in answers)


WRONG_ENVELOPES: dict[str, tuple[dict[str, Any], str]] = {
    "a member that R4 does not have": ({"foo": 1}, "Parameters"),
    "an id that is none": ({"id": "a b"}, "Parameters.id"),
    "an entry that is no object": ({"parameter": [5]}, "Parameters.parameter[1]"),
    "a name that is none": ({"parameter": [{"name": 5}]}, "Parameters.parameter[1].name"),
    "a value of another type": (
        {"parameter": [{"name": "more", "valueCode": 5}]},
        "Parameters.parameter[1].value",
    ),
    "an entry with a stray member": (
        {"parameter": [{"name": "more", "foo": 1}]},
        "Parameters.parameter[1]",
    ),
}


@pytest.mark.parametrize("case", WRONG_ENVELOPES)
def test_the_parameters_around_a_wrapped_resource_are_validated_too(
    lab: Integrator, case: str
) -> None:
    changes, place = WRONG_ENVELOPES[case]
    body = wrapped(contained("V-12"))
    entries = [*body["parameter"], *changes.get("parameter", ())]

    answer = validate(lab, {**body, **changes, "parameter": entries})

    assert "error" in severities(answer)
    assert place in answer.issue_expressions


def test_a_wrapped_resource_has_no_value_next_to_it(lab: Integrator) -> None:
    body = wrapped(contained("V-13"))
    body["parameter"][0]["valueString"] = "a"

    answer = validate(lab, body)

    assert (severities(answer), answer.issue_expressions) == (
        ["error"],
        {"Parameters.parameter[0]"},
    )


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "resource", "resource": {"resourceType": "DiagnosticReport"}},
        {"name": "mode", "valueCode": "create"},
    ],
    ids=["resource", "mode"],
)
def test_which_of_two_entries_is_meant_is_not_guessed(
    lab: Integrator, entry: dict[str, Any]
) -> None:
    body = wrapped(contained("V-14"), mode={"valueCode": "create"})
    body["parameter"].append(entry)

    assert validate(lab, body).status == 400


def test_the_operation_is_declared_and_defined(lab: Integrator) -> None:
    statement = lab.get("/fhir/r4/metadata").json
    (operation,) = [
        item
        for resource in statement["rest"][0]["resource"]
        if resource["type"] == "DiagnosticReport"
        for item in resource["operation"]
        if item["name"] == "validate"
    ]

    definition = lab.get(operation["definition"].removeprefix(lab.service.base_url))

    assert (definition.status, definition.json["code"]) == (200, "validate")
