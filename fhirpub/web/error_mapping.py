"""The one table from refusals to HTTP: status, issue code, and headers (D-139)."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from tornado.httputil import HTTPInputError

from fhirpub import errors
from fhirpub.errors import FhirpubError, Issue
from fhirpub.http.head import MAX_FIELDS, HeadTooLong, HeadTooSlow
from fhirpub.http.reader import TooLong
from fhirpub.interactions.erased import IdentifierErased, ResourceErased
from fhirpub.interactions.operations.execution import OperationFailed
from fhirpub.problems import ContentProblem, Problem, RequestProblem
from fhirpub.web.message.byte_range import RangeNotSatisfiable
from fhirpub.web.message.content_negotiation import (
    CompressedBody,
    NotAcceptable,
    UnsupportedMediaType,
)

HEAD_BYTES = 16_384
"""How long the line and the headers of a request may be."""


class MalformedRequest(FhirpubError):
    """The head of the request breaks HTTP, so that the end of its body is unknown."""

    details = RequestProblem.REQUEST_MALFORMED


class AddressTooLong(FhirpubError):
    """The first line of the request is longer than is read (RFC 9112, 3)."""

    details = RequestProblem.ADDRESS_TOO_LONG


class HeadTooLarge(FhirpubError):
    """The line and the headers of the request are longer than they may be."""

    details = RequestProblem.HEAD_TOO_LARGE


class TooSlow(FhirpubError):
    """The body of the request took longer than is waited for."""

    details = RequestProblem.REQUEST_TIMEOUT


class NoSuchAddress(FhirpubError):
    """Nothing is served under the path."""

    def __init__(self, said: str, details: Problem = RequestProblem.ADDRESS_UNKNOWN) -> None:
        super().__init__(said)
        self.details = details


class MethodNotAllowed(FhirpubError):
    """The path does not have the method. ``allow`` lists those that what it leads to has."""

    details = RequestProblem.METHOD_UNSUPPORTED

    def __init__(self, said: str, *, allow: str = "") -> None:
        super().__init__(said)
        self.allow = allow


class AddressNotPermitted(FhirpubError):
    """The token is good, but its client may not call from this address (D-345)."""

    details = RequestProblem.ADDRESS_NOT_PERMITTED

    def __init__(self, client_id: str, address: str) -> None:
        super().__init__("the client may not call from this address: ask the operator")
        self.client_id = client_id
        self.address = address


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and the issues to send with it."""

    status: int
    issues: tuple[Issue, ...]


_REFUSALS: dict[type[FhirpubError], tuple[HTTPStatus, str]] = {
    errors.InvalidContent: (HTTPStatus.BAD_REQUEST, "exception"),
    errors.InvalidSearch: (HTTPStatus.BAD_REQUEST, "invalid"),
    errors.NotAuthenticated: (HTTPStatus.UNAUTHORIZED, "security"),
    OperationFailed: (HTTPStatus.INTERNAL_SERVER_ERROR, "exception"),
    errors.NotPermitted: (HTTPStatus.FORBIDDEN, "forbidden"),
    AddressNotPermitted: (HTTPStatus.FORBIDDEN, "forbidden"),
    errors.StorageQuotaExceeded: (HTTPStatus.FORBIDDEN, "business-rule"),
    errors.NoSuchResource: (HTTPStatus.NOT_FOUND, "not-found"),
    errors.NoSuchRecord: (HTTPStatus.NOT_FOUND, "not-found"),
    ResourceErased: (HTTPStatus.GONE, "deleted"),
    IdentifierErased: (HTTPStatus.CONFLICT, "deleted"),
    MalformedRequest: (HTTPStatus.BAD_REQUEST, "exception"),
    AddressTooLong: (HTTPStatus.REQUEST_URI_TOO_LONG, "too-costly"),
    HeadTooLarge: (HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "too-costly"),
    TooSlow: (HTTPStatus.REQUEST_TIMEOUT, "timeout"),
    NoSuchAddress: (HTTPStatus.NOT_FOUND, "not-supported"),
    MethodNotAllowed: (HTTPStatus.METHOD_NOT_ALLOWED, "not-supported"),
    errors.NotExpressible: (HTTPStatus.NOT_ACCEPTABLE, "not-supported"),
    NotAcceptable: (HTTPStatus.NOT_ACCEPTABLE, "not-supported"),
    errors.NoneMatches: (HTTPStatus.NOT_FOUND, "not-found"),
    errors.OtherContent: (HTTPStatus.CONFLICT, "duplicate"),
    errors.NotPossible: (HTTPStatus.CONFLICT, "conflict"),
    errors.SeveralMatch: (HTTPStatus.PRECONDITION_FAILED, "multiple-matches"),
    errors.VersionConflict: (HTTPStatus.PRECONDITION_FAILED, "conflict"),
    errors.PreconditionRequired: (HTTPStatus.PRECONDITION_REQUIRED, "required"),
    errors.TooLarge: (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-costly"),
    RangeNotSatisfiable: (HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, "invalid"),
    UnsupportedMediaType: (HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "not-supported"),
    errors.SearchTooCostly: (HTTPStatus.UNPROCESSABLE_ENTITY, "too-costly"),
    errors.BrokenRule: (HTTPStatus.UNPROCESSABLE_ENTITY, "business-rule"),
    errors.Throttled: (HTTPStatus.TOO_MANY_REQUESTS, "throttled"),
    errors.Busy: (HTTPStatus.SERVICE_UNAVAILABLE, "transient"),
    errors.StoreUnavailable: (HTTPStatus.SERVICE_UNAVAILABLE, "transient"),
    errors.SecretsUnavailable: (HTTPStatus.SERVICE_UNAVAILABLE, "exception"),
}

_TOKEN_REFUSALS = {
    "invalid_request": HTTPStatus.BAD_REQUEST,
    "unsupported_grant_type": HTTPStatus.BAD_REQUEST,
    "unauthorized_client": HTTPStatus.BAD_REQUEST,
    "invalid_client": HTTPStatus.UNAUTHORIZED,
    "insufficient_scope": HTTPStatus.FORBIDDEN,
}


def refusal_of(problem: HTTPInputError) -> FhirpubError:
    """Return the refusal of what breaks HTTP, or is longer or slower than it may be."""
    if isinstance(problem, HeadTooSlow):
        return TooSlow("the head was not complete in time; it may be sent again")
    if not isinstance(problem, HeadTooLong):
        return MalformedRequest(str(problem))
    if problem.in_line:
        return AddressTooLong("the address is too long; a search can be sent to _search instead")
    if problem.in_fields:
        return HeadTooLarge(f"there are more than {MAX_FIELDS} header fields")
    return HeadTooLarge(f"the line and the headers have more than {HEAD_BYTES} bytes")


def body_refusal_of(problem: HTTPInputError, *, most: int) -> FhirpubError:
    """Return the refusal of a body that has more than ``most`` bytes, or breaks HTTP."""
    if not isinstance(problem, TooLong):
        return refusal_of(problem)
    rule = f"the body has more than {most} bytes"
    return errors.TooLarge.because(rule, details=ContentProblem.BODY_TOO_LARGE)


def response_for(problem: BaseException) -> Answer:
    """Return what a request gets that ended with an exception."""
    for kind, (mapped, code) in _REFUSALS.items():
        if isinstance(problem, kind):
            if isinstance(problem, errors.Refused):
                return Answer(mapped.value, problem.issues)
            issue = Issue.error(problem.details, str(problem), code=code)
            return Answer(mapped.value, (issue,))
    text = "the service could not answer; the request may be sent again"
    issue = Issue.error(RequestProblem.INTERNAL_ERROR, text)
    return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, (issue,))


def headers_for(problem: BaseException) -> dict[str, str]:
    """Return the headers that a refusal obliges to, such as the challenge of a 401."""
    if isinstance(problem, (errors.NotAuthenticated, errors.NotPermitted)):
        return {"WWW-Authenticate": f'Bearer realm="fhirpub"{_token_error(problem)}'}
    if isinstance(problem, MethodNotAllowed) and problem.allow:
        return {"Allow": problem.allow}
    if isinstance(problem, CompressedBody):  # RFC 9110, 12.5.3
        return {"Accept-Encoding": problem.accepted}
    if isinstance(problem, RangeNotSatisfiable):
        return {"Content-Range": f"bytes */{problem.size}"}
    if isinstance(problem, (errors.Throttled, errors.Busy, errors.StoreUnavailable)):
        return {"Retry-After": str(problem.retry_after)}
    return {}


def _token_error(problem: errors.NotAuthenticated | errors.NotPermitted) -> str:
    """Return what is wrong with the token, if one was sent (RFC 6750, 3 and 3.1)."""
    if isinstance(problem, errors.NotPermitted):
        scope = f', scope="{problem.scope}"' if problem.scope else ""
        return f', error="insufficient_scope", error_description="{problem}"{scope}'
    if not problem.token_sent:  # then the header names no error
        return ""
    return f', error="invalid_token", error_description="{problem}"'


def status_of(problem: errors.TokenRefused) -> int:
    """Return the status of the token endpoint's own errors."""
    return _TOKEN_REFUSALS[problem.error].value


def is_expected(problem: BaseException) -> bool:
    """Return whether a problem is a refusal of the request, not a fault of the service."""
    return isinstance(problem, FhirpubError)
