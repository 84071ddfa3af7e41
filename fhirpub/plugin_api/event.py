"""What the outside world is told of a committed change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A version about to be committed. ``before`` is None at registration.

    ``after`` and ``before`` are the whole resources without their documents' data; ``parts``
    has the patient, the organization and so on under the names of their parts.
    """

    id: str
    version: int
    after: Mapping[str, Any]
    before: Mapping[str, Any] | None
    parts: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event, named ``<composition_type>.<action>``, with the payload of its type."""

    type: str
    data: Mapping[str, Any]
