"""The floor: a Tornado handler that returns a constant and does nothing else, in one process.

Two other servers return the same responses: they show the cost of HTTP parsing in Tornado and in
fhirpub.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.httputil import (
    HTTPHeaders,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from fhirpub.http.server import Bounds, Delegate, Message, Server

LOOPBACK = "127.0.0.1"
MEDIA_TYPE = "application/fhir+json"
REGISTER_ANSWER_BYTES = 1_300
READ_ANSWER_BYTES = 3_072


def constant(size: int) -> bytes:
    """Return a JSON object of exactly ``size`` bytes."""
    empty = json.dumps({"resourceType": "Basic", "text": ""}, separators=(",", ":"))
    padding = "x" * (size - len(empty))
    return json.dumps({"resourceType": "Basic", "text": padding}, separators=(",", ":")).encode()


class Constant(RequestHandler):
    """Returns the same for every path; Tornado has read the body before ``post`` is called."""

    register_answer = constant(REGISTER_ANSWER_BYTES)
    read_answer = constant(READ_ANSWER_BYTES)

    def compute_etag(self) -> str | None:
        """Skip the hash of each response: the cheaper the floor, the stricter the ratio."""
        return None

    def get(self) -> None:
        self.set_header("Content-Type", MEDIA_TYPE)
        self.finish(self.read_answer)

    def post(self) -> None:
        self.set_status(201)
        self.set_header("Content-Type", MEDIA_TYPE)
        self.finish(self.register_answer)


def silent(_handler: RequestHandler) -> None:
    """Log nothing about a request."""


class Bare(Delegate):
    """Returns the same as ``Constant``, from an HTTP connection and without a handler."""

    def start_request(self, server_conn: object, request_conn: Any) -> Message:  # noqa: ARG002
        return _BareMessage(request_conn)


class _BareMessage(Message):
    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._is_get = False

    def headers_received(self, start_line: Any, headers: HTTPHeaders) -> None:  # noqa: ARG002
        self._is_get = isinstance(start_line, RequestStartLine) and start_line.method == "GET"

    def data_received(self, chunk: bytes) -> None:
        """Discard the data."""

    def finish(self) -> None:
        body = Constant.read_answer if self._is_get else Constant.register_answer
        headers = HTTPHeaders({"Content-Type": MEDIA_TYPE, "Content-Length": str(len(body))})
        line = ResponseStartLine("HTTP/1.1", 200 if self._is_get else 201, "OK")
        self._connection.write_headers(line, headers, body)
        self._connection.finish()


FRONTS = {
    "handler": "Tornado's RequestHandler (the floor)",
    "connection": "Tornado's HTTP connection without it",
    "own": "fhirpub's HTTP connection",
}


async def serve(port: int, front: str) -> None:
    """Respond on the loopback address until the process is ended."""
    if front == "handler":
        settings: dict[str, Any] = {"log_function": silent}
        Application([(r"/.*", Constant)], **settings).listen(port, address=LOOPBACK)
    elif front == "connection":
        HTTPServer(Bare()).listen(port, address=LOOPBACK)
    else:
        bounds = Bounds(head_bytes=16_384, body_bytes=100_000_000, idle_seconds=60)
        Server(Bare(), bounds).add_sockets(bind_sockets(port, address=LOOPBACK))
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--front", choices=FRONTS, default="handler")
    arguments = parser.parse_args()
    asyncio.run(serve(arguments.port, arguments.front))


if __name__ == "__main__":
    main()
