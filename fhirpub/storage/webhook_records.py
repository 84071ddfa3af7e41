"""The records of webhooks: endpoints, deliveries with their attempts, and outbox entries.

They are imported from `fhirpub.storage.webhook_contract`, which states what a store does with
them. All times are milliseconds since 1970-01-01 UTC.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from fhirpub.storage.records import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxEntry:
    """The outbox entry of a version: its key and time, and the events stored with it (ADR 11).

    Attributes:
        id: The id of the resource.
        version: The number of the version.
        type: The FHIR type of the resource.
        updated: When the version was created, in milliseconds.
        events: Its events, as JSON.
    """

    id: str
    version: int
    type: str
    updated: int
    events: bytes

    @classmethod
    def of(cls, version: Version) -> OutboxEntry:
        """Return the outbox entry of a version."""
        v = version
        return cls(id=v.id, version=v.version, type=v.type, updated=v.updated, events=v.events)


EndpointState = Literal["unverified", "active", "paused", "disabled", "deleted"]
"""Deliveries are sent only to active endpoints; they are queued for all that are not deleted."""

Payload = Literal["standard", "id-only"]
"""What an event for an endpoint contains: all details that its type has, or only ids."""

Ordering = Literal["none", "per_resource", "strict"]
"""Which deliveries wait for an earlier one to end: none, those of the same resource, or all."""

DeliveryState = Literal["pending", "retrying", "delivered", "dead"]
"""The state of a delivery. The first two are open, the others are ended.

A delivery is pending until an attempt of it has ended.
"""


@dataclass(frozen=True, slots=True)
class EndpointSecret:
    """A signing secret of an endpoint.

    Attributes:
        sealed: The secret, encrypted.
        expires: When it expires, in milliseconds; None means that it is valid until it is rotated.
    """

    sealed: bytes
    expires: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A tenant's webhook subscription.

    Attributes:
        id: The id of the endpoint.
        tenant: The id of its tenant.
        url: The URL to which its deliveries are sent.
        created: When it was created, in milliseconds.
        events: Patterns of the event types that it receives.
        payload: What its events contain.
        ordering: Which of its deliveries wait for earlier ones.
        description: A text of the tenant.
        state: Whether deliveries are queued and sent.
        why: A code for the cause of the state, empty if the tenant caused it.
        secrets: The signing secrets, newest first.
        token: The bearer token for the receiver (RFC 6750), encrypted.
        revision: The number of changes to the fields above, from 1 (optimistic locking).
        condition: The endpoint's health as recorded by the dispatcher. `Endpoints.put_endpoint`
            does not change it.
        reopened: How often ended deliveries were reopened. `Endpoints.put_endpoint` does not
            change it.
    """

    id: str
    tenant: str
    url: str
    created: int
    events: tuple[str, ...] = ("*",)
    payload: Payload = "standard"
    ordering: Ordering = "per_resource"
    description: str = ""
    state: EndpointState = "active"
    why: str = ""
    secrets: tuple[EndpointSecret, ...] = field(default=(), repr=False)
    token: bytes = field(default=b"", repr=False)
    revision: int = 1
    condition: bytes = b"{}"
    reopened: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt of a delivery.

    Attributes:
        number: Its number, from 1.
        begun: When it began, in milliseconds.
        ended: When it ended, in milliseconds; None means that its outcome is unknown.
        status: The HTTP status of the response, or 0 if there was none.
        reason: Why there was no response, or empty.
        duration: How long it took, in milliseconds.
        dialled: The IP addresses to which a connection was attempted, in order.
        answer: The beginning of the response's body.
    """

    number: int
    begun: int
    ended: int | None = None
    status: int = 0
    reason: str = ""
    duration: int = 0
    dialled: tuple[str, ...] = ()
    answer: bytes = field(default=b"", repr=False)


DeliveryKey = tuple[str, str]
"""The id of the endpoint and the id of the event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One event for one endpoint.

    Attributes:
        endpoint: The id of the endpoint.
        tenant: The id of its tenant.
        sequence: Its position in the queue of the endpoint, from 1.
        event_id: The id of the event.
        event_type: The type of the event.
        resource: The resource as ``Type/id``; empty for events about no resource.
        created: When it was queued, in milliseconds.
        body: The body of the request, sent byte for byte in every attempt.
        state: Whether it is open or ended, and how it ended.
        due: When it may be attempted, or attempted again, in milliseconds.
        number: How many attempts have begun since it was queued or reopened.
        leased: Until when, in milliseconds, a process may be sending it.
        ended: When it was delivered or became a dead letter, in milliseconds.
        attempts: The log of its latest attempts, oldest first.
    """

    endpoint: str
    tenant: str
    sequence: int
    event_id: str
    event_type: str
    resource: str
    created: int
    body: bytes = field(repr=False)
    state: DeliveryState = "pending"
    due: int = 0
    number: int = 0
    leased: int = 0
    ended: int | None = None
    attempts: tuple[Attempt, ...] = ()

    @property
    def key(self) -> DeliveryKey:
        """The key of the delivery, which no other delivery has."""
        return (self.endpoint, self.event_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedDelivery:
    """The fields of an open delivery that scheduling and the age metric need.

    Attributes:
        endpoint: The id of the endpoint.
        sequence: Its position in the queue of the endpoint.
        event_id: The id of the event.
        resource: The resource as ``Type/id``, or empty.
        created: When it was queued, in milliseconds.
        due: When it may be attempted, in milliseconds.
        number: How many attempts have begun since it was queued or reopened.
        leased: Until when, in milliseconds, a process may be sending it.
    """

    endpoint: str
    sequence: int
    event_id: str
    resource: str
    created: int
    due: int
    number: int
    leased: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptResult:
    """The outcome of an attempt, and the resulting state of its delivery.

    Attributes:
        key: The key of the delivery.
        attempt: The attempt that `DeliveryQueueStore.begin` appended to the log, completed. Its
            ``number`` and ``begun`` identify it.
        state: The new state of the delivery.
        due: When an open delivery may be attempted again, in milliseconds.
    """

    key: DeliveryKey
    attempt: Attempt
    state: DeliveryState
    due: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryQuery:
    """Which deliveries of an endpoint to list.

    None, and empty ``states``, do not restrict them.

    Attributes:
        endpoint: The id of the endpoint.
        states: The states of which a delivery must have one.
        event_type: The type of the event.
        event_ids: The ids of which the event must have one. An empty set matches nothing.
        since: List deliveries created at or after this time, in milliseconds.
        until: List deliveries created before this time, in milliseconds.
        after: List deliveries behind this position in the sequence.
        before: List deliveries in front of this position in the sequence.
        newest_first: Whether the order is that of the sequence reversed.
        limit: The maximum number of deliveries.
    """

    endpoint: str
    states: frozenset[DeliveryState] = frozenset()
    event_type: str | None = None
    event_ids: frozenset[str] | None = None
    since: int | None = None
    until: int | None = None
    after: int = 0
    before: int | None = None
    newest_first: bool = False
    limit: int = 100
