"""A server on a socket whose answers are prepared by each test."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Protocol

from tests.quiet_server import QuietServer


@dataclass(frozen=True)
class Reply:
    """An answer with a status of its own."""

    status: int
    body: Any
    media_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


class Answering(Protocol):
    """What answers the requests of one test."""

    def take(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> Reply | None:
        """Note a request and return its answer; None: the connection is closed without one."""


class PreparedServer(QuietServer):
    """A server that lets the current test answer."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._answering: Answering | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @contextmanager
    def answered_by(self, answering: Answering) -> Iterator[None]:
        """Let a test answer until the block ends."""
        assert self._answering is None, "another test is not over"
        self._answering = answering
        try:
            yield
        finally:
            self._answering = None

    def take(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> Reply | None:
        """Return the answer of the current test; none to a request that outlasted its own."""
        answering = self._answering
        return answering.take(method, path, headers, body) if answering else None


class _Handler(BaseHTTPRequestHandler):
    server: PreparedServer

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        reply = self.server.take(self.command, self.path, dict(self.headers), body)
        if reply is None:
            self.close_connection = True
            return
        content = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", reply.media_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - names of methods

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def open_server() -> Iterator[PreparedServer]:
    """Serve on a socket until the block ends."""
    server = PreparedServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
