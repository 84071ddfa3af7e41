"""GET /metrics, on a port of its own: what it tells is the operator's, not the clients'."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus

from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPHeaders, HTTPServerRequest, ResponseStartLine
from tornado.netutil import bind_sockets

from fhirpub.config import MetricsConfig
from fhirpub.errors import ConfigurationError
from fhirpub.metrics import Metrics

_PATH = "/metrics"
_MOST_BYTES = 4_096
_IDLE_SECONDS = 120.0


def bind_page(config: MetricsConfig) -> list[socket.socket]:
    """Listen where the metrics are to be served, if a port is named; raises ConfigurationError."""
    if not config.port:
        return []
    try:
        return bind_sockets(config.port, address=config.host)
    except OSError as problem:
        address = f"{config.host} port {config.port}"
        raise ConfigurationError(
            f"[metrics] port: cannot listen on {address}: {problem.strerror}"
        ) from None


@asynccontextmanager
async def published(
    metrics: Metrics, sockets: Sequence[socket.socket]
) -> AsyncGenerator[None, None]:
    """Serve the metrics until the block ends."""
    server = HTTPServer(
        _Page(metrics).answer,
        max_header_size=_MOST_BYTES,
        max_body_size=_MOST_BYTES,
        idle_connection_timeout=_IDLE_SECONDS,
    )
    server.add_sockets(list(sockets))
    try:
        yield
    finally:
        server.stop()
        await server.close_all_connections()


class _Page:
    """Answers requests for the one page that there is."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def answer(self, request: HTTPServerRequest) -> None:
        """Answer with all metrics, or with 404."""
        status, body, media_type = HTTPStatus.NOT_FOUND, b"", "text/plain"
        if request.path == _PATH and request.method in ("GET", "HEAD"):
            status = HTTPStatus.OK
            body, media_type = self._metrics.text(request.headers.get("Accept", ""))
        headers = HTTPHeaders({"Content-Type": media_type, "Content-Length": str(len(body))})
        start_line = ResponseStartLine("HTTP/1.1", status, status.phrase)
        if request.connection is not None:
            shown = b"" if request.method == "HEAD" else body
            request.connection.write_headers(start_line, headers, shown)
            request.connection.finish()
