"""What the service returns, as far as callers decide by it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from fhirpub_client.errors import Problem, problems_in

_TAG = re.compile(r'W/"(\d+)"')


@dataclass(frozen=True, slots=True)
class Registered:
    """A report that the service has.

    Attributes:
        id: The id of the report.
        version: The version that the registration made: 1, unless it was erased before.
        location: The address of that version.
        is_replayed: Whether an earlier registration created it; nothing was stored now.
        is_different: Whether the identifier was registered with **other content** before. Then
            that stands, and what was sent was not stored: someone has to look.
        remarks: What the service noticed and did not refuse.
        body: The Parameters of the response.
    """

    id: str
    version: int
    location: str
    is_replayed: bool
    is_different: bool
    remarks: tuple[Problem, ...]
    body: Mapping[str, Any]

    @classmethod
    def of(cls, response: httpx.Response) -> Registered:
        """Read the response to a registration."""
        body = response.json()
        location = response.headers["Location"]
        _, _, found = location.partition("/fhir/r4/")
        outcomes = (each["resource"] for each in body["parameter"] if each["name"] == "issues")
        # The first issue reports that the report was created.
        remarks = (problem for outcome in outcomes for problem in problems_in(outcome)[1:])
        return cls(
            id=found.split("/")[1],
            version=version_of(response),
            location=location,
            is_replayed=response.headers.get("Idempotent-Replayed") == "true",
            is_different=response.headers.get("Idempotent-Content") == "different",
            remarks=tuple(remarks),
            body=body,
        )


@dataclass(frozen=True, slots=True)
class Stored:
    """A version of a resource.

    Attributes:
        resource: The resource.
        version: Its version, which an update names.
    """

    resource: Mapping[str, Any]
    version: int

    @classmethod
    def of(cls, response: httpx.Response) -> Stored:
        """Read a response that is a resource."""
        return cls(response.json(), version_of(response))


def version_of(response: httpx.Response) -> int:
    """Return the version in the tag of a response, 0 if it has none."""
    found = _TAG.fullmatch(response.headers.get("ETag", ""))
    return int(found[1]) if found else 0
