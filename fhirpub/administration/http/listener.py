"""The listener of administration: complete requests, each answered by the interface."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Any

from tornado.httputil import (
    HTTPHeaders,
    HTTPInputError,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.iostream import StreamClosedError

from fhirpub.administration.http.interface import Interface
from fhirpub.administration.http.responses import Asked, Response
from fhirpub.config.settings import Config
from fhirpub.errors import FhirpubError
from fhirpub.http.connections import ConnectionLimits
from fhirpub.http.exchange import Exchange, Headers
from fhirpub.http.server import Bounds, Delegate, Message, Server
from fhirpub.web.admission.body_timeout import BodyReadTimeout
from fhirpub.web.error_mapping import HEAD_BYTES, TooSlow, body_refusal_of, refusal_of
from fhirpub.web.message.request import Request

_BODY_BYTES = 1024 * 1024
_IDLE_SECONDS = 120.0
MAX_CONNECTIONS = 64


@asynccontextmanager
async def serve_admin(
    interface: Interface,
    sockets: Sequence[socket.socket],
    config: Config,
    body_timeout: BodyReadTimeout,
) -> AsyncGenerator[None, None]:
    """Serve administration until the block ends; then finish what is in progress."""
    delegate = _Delegate(interface, config, body_timeout)
    bounds = Bounds(
        head_bytes=HEAD_BYTES,
        body_bytes=_BODY_BYTES,
        idle_seconds=_IDLE_SECONDS,
        connections=ConnectionLimits(total=MAX_CONNECTIONS),
    )
    server = Server(delegate, bounds)
    server.add_sockets(list(sockets))
    try:
        yield
    finally:
        server.stop()
        if delegate.running:
            await asyncio.wait(delegate.running)
        await server.close_all_connections()


class _Delegate(Delegate):
    """Begins a message for each request."""

    def __init__(
        self, interface: Interface, config: Config, body_timeout: BodyReadTimeout
    ) -> None:
        self.interface = interface
        self.config = config
        self.body_timeout = body_timeout
        self.running: set[asyncio.Task[None]] = set()

    def start_request(self, server_conn: object, request_conn: Any) -> Message:  # noqa: ARG002
        return _Received(self, request_conn)

    def refuse(
        self,
        exchange: Exchange,
        line: RequestStartLine,
        headers: HTTPHeaders,
        problem: HTTPInputError,
    ) -> None:
        received = _Received(self, exchange)
        received.headers_received(line, headers)
        received.refuse(refusal_of(problem))


class _Received(Message):
    """One request on its way in."""

    def __init__(self, delegate: _Delegate, connection: Any) -> None:
        self._delegate = delegate
        self._connection = connection
        self._chunks: list[bytes] = []
        self._request: Request

    def headers_received(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders
    ) -> None:
        if not isinstance(start_line, RequestStartLine):
            raise HTTPInputError("not a request")
        self._request = Request(start_line, headers, self._connection)
        # A connection in the middle of a request makes no room for others (http/connections.py).
        self._delegate.body_timeout.begin(self._request, self._too_slow)

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        self._chunks.append(chunk)
        return None

    def refuse_body(self, problem: HTTPInputError) -> None:
        self.refuse(body_refusal_of(problem, most=_BODY_BYTES))

    def on_connection_close(self) -> None:
        self._delegate.body_timeout.end(self._request)

    def _too_slow(self) -> None:
        seconds = self._delegate.config.limits.body_seconds
        self.refuse(TooSlow(f"the body was not here after {seconds:g} seconds"))
        self._connection.close()

    def refuse(self, problem: FhirpubError) -> None:
        """Respond at once, to what has come of the request."""
        self._delegate.body_timeout.end(self._request)
        asked = self._asked()
        self._write(asked, self._delegate.interface.refuse(problem, asked))

    def finish(self) -> None:
        self._delegate.body_timeout.end(self._request)
        # A request that has begun is completed even if its client disconnects: a change and its
        # record in the audit trail belong together.
        task = asyncio.create_task(self._respond())
        self._delegate.running.add(task)
        task.add_done_callback(self._delegate.running.discard)

    async def _respond(self) -> None:
        asked = self._asked()
        self._write(asked, await self._delegate.interface.respond(asked))

    def _asked(self) -> Asked:
        request = self._request
        headers = request.headers
        return Asked(
            method=request.method,
            path=request.path,
            query=request.query,
            headers={name.lower(): headers.get_list(name) for name in {*headers.keys()}},
            body=b"".join(self._chunks),
            address=request.client_address(self._delegate.config.server.trusted_proxies),
            request_id=f"admin-{secrets.token_hex(8)}",
        )

    def _write(self, asked: Asked, response: Response) -> None:
        headers = Headers(
            {
                "Server": "fhirpub",
                "X-Request-Id": asked.request_id,
                "X-Content-Type-Options": "nosniff",
                "Cache-Control": "no-store",
                **response.headers,
                "Content-Length": str(len(response.body)),
            }
        )
        line = ResponseStartLine("HTTP/1.1", response.status, HTTPStatus(response.status).phrase)
        with suppress(StreamClosedError):
            body = b"" if asked.method == "HEAD" else response.body
            self._connection.write_headers(line, headers, body)
            self._connection.finish()
