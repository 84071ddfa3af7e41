"""The events that a committed change publishes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A version that is about to be committed: the input of a function that creates events.

    Attributes:
        id: The id of the resource.
        version: The number of the version, 1 at a registration.
        after: The resource in this version, without the data of its documents.
        before: The resource in the previous version, without the data of its documents; None at a
            registration.
        parts: The resources that were registered with it, by the names of their parts. At a
            registration all of them, at an update at least those with ``include_in_events``.
        added: The addresses of the parts that repeat and that a revision adds, such as
            ``Observation/<id>``; empty at a registration.
        changed: The addresses of those that a revision changes.
        identifier: The system and the value of the key of the resource, the value in the form in
            which it is compared (ADR 41). The service always states it.
    """

    id: str
    version: int
    after: Mapping[str, Any]
    before: Mapping[str, Any] | None
    parts: Mapping[str, Mapping[str, Any]]
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    identifier: Mapping[str, str] = field(default_factory=dict)


EVENT_TYPE = re.compile(r"\A[a-z0-9_]+\.[a-z0-9_]+\Z")
"""The pattern of the name of an event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event.

    Attributes:
        type: Its name, ``<composition_type>.<action>`` in a-z, 0-9 and _.
        data: The payload of its type, as JSON values.

    Raises:
        ValueError: ``type`` is not such a name. An event that could never be sent is thus never
            stored.
    """

    type: str
    data: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not EVENT_TYPE.fullmatch(self.type):
            raise ValueError(
                "the type of an event is <composition_type>.<action> in a-z, 0-9 and _"
            )
