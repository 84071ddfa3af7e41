"""A receiver of webhooks that answers when a test lets it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.quiet_server import QuietServer

_MAX_SECONDS = 120.0


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Return nothing."""
        self.do_POST()

    def do_POST(self) -> None:
        """Return what was sent, which verifies an endpoint, once that may be."""
        gate = self.server
        assert isinstance(gate, Gate)
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        gate.received.append(body)
        gate.may_answer.wait(_MAX_SECONDS)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: Any) -> None:
        """Keep quiet."""


class Gate(QuietServer):
    """The receiver on a free port; ``received`` has the bodies, those without an answer, too."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[bytes] = []
        self.may_answer = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/webhook"


@contextmanager
def gate() -> Iterator[Gate]:
    """Run a receiver that is shut; what waits is answered at the end."""
    with Gate() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.may_answer.set()
            server.shutdown()
            thread.join()
