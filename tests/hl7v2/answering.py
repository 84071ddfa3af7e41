"""A service over HTTP that grants tokens, and answers the other requests as a test says."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from fhirpub.cli.publish.service import Service
from fhirpub.testing.receiver import Received, Reply

CREATED = Reply(
    status=201,
    body=b'{"resourceType":"Parameters"}',
    headers={"Location": "https://fhir.example.org/fhir/r4/DiagnosticReport/d-1/_history/1"},
)
_GRANTED = Reply(status=200, body=json.dumps({"access_token": "t"}).encode())


def service_at(base: str, cacert: Path | None = None) -> Service:
    """Return the service at an address."""
    grant = {"client_id": "id", "client_secret": "secret", "audience": "urn:service"}
    return Service(base=base, grant=grant, cacert=cacert, types={}, limit=10**6)


def granting(*replies: Reply) -> Callable[[Received], Reply]:
    """Return what grants tokens, and gives the replies to the other requests; the last repeats."""
    left = list(replies)

    def choose(received: Received) -> Reply:
        if received.path == "/oauth/token":
            return _GRANTED
        return left.pop(0) if len(left) > 1 else left[0]

    return choose


def requests_of(received: Sequence[Received]) -> list[Received]:
    """Return the requests but for those of tokens."""
    return [each for each in received if each.path != "/oauth/token"]
