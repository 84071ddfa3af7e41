"""Requests of administration as the operations see them, and their responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from fhirpub.errors import ConfigurationError, FhirpubError, Issue, TokenRefused
from fhirpub.fhir.outcome import outcome_of
from fhirpub.fhir.strict_json import dumps
from fhirpub.problems import OperationProblem
from fhirpub.runtime.turns import in_turns
from fhirpub.web.error_mapping import Answer, headers_for, response_for, status_of

JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request, complete.

    Attributes:
        method: The method, in capitals.
        path: The path, as it was sent.
        query: The query, as it was sent.
        headers: The values of each header, by its name in lower case.
        body: The body.
        address: The address of the client.
        request_id: The id by which the log and the audit trail know the request.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, list[str]]
    body: bytes = field(repr=False)
    address: str
    request_id: str

    def header(self, name: str) -> str:
        """Return the value of a header, or nothing."""
        return next(iter(self.headers.get(name, [])), "")


@dataclass(frozen=True, slots=True)
class Response:
    """A response, complete: nothing of administration is kept by caches."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def respond(value: Any, *, status: int = 200, media_type: str = JSON) -> Response:
    """Return a response with a value as JSON."""
    return Response(status, dumps(value), {"Content-Type": media_type})


async def respond_with_list(records: Sequence[Any], *, status: int = 200) -> Response:
    """Return a response with a list, which is encoded in turns with other requests."""
    encoded = await in_turns(dumps, records)
    return Response(status, b"[" + b",".join(encoded) + b"]", {"Content-Type": JSON})


def refuse(problem: Exception, *, fhir_url: str, request_id: str) -> Response:
    """Return the response to a request that ended with an exception: an OperationOutcome."""
    answer = _answer(problem)
    outcome = outcome_of(answer.issues, fhir_url=fhir_url, request_id=request_id)
    headers = {**headers_for(problem), "Content-Type": "application/fhir+json"}
    return Response(answer.status, dumps(outcome), headers)


def refuse_token(problem: TokenRefused) -> Response:
    """Return the refusal of a token as OAuth writes it (RFC 6749, section 5.2)."""
    refusal = {"error": problem.error, "error_description": str(problem)}
    return respond(refusal, status=status_of(problem))


def _answer(problem: Exception) -> Answer:
    if isinstance(problem, ConfigurationError):  # its text is for operators, as all of these are
        issue = Issue.error(OperationProblem.NOT_POSSIBLE, str(problem), code="business-rule")
        return Answer(HTTPStatus.UNPROCESSABLE_ENTITY, (issue,))
    return response_for(problem)


def is_fault(problem: Exception) -> bool:
    """Return whether an exception is a fault of the service."""
    return not isinstance(problem, FhirpubError)
