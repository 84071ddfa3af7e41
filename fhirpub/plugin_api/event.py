"""The events that a committed change publishes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A version about to be committed. ``before`` is None at registration.

    ``after`` and ``before`` are the whole resources without their documents' data. ``parts``
    has the patient, the organization and so on under the names of their parts: all of them at
    registration, at an update at least those that are ``include_in_events``.
    """

    id: str
    version: int
    after: Mapping[str, Any]
    before: Mapping[str, Any] | None
    parts: Mapping[str, Mapping[str, Any]]


EVENT_TYPE = re.compile(r"\A[a-z0-9_]+\.[a-z0-9_]+\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event, named ``<composition_type>.<action>``, with the payload of its type.

    Raises ValueError for another name, so that no event is stored that could never be sent.
    """

    type: str
    data: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not EVENT_TYPE.fullmatch(self.type):
            raise ValueError(
                "the type of an event is <composition_type>.<action> in a-z, 0-9 and _"
            )
