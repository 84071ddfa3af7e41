"""The lines of requests to a service in this process, caught in memory."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from fhirpub.runtime import logging
from fhirpub.runtime.clock import now_ms
from fhirpub.runtime.request_lines import RequestLines
from tests.waiting import wait_until


@dataclass
class Caught:
    """What was written."""

    stream: io.StringIO = field(default_factory=io.StringIO)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]

    def of(self, request_id: str) -> dict[str, Any]:
        """Return the one line of a request, which is written after its answer has left."""
        wait_until(lambda: f'"request_id":"{request_id}"' in self.stream.getvalue(), 30)
        (line,) = [line for line in self.lines if line["request_id"] == request_id]
        return line


@contextmanager
def caught_lines() -> Iterator[Caught]:
    """Catch the lines of requests, and no others, until the block ends."""
    caught, before = Caught(), logging._request_lines
    logging._request_lines = RequestLines(
        lambda render: caught.stream.write(render()),
        form="json",
        least=10,
        admits=lambda *_kind: True,
        clock=now_ms,
    )
    try:
        yield caught
    finally:
        logging._request_lines = before
