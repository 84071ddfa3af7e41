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
        if "," in headers.get("Content-Length", ""):
            raise HTTPInputError("more than one Content-Length")  # even if both say the same
        if "Host" in headers or start_line.version != "HTTP/1.0":
            _check_host(headers.get("Host", ","))
        self._handler = self._router.handler(Request(start_line, headers, self._connection))
        return self._handler.begin()

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        return self._handler.data_received(chunk)

    def finish(self) -> None:
        self._handler.run()

    def on_connection_close(self) -> None:
        if hasattr(self, "_handler"):
            self._handler.abandon()


@lru_cache(maxsize=256)
def _check_host(host: str) -> None:
    """Refuse what names no host, or more than one (RFC 9112 section 3.2)."""
    if not _HOST.fullmatch(host):
        raise HTTPInputError("one Host is needed")
