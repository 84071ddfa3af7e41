"""The codes of problems: in every issue, published as a CodeSystem, with the id of the request."""

from __future__ import annotations

import pytest

from fhirpub.fhir.outcome import system_of_problems
from fhirpub.fhir.xml.reader import read_xml
from fhirpub.problems import ALL
from fhirpub.testing.service import Integrator, RunningService
from tests.bodies import register_body

SYSTEM = "/fhir/r4/CodeSystem/problem"


def test_the_code_system_has_every_code_of_the_service(service: RunningService) -> None:
    published = service.request("GET", SYSTEM).json

    assert [concept["code"] for concept in published["concept"]] == list(ALL)
    assert published["count"] == len(ALL)


def test_every_code_is_published_with_its_meaning_and_what_to_do(service: RunningService) -> None:
    published = service.request("GET", SYSTEM).json["concept"]

    for concept, problem in zip(published, ALL, strict=True):
        assert concept["definition"] == f"{problem.meaning} {problem.remedy}"


def test_the_system_of_an_issue_is_the_address_of_the_code_system(
    service: RunningService,
) -> None:
    refused = service.request("GET", "/fhir/r4/DiagnosticReport").issues[0]
    system = refused["details"]["coding"][0]["system"]

    published = service.request("GET", system.removeprefix(service.base_url)).json

    assert (published["resourceType"], published["url"]) == ("CodeSystem", system)
    assert system == system_of_problems(f"{service.base_url}/fhir/r4")


def test_the_code_system_can_be_read_as_xml(service: RunningService) -> None:
    in_xml = service.request("GET", f"{SYSTEM}?_format=xml")

    assert read_xml(in_xml.body) == service.request("GET", SYSTEM).json


@pytest.mark.parametrize("path", ["/nowhere", "/fhir/r4/DiagnosticReport", f"{SYSTEM}-other"])
def test_a_refusal_names_the_id_of_its_request(service: RunningService, path: str) -> None:
    refused = service.request("GET", path, headers={"X-Request-Id": "call_0.7-A"})

    assert refused.json["meta"]["source"] == f"{service.base_url}/fhir/r4#call_0.7-A"


def test_a_refusal_names_the_id_that_the_service_made(lab: Integrator) -> None:
    refused = lab.register({})

    assert refused.json["meta"]["source"].endswith(f"#{refused.headers['x-request-id']}")


def test_the_issues_of_a_registration_have_codes_but_no_request(lab: Integrator) -> None:
    registered = lab.register(register_body("P-1")).json["parameter"][1]["resource"]

    assert registered["issue"][0]["details"]["coding"][0]["code"] == "accepted"
    assert "meta" not in registered


def test_a_trial_names_the_id_of_its_request(lab: Integrator) -> None:
    path = "/fhir/r4/DiagnosticReport/$validate"

    tried = lab.request("POST", path, register_body("P-2"), {"X-Request-Id": "trial-1"})

    assert tried.json["meta"]["source"].endswith("#trial-1")
