"""Codes of problems of requests, and their issue types: clients compare them."""

from __future__ import annotations

from fhirpub.problems import RequestProblem

CODES = {
    "TOKEN_MISSING": "token-missing: security",
    "AUTHORIZATION_MALFORMED": "authorization-malformed: security",
    "TOKEN_INVALID": "token-invalid: security",
    "TOKEN_EXPIRED": "token-expired: security",
    "TOKEN_REVOKED": "token-revoked: security",
    "TOKEN_MISDIRECTED": "token-misdirected: security",
    "CLIENT_DISABLED": "client-disabled: security",
    "ADDRESS_NOT_PERMITTED": "address-not-permitted: forbidden",
    "SCOPE_MISSING": "scope-missing: forbidden",
    "ADDRESS_UNKNOWN": "address-unknown: not-supported",
    "TYPE_UNKNOWN": "type-unknown: not-supported",
    "TYPE_NOT_SEARCHABLE": "type-not-searchable: not-supported",
    "BATCH_UNSUPPORTED": "batch-unsupported: not-supported",
    "METHOD_UNSUPPORTED": "method-unsupported: not-supported",
    "FORMAT_UNSUPPORTED": "format-unsupported: not-supported",
    "BODY_TYPE_UNSUPPORTED": "body-type-unsupported: not-supported",
    "RESOURCE_ERASED": "resource-erased: deleted",
    "RESOURCE_UNKNOWN": "resource-unknown: not-found",
    "RECORD_UNKNOWN": "record-unknown: not-found",
    "NO_MATCH": "no-match: not-found",
    "SEVERAL_MATCHES": "several-matches: multiple-matches",
    "VERSION_CONFLICT": "version-conflict: conflict",
    "PRECONDITION_MALFORMED": "precondition-malformed: conflict",
    "PRECONDITION_REQUIRED": "precondition-required: required",
    "RANGE_UNSATISFIABLE": "range-unsatisfiable: invalid",
    "REQUEST_MALFORMED": "request-malformed: exception",
    "ADDRESS_TOO_LONG": "address-too-long: too-costly",
    "HEAD_TOO_LARGE": "head-too-large: too-costly",
    "REQUEST_TIMEOUT": "request-timeout: timeout",
    "RATE_LIMITED": "rate-limited: throttled",
    "QUOTA_USED_UP": "quota-used-up: throttled",
    "STORAGE_QUOTA_USED_UP": "storage-quota-used-up: business-rule",
    "SERVICE_BUSY": "service-busy: transient throttled",
    "STORE_UNAVAILABLE": "store-unavailable: transient",
    "WEBHOOKS_UNAVAILABLE": "webhooks-unavailable: exception",
    "TENANT_UNAVAILABLE": "tenant-unavailable: exception",
    "INTERNAL_ERROR": "internal-error: exception",
}


def test_each_problem_keeps_its_code_and_its_types() -> None:
    assert {one.name: f"{one}: {' '.join(one.types)}" for one in RequestProblem} == CODES
