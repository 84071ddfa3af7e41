"""Where requests come in: from the HTTP connection to a handler, with nothing in between.

The rules of HTTP/1.1 about messages are checked before. Tornado's ``RequestHandler`` is left
out: what it does beside (cookies, templates, arguments of many forms) is not needed here, and
costs as much as reading the request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any

from tornado.httputil import (
    HTTPHeaders,
    HTTPInputError,
    RequestStartLine,
    ResponseStartLine,
)

from fhirpub.errors import Issue
from fhirpub.fhir.outcome import outcome_of
from fhirpub.fhir.strict_json import dumps
from fhirpub.http.exchange import Exchange
from fhirpub.http.server import Delegate, Message
from fhirpub.problems import RequestProblem
from fhirpub.web.error_mapping import body_refusal_of, refusal_of
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.message.request import Request
from fhirpub.web.routes import Route, Router
from fhirpub.web.services import Services

_BUSY = Issue.error(
    RequestProblem.SERVICE_BUSY, "too many connections; retry in some seconds", code="throttled"
)


class RequestRouterAdapter(Delegate):
    """What a server is given: one for the service, for all connections."""

    def __init__(self, services: Services, table: Sequence[Route] = ()) -> None:
        """Read a table of URLs, by default that of the service; raises ConfigurationError."""
        self._router = Router(services, table)
        self._busy = _busy_response(services.context.fhir_url)

    def start_request(self, server_conn: object, request_conn: Any) -> Message:  # noqa: ARG002
        """Expect a request on a connection."""
        return _RequestDelegate(self._router, request_conn)

    def refuse(
        self,
        exchange: Exchange,
        line: RequestStartLine,
        headers: HTTPHeaders,
        problem: HTTPInputError,
    ) -> None:
        """Respond with the problem as an OperationOutcome."""
        refusal = refusal_of(problem)
        self._router.refusing(Request(line, headers, exchange), refusal).begin()

    def busy_response(self) -> bytes:
        """Return the response to a connection that is one too many, as an OperationOutcome."""
        return self._busy


def _busy_response(fhir_url: str) -> bytes:
    body = dumps(outcome_of([_BUSY], fhir_url=fhir_url))
    return (
        b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/fhir+json\r\n"
        b"Retry-After: 5\r\nCache-Control: no-store\r\nConnection: close\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )


class _RequestDelegate(Message):
    """One request on its way in, handed on to its handler."""

    __slots__ = ("_connection", "_handler", "_router")

    def __init__(self, router: Router, connection: Any) -> None:
        self._router = router
        self._connection = connection
        self._handler: BaseHandler

    def headers_received(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders
    ) -> Awaitable[None] | None:
        if not isinstance(start_line, RequestStartLine):
            raise HTTPInputError("not a request")
        self._handler = self._router.handler(Request(start_line, headers, self._connection))
        return self._handler.begin()

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        return self._handler.data_received(chunk)

    def finish(self) -> None:
        self._handler.run()

    def refuse_body(self, problem: HTTPInputError) -> None:
        most = self._handler.services.config.limits.drain_bytes
        self._handler.refuse_now(body_refusal_of(problem, most=most))

    def on_connection_close(self) -> None:
        if hasattr(self, "_handler"):
            self._handler.cancel()
