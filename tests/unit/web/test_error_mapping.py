"""Each refusal has a status, an issue and the headers that HTTP wants with it."""

from __future__ import annotations

import pytest
from tornado.httputil import HTTPInputError

from fhirpub import errors
from fhirpub.errors import Issue
from fhirpub.http.head import MAX_FIELDS, HeadTooLong, HeadTooSlow
from fhirpub.interactions.erased import IdentifierErased, ResourceErased
from fhirpub.interactions.operations.execution import OperationFailed
from fhirpub.problems import RequestProblem
from fhirpub.web import error_mapping as mapping
from fhirpub.web.message.byte_range import RangeNotSatisfiable
from fhirpub.web.message.content_negotiation import (
    CompressedBody,
    NotAcceptable,
    UnsupportedMediaType,
)

DETAILS = RequestProblem.INTERNAL_ERROR


@pytest.mark.parametrize(
    ("problem", "status", "code"),
    [
        (mapping.MalformedRequest("x"), 400, "exception"),
        (mapping.AddressTooLong("x"), 414, "too-costly"),
        (mapping.HeadTooLarge("x"), 431, "too-costly"),
        (mapping.TooSlow("x"), 408, "timeout"),
        (mapping.NoSuchAddress("x"), 404, "not-supported"),
        (mapping.MethodNotAllowed("x"), 405, "not-supported"),
        (mapping.AddressNotPermitted("c", "a"), 403, "forbidden"),
        (NotAcceptable("x"), 406, "not-supported"),
        (CompressedBody("gzip"), 415, "not-supported"),
        (RangeNotSatisfiable(7), 416, "invalid"),
        (errors.Throttled(retry_after=7), 429, "throttled"),
        (errors.StoreUnavailable("x"), 503, "transient"),
        (errors.VersionConflict(target="1", current=2), 412, "conflict"),
        (errors.VersionReplaced(target="1", current=2), 412, "conflict"),
        (errors.PreconditionRequired(), 428, "required"),
        (errors.NotAuthenticated("r", "x", DETAILS, token_sent=True), 401, "security"),
        (errors.NotPermitted(), 403, "forbidden"),
        (errors.StoreUnavailable("away"), 503, "transient"),
        (errors.NotPossible("taken"), 409, "conflict"),
        (errors.StorageQuotaExceeded("tenant_bytes"), 403, "business-rule"),
        (errors.NoSuchRecord("endpoint", "a"), 404, "not-found"),
        (errors.NoSuchResource("Patient", "a"), 404, "not-found"),
        (errors.NoneMatches("x"), 404, "not-found"),
        (ResourceErased("Patient", "a"), 410, "deleted"),
        (IdentifierErased("Patient", "a"), 409, "deleted"),
        (errors.OtherContent("Patient/a", ["name"]), 409, "duplicate"),
        (errors.SeveralMatch("x"), 412, "multiple-matches"),
        (errors.NotExpressible("Patient.name"), 406, "not-supported"),
        (errors.QuotaExceeded("q", retry_after=7), 429, "throttled"),
        (errors.Busy(retry_after=7), 503, "transient"),
        (errors.SecretsUnavailable("x"), 503, "exception"),
        (OperationFailed("page", "p"), 500, "exception"),
        (UnsupportedMediaType("x"), 415, "not-supported"),
        (errors.InvalidContent.because("x", details=DETAILS), 400, "exception"),
        (errors.InvalidSearch.because("x", details=DETAILS), 400, "invalid"),
        (errors.BrokenRule.because("x", details=DETAILS), 422, "business-rule"),
        (errors.SearchTooCostly.beyond_budget(), 422, "too-costly"),
        (errors.TooLarge.because("x", details=DETAILS), 413, "too-costly"),
    ],
)
def test_a_refusal_has_its_status_and_issue(
    problem: errors.FhirpubError, status: int, code: str
) -> None:
    answer = mapping.response_for(problem)

    assert (answer.status, [issue.code for issue in answer.issues]) == (status, [code])
    assert mapping.is_expected(problem)


def test_a_fault_is_a_500_without_its_text() -> None:
    answer = mapping.response_for(RuntimeError("secret"))

    assert answer.status == 500
    assert "secret" not in str(answer)
    assert not mapping.is_expected(RuntimeError())
    assert mapping.headers_for(RuntimeError()) == {}


def test_a_request_without_a_token_is_challenged_without_an_error() -> None:
    problem = errors.NotAuthenticated("r", "a token is needed", DETAILS, token_sent=False)

    assert mapping.headers_for(problem) == {"WWW-Authenticate": 'Bearer realm="fhirpub"'}


def test_a_token_that_is_not_valid_is_challenged_with_the_reason() -> None:
    problem = errors.NotAuthenticated("r", "the token has expired", DETAILS, token_sent=True)

    assert mapping.headers_for(problem)["WWW-Authenticate"] == (
        'Bearer realm="fhirpub", error="invalid_token", error_description="the token has expired"'
    )


def test_a_missing_scope_is_challenged_as_such() -> None:
    headers = mapping.headers_for(errors.NotPermitted())

    assert 'error="insufficient_scope"' in headers["WWW-Authenticate"]
    assert "scope=" not in headers["WWW-Authenticate"]


def test_a_challenge_names_the_missing_scope_if_it_is_known() -> None:
    headers = mapping.headers_for(errors.NotPermitted("system/AuditEvent.s"))

    assert headers["WWW-Authenticate"].endswith(', scope="system/AuditEvent.s"')


@pytest.mark.parametrize(
    ("problem", "headers"),
    [
        (mapping.MethodNotAllowed("x", allow="GET, HEAD"), {"Allow": "GET, HEAD"}),
        (mapping.MethodNotAllowed("x"), {}),
        (CompressedBody("gzip"), {"Accept-Encoding": "gzip"}),
        (RangeNotSatisfiable(7), {"Content-Range": "bytes */7"}),
        (errors.Throttled(retry_after=7), {"Retry-After": "7"}),
        (mapping.AddressNotPermitted("c", "a"), {}),
        (mapping.NoSuchAddress("x"), {}),
    ],
)
def test_a_refusal_has_the_headers_of_its_status(
    problem: errors.FhirpubError, headers: dict[str, str]
) -> None:
    assert mapping.headers_for(problem) == headers


@pytest.mark.parametrize("problem", [errors.StoreUnavailable("x"), errors.Busy(retry_after=1)])
def test_what_may_be_repeated_names_the_time(problem: errors.FhirpubError) -> None:
    assert int(mapping.headers_for(problem)["Retry-After"]) > 0


@pytest.mark.parametrize(
    ("problem", "kind", "text"),
    [
        (HeadTooSlow(), mapping.TooSlow, "not complete in time"),
        (HeadTooLong(in_line=True), mapping.AddressTooLong, "_search instead"),
        (HeadTooLong(in_fields=True), mapping.HeadTooLarge, f"more than {MAX_FIELDS} header"),
        (HeadTooLong(), mapping.HeadTooLarge, f"more than {mapping.HEAD_BYTES} bytes"),
        (HTTPInputError("broken"), mapping.MalformedRequest, "broken"),
    ],
)
def test_what_breaks_http_is_refused_with_what_is_wrong(
    problem: HTTPInputError, kind: type[errors.FhirpubError], text: str
) -> None:
    refusal = mapping.refusal_of(problem)

    assert type(refusal) is kind
    assert text in str(refusal)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ("invalid_request", 400),
        ("unsupported_grant_type", 400),
        ("unauthorized_client", 400),
        ("invalid_client", 401),
        ("insufficient_scope", 403),
    ],
)
def test_the_token_endpoint_has_statuses_of_its_own(error: str, status: int) -> None:
    assert mapping._TOKEN_REFUSALS[error].value == status


def test_a_refusal_of_content_keeps_all_its_issues() -> None:
    issues = [Issue.error(DETAILS, "one"), Issue.error(DETAILS, "two")]

    answer = mapping.response_for(errors.InvalidContent(issues))

    assert (answer.status, [*answer.issues]) == (400, issues)


@pytest.mark.parametrize(
    ("problem", "details", "text"),
    [
        (
            mapping.NoSuchAddress("nothing", RequestProblem.TYPE_UNKNOWN),
            RequestProblem.TYPE_UNKNOWN,
            "nothing",
        ),
        (mapping.NoSuchAddress("nothing"), RequestProblem.ADDRESS_UNKNOWN, "nothing"),
        (mapping.MethodNotAllowed("use GET"), RequestProblem.METHOD_UNSUPPORTED, "use GET"),
        (
            mapping.AddressNotPermitted("c-1", "192.0.2.1"),
            RequestProblem.ADDRESS_NOT_PERMITTED,
            "the client may not call from this address: ask the operator",
        ),
    ],
)
def test_a_refusal_has_its_details_and_its_words(
    problem: errors.FhirpubError, details: RequestProblem, text: str
) -> None:
    (issue,) = mapping.response_for(problem).issues

    assert (issue.details, issue.diagnostics) == (details, text)


def test_the_address_that_is_not_permitted_is_for_the_log() -> None:
    problem = mapping.AddressNotPermitted("c-1", "192.0.2.1")

    assert (problem.client_id, problem.address) == ("c-1", "192.0.2.1")
    assert "192.0.2.1" not in str(problem)


def test_a_fault_may_be_sent_again() -> None:
    (issue,) = mapping.response_for(KeyError("x")).issues

    assert issue.diagnostics == "the service could not answer; the request may be sent again"
    assert issue.details == RequestProblem.INTERNAL_ERROR


def test_a_status_of_the_token_endpoint_is_that_of_its_error() -> None:
    assert mapping.status_of(errors.TokenRefused("invalid_client", "x")) == 401
