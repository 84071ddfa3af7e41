"""Codes of problems of operations and searches, and their issue types: clients compare them."""

from __future__ import annotations

from fhirpub.problems import OperationProblem

CODES = {
    "UPDATE_EMPTY": "update-empty: exception",
    "ELEMENT_NOT_UPDATABLE": "element-not-updatable: business-rule",
    "PATCH_OF_OTHER_FORM": "patch-of-other-form: exception",
    "PATCH_MALFORMED": "patch-malformed: exception",
    "PATCH_FAILED": "patch-failed: business-rule",
    "ATTACHMENT_DIVIDED": "attachment-divided: business-rule",
    "NARRATIVE_OUTDATED": "narrative-outdated: business-rule",
    "PARAMETER_UNKNOWN": "parameter-unknown: not-supported",
    "PARAMETER_INVALID": "parameter-invalid: invalid not-supported",
    "PARAMETER_EMPTY": "parameter-empty: invalid",
    "CONDITION_EMPTY": "condition-empty: invalid",
    "PAGE_LINK_INVALID": "page-link-invalid: invalid",
    "SEARCH_TOO_COSTLY": "search-too-costly: too-costly invalid",
    "INCLUDE_INCOMPLETE": "include-incomplete: incomplete",
    "FIELD_INVALID": "field-invalid: value",
    "FIELD_UNKNOWN": "field-unknown: value",
    "FIELD_REQUIRED": "field-required: required",
    "NOT_POSSIBLE": "not-possible: conflict",
    "ENDPOINT_STATE": "endpoint-state: business-rule",
    "ENDPOINT_URL_REFUSED": "endpoint-url-refused: value",
    "ENDPOINTS_TOO_MANY": "endpoints-too-many: business-rule",
    "SECRETS_TOO_MANY": "secrets-too-many: business-rule",
    "ENDPOINT_TEST_FAILED": "endpoint-test-failed: business-rule",
    "OPERATION_REFUSED": "operation-refused: business-rule",
}


def test_each_problem_keeps_its_code_and_its_types() -> None:
    assert {one.name: f"{one}: {' '.join(one.types)}" for one in OperationProblem} == CODES
