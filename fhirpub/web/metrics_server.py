"""GET /metrics, on a separate port: metrics are for operators, not for clients."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

from tornado.httputil import (
    HTTPHeaders,
    HTTPInputError,
    RequestStartLine,
    ResponseStartLine,
)

from fhirpub.config.monitoring import MetricsConfig
from fhirpub.http.own_ports import bind_own_port
from fhirpub.http.server import Bounds, Delegate, Message, Server
from fhirpub.runtime.metrics import Metrics

_PATH = "/metrics"
_MAX_BYTES = 4_096
_IDLE_SECONDS = 120.0


def bind_page(config: MetricsConfig) -> list[socket.socket]:
    """Listen where the metrics are to be served, if a port is named; raises ConfigurationError."""
    if not config.port:
        return []
    return bind_own_port("metrics", config)


@asynccontextmanager
async def serve_metrics(
    metrics: Metrics, sockets: Sequence[socket.socket]
) -> AsyncGenerator[None, None]:
    """Serve the metrics until the block ends."""
    bounds = Bounds(head_bytes=_MAX_BYTES, body_bytes=_MAX_BYTES, idle_seconds=_IDLE_SECONDS)
    server = Server(_Page(metrics), bounds)
    server.add_sockets(list(sockets))
    try:
        yield
    finally:
        server.stop()
        await server.close_all_connections()


class _Page(Delegate):
    """Answers requests for the one page that there is."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def start_request(self, server_conn: object, request_conn: Any) -> Message:  # noqa: ARG002
        return _Asked(self._metrics, request_conn)


class _Asked(Message):
    """One request; a body is ignored."""

    def __init__(self, metrics: Metrics, connection: Any) -> None:
        self._metrics = metrics
        self._connection = connection
        self._line: RequestStartLine
        self._headers: HTTPHeaders

    def headers_received(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders
    ) -> None:
        if not isinstance(start_line, RequestStartLine):
            raise HTTPInputError("not a request")
        self._line, self._headers = start_line, headers
        if headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in headers:
            self.finish()  # nothing would end the wait for a body that does not come

    def refuse_body(self, problem: HTTPInputError) -> None:  # noqa: ARG002
        """Answer as ever."""
        self.finish()

    def finish(self) -> None:
        """Answer with all metrics, or with 404."""
        status, body, media_type = HTTPStatus.NOT_FOUND, b"", "text/plain"
        method, path = self._line.method, self._line.path.partition("?")[0]
        if path == _PATH and method in ("GET", "HEAD"):
            status = HTTPStatus.OK
            body, media_type = self._metrics.text(self._headers.get("Accept", ""))
        headers = HTTPHeaders({"Content-Type": media_type, "Content-Length": str(len(body))})
        start_line = ResponseStartLine("HTTP/1.1", status, status.phrase)
        shown = b"" if method == "HEAD" else body
        self._connection.write_headers(start_line, headers, shown)
        self._connection.finish()
