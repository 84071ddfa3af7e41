"""What is sent: one event on its way to one endpoint."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One event on its way to one endpoint.

    ``body`` is sent byte for byte, at every attempt. ``secrets`` are those that sign, newest
    first; ``number`` counts the attempts from 1; ``sequence`` is the event's place in the
    endpoint's. ``tenant`` owns the endpoint. Messages of one ``endpoint`` may share a connection;
    without one each has its own. ``traceparent`` is the header of that name, empty for none.
    """

    tenant: str
    url: str
    token: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    event_id: str
    event_type: str
    body: bytes = field(repr=False)
    number: int
    sequence: int
    endpoint: str = ""
    traceparent: str = ""
