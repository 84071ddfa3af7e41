"""Contained resources follow the same rules as the parts that are sent with a report."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.fhir.strict_json import dumps, loads_stored
from fhirpub.fhir.xml.writer import write_xml
from fhirpub.testing.service import Integrator, RunningService
from tests.bodies import organization, parameters, patient, register_body, report, self_contained
from tests.stored import store_again

CODE = {"coding": [{"system": "http://loinc.org", "code": "2951-2", "display": "Na"}]}
OTHER = {"coding": [{"system": "http://loinc.org", "code": "2823-3", "display": "K"}]}
HOME = {"use": "home", "system": "phone", "value": "1"}
OBSERVATION = {"resourceType": "Observation", "id": "c", "status": "final", "code": CODE}
ORGANIZATION = {"resourceType": "Organization", "id": "c", "name": "North Quay"}
PATIENT = {"resourceType": "Patient", "id": "c"}
ABSENT = {"dataAbsentReason": {"text": "lost"}}

BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "org-1": ({"resourceType": "Organization", "id": "c", "alias": ["NQ"]}, ""),
    "org-2": ({**ORGANIZATION, "address": [{"use": "home"}]}, ".address[0].use"),
    "org-3": ({**ORGANIZATION, "telecom": [HOME]}, ".telecom[0].use"),
    "pat-1": ({**PATIENT, "contact": [{"gender": "other"}]}, ".contact[0]"),
    "obs-3": (
        {**OBSERVATION, "referenceRange": [{"type": {"text": "normal"}}]},
        ".referenceRange[0]",
    ),
    "obs-3 of a component": (
        {**OBSERVATION, "component": [{"code": OTHER, "referenceRange": [{"appliesTo": [CODE]}]}]},
        ".component[0].referenceRange[0]",
    ),
    "obs-6": ({**OBSERVATION, "valueInteger": 3, **ABSENT}, ".dataAbsentReason"),
    "obs-7": (
        {**OBSERVATION, "valueInteger": 3, "component": [{"code": OTHER}, {"code": CODE}]},
        ".value",
    ),
}
SOUND: dict[str, dict[str, Any]] = {
    "an organization with an identifier alone": {
        "resourceType": "Organization",
        "id": "c",
        "identifier": [{"value": "7"}],
        "address": [{"use": "work"}],
    },
    "a patient's contact at home": {**PATIENT, "contact": [{"telecom": [HOME]}]},
    "an observation without a value": {**OBSERVATION, **ABSENT, "component": [{"code": CODE}]},
    "an observation with a value": {
        **OBSERVATION,
        "valueInteger": 3,
        "component": [{"code": OTHER, **ABSENT}],
        "referenceRange": [{"text": "1 to 5"}],
    },
}


def containing(contained: dict[str, Any]) -> dict[str, Any]:
    extension = [{"url": "https://lab.example/seen", "valueReference": {"reference": "#c"}}]
    return {"contained": [contained], "extension": extension}


@pytest.mark.parametrize("case", BROKEN)
def test_what_breaks_a_rule_of_its_type_is_refused_at_its_place(
    lab: Integrator, case: str
) -> None:
    contained, place = BROKEN[case]

    answer = lab.register(register_body("contained", **containing(contained)))

    at = f"Parameters.parameter[2].resource.contained[0]{place}"
    assert (answer.status, answer.issue_expressions) == (400, {at})
    assert case.partition(" ")[0] in answer.issues[0]["diagnostics"]


@pytest.mark.parametrize("case", BROKEN)
def test_it_is_refused_in_xml_as_well(lab: Integrator, case: str) -> None:
    contained, place = BROKEN[case]
    body = write_xml(register_body("contained", **containing(contained)))

    answer = lab.request(
        "POST",
        "/fhir/r4/DiagnosticReport/$register",
        body,
        {"Content-Type": "application/fhir+xml"},
    )

    at = f"Parameters.parameter[2].resource.contained[0]{place}"
    assert (answer.status, answer.issue_expressions) == (400, {at})


@pytest.mark.parametrize("case", ["obs-6", "obs-7"])
def test_it_is_refused_within_an_entry_as_well(lab: Integrator, case: str) -> None:
    contained, place = BROKEN[case]
    holder = patient(**containing(contained))

    answer = lab.register(
        parameters(patient=holder, organization=organization(), diagnosticReport=report("within"))
    )

    at = f"Parameters.parameter[0].resource.contained[0]{place}"
    assert (answer.status, answer.issue_expressions) == (400, {at})


def test_create_holds_its_parts_to_the_rules_of_their_types(lab: Integrator) -> None:
    parts = [
        patient(contact=[{"gender": "other"}]),
        organization(name=None, identifier=None),
    ]

    answer = lab.request(
        "POST", "/fhir/r4/DiagnosticReport", self_contained("parts", contained=parts)
    )

    at = "DiagnosticReport.contained"
    assert (answer.status, answer.issue_expressions) == (400, {f"{at}[0].contact[0]", f"{at}[1]"})


def test_a_resource_without_a_schema_is_validated_together_with_its_container(
    lab: Integrator,
) -> None:
    strange = {"resourceType": "Specimen", "id": "c", "strange": 1}

    answer = lab.register(register_body("both", status="nonsense", **containing(strange)))

    at = "Parameters.parameter[2].resource"
    assert (answer.status, answer.issue_expressions) == (
        400,
        {f"{at}.status", f"{at}.contained[0]"},
    )


@pytest.mark.parametrize("case", SOUND)
def test_what_is_right_is_kept(lab: Integrator, case: str) -> None:
    answer = lab.register(register_body(case, **containing(SOUND[case])))

    assert answer.status == 201, answer.body
    assert lab.get(answer.headers["location"]).json["contained"] == [SOUND[case]]


ROLE = {
    "resourceType": "PractitionerRole",
    "id": "role",
    "organization": {"reference": "#c"},
}
SPECIMEN = {"resourceType": "Specimen", "id": "s"}


@pytest.mark.parametrize(
    ("query", "contained"),
    [
        ("_elements=performer", [ROLE, ORGANIZATION]),
        ("_summary=true", [ROLE, ORGANIZATION]),
        ("_elements=specimen", [SPECIMEN]),
        ("_elements=conclusion", None),
    ],
)
def test_a_part_of_a_report_contains_what_it_refers_to(
    lab: Integrator, query: str, contained: Any
) -> None:
    answer = lab.register(body_that_contains())

    read = lab.get(f"{answer.headers['location']}?{query}").json
    found = lab.get(f"/fhir/r4/DiagnosticReport?identifier=parts&{query}").json

    assert read.get("contained") == contained
    assert found["entry"][0]["resource"].get("contained") == contained


def test_the_answer_to_a_registration_contains_what_it_refers_to(lab: Integrator) -> None:
    short = lab.register(body_that_contains()).json["parameter"][0]["resource"]

    assert short["performer"][0] == {"reference": "#role"}
    assert short["contained"] == [ROLE, ORGANIZATION]


def body_that_contains() -> dict[str, Any]:
    return register_body(
        "parts",
        contained=[SPECIMEN, ORGANIZATION, ROLE],
        specimen=[{"reference": "#s"}],
        performer=[{"reference": "#role"}, {"reference": "Organization/o1"}],
    )


@pytest.mark.parametrize(
    "before",
    [
        *(contained for contained, _place in BROKEN.values()),
        {**ORGANIZATION, "telecom": [{"value": "1"}]},
        {**OBSERVATION, "valueQuantity": {"value": 3, "code": "mmol/L"}},
    ],
    ids=[*BROKEN, "cpt-2", "qty-3"],
)
def test_what_is_contained_since_before_stays_open_to_updates(
    service: RunningService, lab: Integrator, before: dict[str, Any]
) -> None:
    sound = containing({**OBSERVATION, "id": "c"})
    path = lab.register(register_body(f"before {before}", **sound)).headers["location"]
    path = path.removeprefix(service.base_url).partition("/_history")[0]
    store_again(
        service, lab, path, lambda body: dumps({**loads_stored(body), "contained": [before]})
    )

    answer = lab.patch(path, {"resourceType": "DiagnosticReport", "status": "amended"})

    assert answer.status == 204, answer.body
    assert lab.get(path).json["contained"] == [before]
