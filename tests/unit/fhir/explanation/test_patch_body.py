"""What the sender of a patch of another form is advised to send."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.fhir.explanation.patch_body import refuse_patch
from fhirpub.problems import OperationProblem

TYPES = ("Observation", "Parameters")
JSON_PATCH = "a JSON Patch has the Content-Type application/json-patch+json"
MERGE_PATCH = "a merge patch has the Content-Type application/merge-patch+json"


def sentence(body: Any, wanted: str = "object") -> str:
    (issue,) = refuse_patch(body, TYPES, wanted, "Observation").issues
    assert issue.diagnostics
    return issue.diagnostics


def test_an_array_is_a_json_patch() -> None:
    assert sentence([{"op": "add"}]).endswith(JSON_PATCH)


def test_parameters_are_a_patch_that_is_not_supported() -> None:
    assert sentence({"resourceType": "Parameters"}).endswith(
        "FHIRPath Patch is not supported: send the fields to update as a Observation, "
        "or a merge patch or a JSON Patch"
    )


def test_one_operation_belongs_in_an_array() -> None:
    assert sentence({"op": "add", "path": "/status"}).endswith(
        "a JSON Patch is an array, also of one operation"
    )


def test_an_object_without_a_type_is_a_merge_patch() -> None:
    assert sentence({"status": "final"}).endswith(MERGE_PATCH)


def test_a_resource_has_a_type_of_content_of_its_own() -> None:
    assert sentence({"resourceType": "Observation"}, "array").endswith(
        f"its Content-Type is application/fhir+json; {MERGE_PATCH}"
    )


@pytest.mark.parametrize("body", [[], {"op": "add"}, {"resourceType": "Parameters"}])
def test_the_refusal_has_the_code_and_the_place_of_a_patch_of_another_form(body: Any) -> None:
    (issue,) = refuse_patch(body, TYPES, "object", "Observation").issues

    assert issue.details is OperationProblem.PATCH_OF_OTHER_FORM
    assert issue.expression == "Observation"
