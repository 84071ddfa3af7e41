"""Where events of commits go beside webhooks, such as a message broker."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class EventRejected(Exception):
    """Raised by a sink that will never take an event, which becomes a dead letter at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkEvent:
    """One event on its way to a sink.

    Attributes:
        tenant: The id of the tenant whose event it is.
        endpoint: The id of the endpoint, whose queue the event comes from; empty for a test event.
        destination: What follows ``sink:NAME/`` in the URL of the endpoint, or empty.
        event_id: The id of the event, the same at every attempt: repeats are recognized by it.
        event_type: The type of the event, such as ``diagnostic_report.created``.
        sequence: Its position in the queue of the endpoint, without a gap; 0 for a test event.
        attempt: The number of this attempt, from 1.
        body: The event as JSON, the same bytes at every attempt.
        headers: What a webhook has as headers: the id, the time and the signature by the secret of
            the endpoint, so that a receiver can check where the event comes from.
    """

    tenant: str
    endpoint: str
    destination: str
    event_id: str
    event_type: str
    sequence: int
    attempt: int
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)

    @property
    def resource(self) -> str:
        """The resource as ``Type/id``, empty for events about no resource.

        Events of one resource arrive one after the other, unless the endpoint asks for no order.
        """
        data: Mapping[str, Any] = json.loads(self.body).get("data", {})
        return f"{data['resource_type']}/{data['id']}" if "resource_type" in data else ""


class EventSink(ABC):
    """A place that takes events; `fhirpub.testing.EventSinkContract` has a test of each promise.

    All methods run on the event loop that sends, which serves no requests. What blocks belongs
    into ``asyncio.to_thread``.

    Attributes:
        name: The name of the sink in the URLs of endpoints, ``sink:NAME``: lower-case letters,
            digits and hyphens. It must not change, since endpoints are stored with it.
    """

    name: str

    @abstractmethod
    async def send(self, event: SinkEvent) -> None:
        """Send an event; return once the receiver has it durably.

        Many calls may run at once, for events of different resources or endpoints. A call is
        cancelled after ``[webhooks] timeout_seconds``, and the event is then sent again: the sink
        must take events after that as before.

        Args:
            event: The event. It may be a repeat of one that the receiver has already.

        Raises:
            EventRejected: The receiver will never take this event.
            Exception: Any other: the event is sent again later. Only the class is logged, never
                the text.
        """

    async def close(self) -> None:  # noqa: B027 - nothing to close is usual
        """Close connections. A call of `send` after that opens them again."""
