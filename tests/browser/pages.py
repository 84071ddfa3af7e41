"""A server of a few pages that have something wrong with them, for tests of the visits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler

from tests.quiet_server import QuietServer

STRICT = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:"
ICON = '<link rel="icon" href="data:,">'  # a page without one asks for /favicon.ico


@dataclass(frozen=True, slots=True)
class Served:
    """What a path is answered with."""

    body: bytes
    content_type: str = "text/html; charset=utf-8"
    policy: str = STRICT


def page(body: str, *, script: str = "", style: str = "", policy: str = STRICT) -> Served:
    """Return a page around a body, with the addresses of a script and of a style sheet."""
    head = f'<title>Reports</title>{ICON}<meta name="viewport" content="width=device-width">'
    if script:
        head += f'<script defer src="{script}"></script>'
    if style:
        head += f'<link rel="stylesheet" href="{style}">'
    document = f'<html lang="en"><head>{head}</head><body><main>{body}</main></body></html>'
    return Served(f"<!doctype html>{document}".encode(), policy=policy)


@contextmanager
def serving(paths: dict[str, Served]) -> Iterator[str]:
    """Yield the origin of a server with these paths; others are not found."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = paths.get(self.path)
            self.send_response(404 if found is None else 200)
            answer = found or Served(f"<title>Not found</title>{ICON}".encode())
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body)))
            self.send_header("Content-Security-Policy", answer.policy)
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Keep requests out of the output of the tests."""

    server = QuietServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        # A browser trusts an address without TLS only by this name, and WebAuthn needs a name.
        yield f"http://localhost:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
