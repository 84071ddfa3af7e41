"""A publisher whose service gives responses at hand, and keeps what it was sent."""

from __future__ import annotations

import io
import json
from typing import Any

from tornado.httpclient import HTTPRequest, HTTPResponse
from tornado.httputil import HTTPHeaders

from fhirpub.cli.http_client import Call
from fhirpub.cli.publish.publisher import Publisher

BASE = "https://fhir.example.org"


class Canned:
    """Grants a token, and gives the next response to each other request."""

    def __init__(self, *responses: HTTPResponse | Exception) -> None:
        self.calls: list[Call] = []
        """Requests but for those of tokens."""
        self.notes: list[str] = []
        self._responses = list(responses)

    @property
    def publisher(self) -> Publisher:
        return Publisher(self._send, BASE, {"client_id": "id"}, self.notes.append, lambda: ())

    def sent(self, number: int) -> Any:
        """Return the body of a request."""
        return json.loads(self.calls[number].body or b"null")

    async def _send(self, call: Call) -> HTTPResponse:
        if call.url.endswith("/oauth/token"):
            return response(200, {"access_token": "t"})
        self.calls.append(call)
        found = self._responses.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


def response(
    status: int, body: Any = None, *, reason: str | None = None, **headers: str
) -> HTTPResponse:
    """Return a response with a body of JSON, or of bytes as they are."""
    given = HTTPHeaders({name.replace("_", "-"): value for name, value in headers.items()})
    raw = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
    return HTTPResponse(
        HTTPRequest(BASE), status, headers=given, buffer=io.BytesIO(raw), reason=reason
    )


def created(version: int = 1, **headers: str) -> HTTPResponse:
    """Return the response to a registration."""
    location = f"{BASE}/fhir/r4/DiagnosticReport/d-1/_history/{version}"
    return response(201, {"resourceType": "Parameters"}, Location=location, **headers)


def different() -> HTTPResponse:
    """Return the response to a registration of what exists with other content."""
    return created(Idempotent_Replayed="true", Idempotent_Content="different")


def conflicting() -> HTTPResponse:
    """Return the response to the same, of a service that refuses other content."""
    return response(409, outcome({**issue("identifier-in-use"), "code": "duplicate"}))


def erased() -> HTTPResponse:
    """Return the response to a registration of what was erased."""
    return response(409, outcome({**issue("identifier-erased"), "code": "deleted"}))


def found(*resources: dict[str, Any]) -> HTTPResponse:
    """Return the page of a search."""
    return response(200, {"entry": [{"resource": each} for each in resources]})


def stored(version: int = 1, **elements: Any) -> dict[str, Any]:
    """Return a report that the service has."""
    return {
        "resourceType": "DiagnosticReport",
        "id": "d-1",
        "meta": {"versionId": str(version)},
        "status": "preliminary",
        **elements,
    }


def outcome(*issues: dict[str, Any]) -> dict[str, Any]:
    """Return an OperationOutcome."""
    return {"resourceType": "OperationOutcome", "issue": list(issues)}


def issue(
    code: str, *places: str, severity: str = "error", text: str = "It is wrong."
) -> dict[str, Any]:
    """Return an issue of the service."""
    return {
        "severity": severity,
        "code": "processing",
        "details": {"coding": [{"code": code}]},
        "diagnostics": text,
        "expression": list(places),
    }
