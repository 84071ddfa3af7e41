"""Where requests come in: from Tornado's HTTP server to a handler, with nothing in between.

Tornado reads and checks what HTTP/1.1 says about messages. Its ``RequestHandler`` is left out:
what it does beside (cookies, templates, arguments of many forms) is not needed here, and costs
as much as reading the request.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable
from functools import lru_cache
from typing import Any

from tornado.httputil import (
    HTTPHeaders,
    HTTPInputError,
    HTTPMessageDelegate,
    HTTPServerConnectionDelegate,
    RequestStartLine,
    ResponseStartLine,
)

from fhirpub.web.base import BaseHandler
from fhirpub.web.http1 import framing_problem
from fhirpub.web.request import Request
from fhirpub.web.routes import Router
from fhirpub.web.services import Services

_HOST = re.compile(r"[A-Za-z0-9._~!$&'()*+;=%:\[\]-]*")


class Front(HTTPServerConnectionDelegate):
    """What a Tornado ``HTTPServer`` is given: one for the service, for all connections."""

    def __init__(self, services: Services) -> None:
        """Read the table of URLs; raises ConfigurationError."""
        self._router = Router(services)

    def start_request(self, server_conn: object, request_conn: Any) -> HTTPMessageDelegate:  # noqa: ARG002
        """Expect a request on a connection."""
        return _Arriving(self._router, request_conn)


class _Arriving(HTTPMessageDelegate):
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
        request = Request(start_line, headers, self._connection)
        problem = framing_problem(headers) or _host_problem(start_line.version, headers)
        if problem:
            self._handler = self._router.malformed(request, problem)
            self._handler.begin()
            # Else what was read already would be taken for another request.
            raise HTTPInputError(problem)
        self._handler = self._router.handler(request)
        return self._handler.begin()

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        return self._handler.data_received(chunk)

    def finish(self) -> None:
        self._handler.run()

    def on_connection_close(self) -> None:
        if hasattr(self, "_handler"):
            self._handler.abandon()


def _host_problem(version: str, headers: HTTPHeaders) -> str:
    if "Host" not in headers and version == "HTTP/1.0":
        return ""
    return "" if _is_host(headers.get("Host", ",")) else "one Host is needed"


@lru_cache(maxsize=256)
def _is_host(host: str) -> bool:
    """Tell whether one host is named, or none on purpose (RFC 9112 section 3.2)."""
    return _HOST.fullmatch(host) is not None
