"""Bodies and their schemas, and examples that work."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.testing.service import Integrator, RunningService
from fhirpub.web.openapi.request_bodies import _contained, _update, example_of
from tests.unit.web.handlers.asking import REPORTS, path_of
from tests.unit.web.openapi import described


def test_the_own_schemas_are_described_as_they_are_wanted(document: Any) -> None:
    assert [*described.schemas(document)] == described.wanted("schemas")


def examples(document: Any, path: str, method: str = "post") -> list[Any]:
    content = document["paths"][path][method]["requestBody"]["content"]
    found = content["application/fhir+json"]
    named = [one["value"] for one in found.get("examples", {}).values()]
    return named or [found["example"]]


@pytest.mark.parametrize(("name", "status"), [("/$register", 201), ("", 201), ("/$validate", 200)])
def test_the_examples_of_bodies_are_taken(
    lab: Integrator, document: Any, name: str, status: int
) -> None:
    for example in examples(document, f"{REPORTS}{name}"):
        assert lab.request("POST", f"{REPORTS}{name}", example).status == status


def test_the_example_of_an_update_is_taken(lab: Integrator, document: Any) -> None:
    (registration,) = examples(document, f"{REPORTS}/$register")
    path = path_of(lab.register(registration))

    for example in examples(document, f"{REPORTS}/{{id}}", "patch"):
        assert lab.patch(path, example).status == 204


def test_the_example_of_a_batch_is_taken(lab: Integrator, document: Any) -> None:
    (example,) = examples(document, "/fhir/r4")

    answer = lab.request("POST", "/fhir/r4", example)

    assert answer.status == 200
    assert [one["response"]["status"][:3] for one in answer.json["entry"]] == ["200"]


def bodies(document: Any) -> dict[str, Any]:
    """Return each body of an operation by its method and path."""
    return {
        f"{method} {path}": operation["requestBody"]
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if "requestBody" in operation
    }


def test_a_body_may_be_left_out_only_where_nothing_in_it_is_needed(document: Any) -> None:
    optional = {name for name, body in bodies(document).items() if not body["required"]}

    one = "/webhooks/v1/endpoints/{id}"
    acts = {f"post {one}/{name}" for name in ("secret:rotate", "token:rotate", "test")}
    assert optional == {f"patch {one}", *acts}


def test_tokens_are_asked_for_and_revoked_by_forms(document: Any) -> None:
    found = bodies(document)

    for path, name in (("token", "TokenRequest"), ("revoke", "RevocationRequest")):
        assert found[f"post /oauth/{path}"] == {
            "required": True,
            "content": {
                "application/x-www-form-urlencoded": {
                    "schema": {"$ref": f"#/components/schemas/{name}"}
                }
            },
        }


def test_a_body_of_fhir_may_be_xml_and_a_patch_has_forms_of_its_own(document: Any) -> None:
    found = bodies(document)

    for name in ("/$register", "", "/$validate"):
        assert "application/fhir+xml" in found[f"post {REPORTS}{name}"]["description"]
    patch = found[f"patch {REPORTS}/{{id}}"]
    assert "application/json-patch+json" in patch["description"]
    assert {*patch["content"]} == {"application/fhir+json", "application/merge-patch+json"}


def test_a_registration_names_which_entries_it_needs_and_which_repeat(document: Any) -> None:
    whole = document["components"]["schemas"]["RegisterDiagnosticReport"]
    entries = whole["properties"]["parameter"]

    assert entries["description"] == (
        "One entry each; required: diagnosticReport, patient, organization. "
        "Any number of each: observation, specimen, serviceRequest, practitioner."
    )
    assert entries["minItems"] == 3


def test_what_nothing_refers_to_is_not_contained_in_an_example(service: RunningService) -> None:
    whole = service.services.types["DiagnosticReport"]
    apart = replace(whole, example={**whole.example, "subject": {"display": "A person"}})

    kinds = [
        {one["resourceType"] for one in _contained(each)["contained"]} for each in (whole, apart)
    ]

    assert kinds[0] - kinds[1] == {"Patient"}


def test_a_type_without_an_example_has_none(service: RunningService) -> None:
    plain = replace(service.services.types["DiagnosticReport"], example={})

    assert (example_of(plain), _contained(plain)) == ({}, {})


def test_an_update_may_name_each_form_of_an_element_that_can_be_updated(
    service: RunningService, document: Any
) -> None:
    whole = service.services.types["DiagnosticReport"]
    schema = document["components"]["schemas"]["DiagnosticReport"]

    fields = _update(replace(whole, updatable=frozenset({"status", "effective[x]"})), schema)

    named = {"effectiveDateTime", "effectivePeriod", "status"}
    assert fields["properties"].keys() == {"resourceType", *named}
