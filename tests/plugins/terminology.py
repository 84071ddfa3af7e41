"""A terminology server of one code system."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from fhirpub_txserver.settings import ServerSettings
from tests.quiet_server import QuietServer

SYSTEM = "https://codes.example/tests"
CODES = {"glu", "hb"}
PATIENCE_SECONDS = 30.0
NEVER = "never"
"""A code for which there is no answer before the test ends."""


class _Handler(BaseHTTPRequestHandler):
    """``CodeSystem/$validate-code`` of one code system, as FHIR R4 and its servers answer."""

    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        server.asked.append((self.path, dict(self.headers)))
        time.sleep(server.hangs)
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if query.get("code") == NEVER:
            server.never.wait(60.0)
        parameters: list[dict[str, Any]] = [
            {"name": "result", "valueBoolean": query.get("code") in CODES}
        ]
        if query.get("url") != SYSTEM:
            unknown = {"name": "x-caused-by-unknown-system", "valueCanonical": query.get("url")}
            parameters.append(unknown)
        body = json.dumps({"resourceType": "Parameters", "parameter": parameters}).encode()
        body = server.answers.get(query.get("code", ""), body)
        self.send_response(server.status)
        self.send_header("Content-Type", "application/fhir+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: Any) -> None:
        pass


class Server(QuietServer):
    """A terminology server on a free port; ``answers`` are sent for some codes as they are."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.never = threading.Event()
        self.answers: dict[str, bytes] = {}
        self.hangs = 0.0
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/r4/"


def unhurried(server: Server, **changes: Any) -> ServerSettings:
    """Return settings with enough time for the answers of a slow machine."""
    return ServerSettings(**{"url": server.url, "timeout_seconds": PATIENCE_SECONDS, **changes})


@contextmanager
def serving() -> Iterator[Server]:
    with Server() as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server
        server.never.set()
        server.shutdown()
