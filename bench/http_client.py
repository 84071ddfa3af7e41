"""Single requests outside of any measurement: readiness, tokens, smoke checks."""

from __future__ import annotations

import contextlib
import http.client
import json
from dataclasses import dataclass
from typing import Any

from bench.baseline import LOOPBACK


@dataclass(frozen=True, slots=True)
class Answer:
    """One complete response."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    port: int,
    method: str,
    path: str,
    *,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> Answer:
    """Send one request outside of any measurement."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=30)
    with contextlib.closing(connection):
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        named = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, named, answer.read())
