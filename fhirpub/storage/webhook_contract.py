"""What a store keeps of webhooks, and its promises: endpoints, and deliveries in their queues.

Two groups of methods: ``Endpoints`` takes the tenant first, always, as ``Resources`` does;
``DeliveryQueueStore`` is for those who send, and no request comes to it.

Every method may raise StoreUnavailable. After it the caller does not know whether a write
happened, and may repeat it: every write is safe to repeat, but where its docstring says what a
repeat answers. All times are milliseconds since 1970-01-01 UTC, by the callers' clocks.
`fhirpub.testing.WebhookContract` holds a test for each promise below.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from fhirpub.storage.contract import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxEntry:
    """The outbox entry of a version: its name and time, and the events stored with it."""

    id: str
    version: int
    type: str
    updated: int
    events: bytes

    @classmethod
    def of(cls, version: Version) -> OutboxEntry:
        """Return that part of a version."""
        v = version
        return cls(id=v.id, version=v.version, type=v.type, updated=v.updated, events=v.events)


EndpointState = Literal["unverified", "active", "paused", "disabled", "deleted"]
"""Only to an active endpoint anything is sent. All but a deleted one gather deliveries."""

Payload = Literal["standard", "id-only"]
"""What an event for an endpoint contains: all details of the resource's type, or only ids."""

Ordering = Literal["none", "per_resource", "strict"]
"""What waits for an earlier delivery to end: nothing, those of its resource, or all."""

DeliveryState = Literal["pending", "retrying", "delivered", "dead"]
"""Open are ``pending``, of which no attempt has come to an end, and ``retrying``; the others are
ended."""


@dataclass(frozen=True, slots=True)
class EndpointSecret:
    """A signing secret, encrypted. ``expires`` None: until it is rotated."""

    sealed: bytes
    expires: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A tenant's webhook subscription.

    ``events`` are patterns, ``secrets`` stand newest first, ``token`` is encrypted as they are.
    ``why`` is a word for what led to the state, if that was not the tenant. ``revision`` grows
    by one with each change of what stands above it.

    ``condition`` is what those who send note of its health, and ``reopened`` counts how often
    ended deliveries were opened again; ``put_endpoint`` leaves both as they are.
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
    """One attempt of a delivery, from 1. ``ended`` None: it began and its outcome is unknown.

    ``reason`` is why there is no answer, or empty; ``status`` that of the answer, or 0;
    ``duration`` in milliseconds; ``answer`` how its body begins.
    """

    number: int
    begun: int
    ended: int | None = None
    status: int = 0
    reason: str = ""
    duration: int = 0
    dialled: tuple[str, ...] = ()
    answer: bytes = field(default=b"", repr=False)


MAX_ATTEMPTS_KEPT = 30
"""The log of a delivery holds its latest attempts, at most so many."""

MAX_LEASE_MULTIPLE = 10
"""A lease that ends so many times later than it may was written by a clock that was wrong."""

DeliveryKey = tuple[str, str]
"""The ids of the endpoint and of the event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One event for one endpoint.

    ``resource`` is ``Type/id``, empty for events about no resource. ``body`` is sent byte for
    byte at every attempt. ``number`` counts the attempts that were begun. While ``leased`` is
    in the future a process may be sending it. ``due`` is when it may be tried (again), ``ended``
    when it was delivered or given up.
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
        """What no other delivery has."""
        return (self.endpoint, self.event_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedDelivery:
    """The part of an open delivery that scheduling and the age metric need."""

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
    """What came of an attempt, and what becomes of its delivery.

    ``attempt`` is the one that :meth:`DeliveryQueueStore.begin` appended to the log, completed:
    its ``number`` and ``begun`` identify it. ``due`` is when an open one may be tried again.
    """

    key: DeliveryKey
    attempt: Attempt
    state: DeliveryState
    due: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryQuery:
    """Which deliveries to list; None and empty: any.

    Those after ``after`` in the order of the sequence, or before ``before`` in the reverse
    order if ``newest_first``. ``since`` and ``until`` are moments of ``created``, the first
    included, the second not.
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


class Endpoints(ABC):
    """A tenant's endpoints, and what was sent to them."""

    @abstractmethod
    async def put_endpoint(self, tenant: str, endpoint: Endpoint) -> bool:
        """Add an endpoint of revision 1, or replace the one whose revision is one less.

        False, and nothing is changed: there is one of another revision, or none, or it is
        another tenant's. Of racing calls one succeeds. After StoreUnavailable read it: a repeat
        answers False although the first try worked.
        """

    @abstractmethod
    async def endpoint(self, tenant: str, endpoint_id: str) -> Endpoint | None:
        """Return an endpoint, a deleted one too."""

    @abstractmethod
    async def endpoints(self, tenant: str) -> Sequence[Endpoint]:
        """Return all endpoints of a tenant, deleted ones too, oldest first."""

    @abstractmethod
    async def deliveries(self, tenant: str, query: DeliveryQuery) -> Sequence[Delivery]:
        """Return deliveries of one endpoint, each with its attempts."""

    @abstractmethod
    async def count_deliveries(self, tenant: str, endpoint_id: str) -> Mapping[DeliveryState, int]:
        """Return how many deliveries an endpoint has in each state that any of them has."""

    @abstractmethod
    async def reopen(
        self, tenant: str, endpoint_id: str, event_ids: Collection[str], *, now: int
    ) -> int:
        """Have ended deliveries sent again, due at once; return how many.

        They keep their place in the sequence and their log, and are pending with ``number`` 0,
        so that they get all attempts again. Open ones that wait for a later attempt become due
        at once, and count. ``reopened`` of the endpoint grows after that, and may if there was
        none: repeating an interrupted call then also announces what that call reopened.
        """


class DeliveryQueueStore(ABC):
    """The outbox and the delivery queue, across all tenants."""

    @abstractmethod
    async def all_endpoints(self, *, of: Collection[str] | None = None) -> Sequence[Endpoint]:
        """Return all endpoints but deleted ones, or those of some tenants, oldest first."""

    @abstractmethod
    async def save_health(self, endpoint_id: str, condition: bytes) -> None:
        """Note the health of an endpoint; that of an unknown one is dropped."""

    @abstractmethod
    async def copy_endpoint(self, endpoint: Endpoint, *, over: Endpoint | None) -> bool:
        """Add an endpoint as it is, or replace it as it was read: for moving a store.

        Does nothing and returns False unless what is kept equals ``over``. After
        StoreUnavailable a repeat may answer False although the first try worked.
        """

    @abstractmethod
    async def lease(
        self, names: Collection[str], *, owner: str, now: int, until: int
    ) -> frozenset[str]:
        """Take or prolong leases to ``until``; return those of the names that are now ours.

        A lease of another owner can be taken once its end is at or before ``now``, or if it is
        more than ``MAX_LEASE_MULTIPLE`` times as far ahead as ``until``: it was taken by a clock
        that was wrong. Of racing calls for one name one succeeds.
        """

    @abstractmethod
    async def release(self, names: Collection[str], *, owner: str) -> None:
        """Release leases; those of other owners stay."""

    @abstractmethod
    async def pending_outbox(self, *, limit: int) -> Sequence[tuple[str, OutboxEntry]]:
        """Return the outbox entries that are not published yet, each with its tenant.

        The earlier version of a resource stands before the later. None is passed over: with
        fewer than ``limit`` these are all that were added before the call.
        """

    @abstractmethod
    async def mark_published(self, keys: Collection[tuple[str, int]]) -> None:
        """Take versions, by id and version, from those that are unrelayed, for good."""

    @abstractmethod
    async def outbox_contains(
        self, keys: Collection[tuple[str, int]]
    ) -> frozenset[tuple[str, int]]:
        """Return those of the versions that are unrelayed: for moving a store."""

    @abstractmethod
    async def last_sequences(self, endpoints: Collection[str]) -> Mapping[str, int]:
        """Return the highest sequence of each of these endpoints; those without any left out."""

    @abstractmethod
    async def append(self, deliveries: Sequence[Delivery]) -> int:
        """Add deliveries of one endpoint in their order; return how many were added.

        It stops before the first whose key, or whose place in the endpoint's sequence, is
        taken. A call that is interrupted has added none or the first so many. What was counted
        survives a crash of the machine.
        """

    @abstractmethod
    async def existing_deliveries(
        self, endpoint_id: str, event_ids: Collection[str]
    ) -> frozenset[str]:
        """Return those of the events for which the endpoint has a delivery."""

    @abstractmethod
    async def waiting(
        self, endpoint_id: str, *, after: int = 0, limit: int = 1000
    ) -> Sequence[QueuedDelivery]:
        """Return open deliveries behind a place in the sequence, in its order."""

    @abstractmethod
    async def begin(
        self, keys: Collection[DeliveryKey], *, now: int, until: int
    ) -> Sequence[Delivery]:
        """Lease deliveries for one attempt each, until a time; return those that were leased.

        A delivery is taken if it is open, due and not leased at ``now``. ``number`` is the
        attempt's, which stands at the end of the log from now on, not ended. Of racing calls one
        takes it. After StoreUnavailable they may be taken, and become free when their leases
        expired; that attempt counts, since it is indistinguishable from one that was made.
        """

    @abstractmethod
    async def finish(self, outcomes: Sequence[AttemptResult]) -> Sequence[bool]:
        """Store the outcomes of attempts, and release their deliveries.

        An outcome is dropped if a later attempt has begun since, or the delivery is ended
        or was reopened. Returns for each whether the log has its attempt as it is given, so that
        a repeat answers as the first call did.
        """

    @abstractmethod
    async def sweep_deliveries(self, *, delivered: int, dead: int, open_: int) -> int:
        """Delete what ended before the moments ``delivered`` and ``dead``; return how many.

        Open ones go too if they were made, and were due, before ``open_`` and their endpoint is
        not active. The newest delivery of each endpoint stays, since its sequence goes on from
        there; that of a deleted one goes like the others.
        """

    @abstractmethod
    async def scan_deliveries(
        self, *, after: tuple[str, int] = ("", 0), limit: int = 100
    ) -> Sequence[Delivery]:
        """Return deliveries in the order of (endpoint, sequence), after that place."""

    @abstractmethod
    async def put_deliveries(self, deliveries: Collection[Delivery]) -> None:
        """Add deliveries as they are, or replace those of their keys: for moving a store."""
