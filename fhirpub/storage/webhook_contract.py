"""What a store keeps of webhooks, and its promises: endpoints, the outbox and the delivery queue.

Two groups of methods: ``Endpoints`` always takes the tenant first, as ``Resources`` does;
``DeliveryQueueStore`` serves the relay, the dispatcher and transfers, and no request reaches it.

Every method may raise StoreUnavailable. The caller then does not know whether a write happened,
and may repeat it: every write is safe to repeat. Where a repeat may return something else than the
first call, its docstring notes it.

All times are milliseconds since 1970-01-01 UTC, by the clocks of the callers.
`fhirpub.testing.WebhookContract` holds a test for each promise below.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence

from fhirpub.storage.endpoint_contract import Endpoints
from fhirpub.storage.webhook_records import (
    Attempt,
    AttemptResult,
    Delivery,
    DeliveryKey,
    DeliveryQuery,
    DeliveryState,
    Endpoint,
    EndpointSecret,
    EndpointState,
    Ordering,
    OutboxEntry,
    Payload,
    QueuedDelivery,
)

__all__ = [
    "MAX_ATTEMPTS_KEPT",
    "MAX_LEASE_MULTIPLE",
    "Attempt",
    "AttemptResult",
    "Delivery",
    "DeliveryKey",
    "DeliveryQuery",
    "DeliveryQueueStore",
    "DeliveryState",
    "Endpoint",
    "EndpointSecret",
    "EndpointState",
    "Endpoints",
    "Ordering",
    "OutboxEntry",
    "Payload",
    "QueuedDelivery",
]

MAX_ATTEMPTS_KEPT = 30
"""The maximum number of attempts in the log of a delivery; the oldest are dropped."""

MAX_LEASE_MULTIPLE = 10
"""How many times later than a new lease another may end; beyond that its clock was wrong."""


class DeliveryQueueStore(ABC):
    """The outbox and the delivery queue, across all tenants.

    Every method may raise StoreUnavailable.
    """

    @abstractmethod
    async def all_endpoints(self, *, of: Collection[str] | None = None) -> Sequence[Endpoint]:
        """Return all endpoints that are not deleted.

        Args:
            of: The ids of the tenants whose endpoints are returned; None returns those of all.

        Returns:
            The endpoints, oldest first.
        """

    @abstractmethod
    async def save_health(self, endpoint_id: str, condition: bytes) -> None:
        """Store the health of an endpoint; that of an unknown endpoint is dropped.

        This is not a change of the endpoint: its revision stays.

        Args:
            endpoint_id: The id of the endpoint.
            condition: The health, as the dispatcher serializes it.
        """

    @abstractmethod
    async def copy_endpoint(self, endpoint: Endpoint, *, over: Endpoint | None) -> bool:
        """Store an endpoint exactly as given, for transferring a store (compare and set).

        Args:
            endpoint: The endpoint, with the revision, health and ``reopened`` to store.
            over: The endpoint that is expected to be stored; None expects that there is none.

        Returns:
            Whether the endpoint was stored. False means that the stored one does not equal
            ``over``, and that nothing was changed. After StoreUnavailable a repeat may return
            False although the first call succeeded.
        """

    @abstractmethod
    async def lease(
        self, names: Collection[str], *, owner: str, now: int, until: int
    ) -> frozenset[str]:
        """Acquire or renew leases (ADR 10).

        A lease of another owner can be acquired if it ends at or before ``now``, or if its end is
        more than ``MAX_LEASE_MULTIPLE`` times as far ahead of ``now`` as ``until`` is: it was then
        written by a clock that was wrong.

        Args:
            names: The names to lease.
            owner: The id of the process that acquires them.
            now: The current time, in milliseconds.
            until: When the leases end, in milliseconds.

        Returns:
            The names that this owner now holds. Of concurrent calls for one name one acquires it.
        """

    @abstractmethod
    async def release(self, names: Collection[str], *, owner: str) -> None:
        """Release leases early; those of other owners stay.

        Args:
            names: The names to release. Unknown ones are ignored.
            owner: The id of the process that holds them.
        """

    @abstractmethod
    async def pending_outbox(self, *, limit: int) -> Sequence[tuple[str, OutboxEntry]]:
        """Return the outbox entries that are not published yet (ADR 11).

        Args:
            limit: The maximum number of entries.

        Returns:
            The entries, each with its tenant. The earlier version of a resource comes before the
            later. No entry is skipped: if there are fewer than ``limit``, these are all that were
            added before the call.
        """

    @abstractmethod
    async def mark_published(self, keys: Collection[tuple[str, int]]) -> None:
        """Remove entries from the outbox permanently; unknown ones are ignored.

        Args:
            keys: The versions whose events are published, by id and version.
        """

    @abstractmethod
    async def outbox_contains(
        self, keys: Collection[tuple[str, int]]
    ) -> frozenset[tuple[str, int]]:
        """Return which versions are not published yet, for transferring a store.

        Args:
            keys: The versions to look up, by id and version.

        Returns:
            Those of the keys that have an entry in the outbox.
        """

    @abstractmethod
    async def last_sequences(self, endpoints: Collection[str]) -> Mapping[str, int]:
        """Return the highest sequence in the queue of each endpoint.

        Returns:
            The sequences by endpoint; endpoints without deliveries are omitted.
        """

    @abstractmethod
    async def append(self, deliveries: Sequence[Delivery]) -> int:
        """Append deliveries to the queue of one endpoint, in order.

        It stops in front of the first delivery whose key, or whose position in the sequence, is
        taken. An interrupted call has added none, or any number of the first ones.

        Args:
            deliveries: The deliveries, all of one endpoint.

        Returns:
            The number of deliveries added. These survive a crash of the machine.
        """

    @abstractmethod
    async def existing_deliveries(
        self, endpoint_id: str, event_ids: Collection[str]
    ) -> frozenset[str]:
        """Return for which events an endpoint has a delivery already.

        Returns:
            Those of the event ids that have a delivery.
        """

    @abstractmethod
    async def waiting(
        self, endpoint_id: str, *, after: int = 0, limit: int = 1000
    ) -> Sequence[QueuedDelivery]:
        """Return open deliveries of an endpoint, in the order of the sequence.

        Args:
            endpoint_id: The id of the endpoint.
            after: Return only deliveries behind this position in the sequence.
            limit: The maximum number of deliveries.

        Returns:
            The deliveries, leased or not, due or not.
        """

    @abstractmethod
    async def begin(
        self, keys: Collection[DeliveryKey], *, now: int, until: int
    ) -> Sequence[Delivery]:
        """Lease deliveries for one attempt each.

        A delivery is leased if it is open, due at ``now``, and not leased at ``now``. Its
        ``number`` grows by one, and an attempt with that number is appended to its log without an
        end.

        After StoreUnavailable the deliveries may be leased; they become free when their leases
        expire. That attempt counts, since it cannot be distinguished from one that was made.

        Args:
            keys: The deliveries to lease, of any endpoints. Unknown ones are ignored.
            now: The current time, in milliseconds.
            until: When the leases end, in milliseconds.

        Returns:
            The deliveries that this call leased. Of concurrent calls for one delivery one leases
            it.
        """

    @abstractmethod
    async def finish(self, outcomes: Sequence[AttemptResult]) -> Sequence[bool]:
        """Store the outcomes of attempts, and release their deliveries.

        An outcome is dropped if a later attempt has begun, or if the delivery is ended or was
        reopened.

        Args:
            outcomes: The outcomes, of any endpoints.

        Returns:
            For each outcome, in order, whether the log contains its attempt exactly as given. A
            repeat therefore returns what the first call returned.
        """

    @abstractmethod
    async def sweep_deliveries(self, *, delivered: int, dead: int, open_: int) -> int:
        """Delete old deliveries.

        The newest delivery of each endpoint stays, since its sequence continues from there, unless
        the endpoint is deleted.

        Args:
            delivered: Delete what was delivered before this time, in milliseconds.
            dead: Delete dead letters that ended before this time, in milliseconds.
            open_: Delete open deliveries that were created, and due, before this time, in
                milliseconds, and whose endpoint is not active.

        Returns:
            The number of deliveries deleted.
        """

    @abstractmethod
    async def scan_deliveries(
        self, *, after: tuple[str, int] = ("", 0), limit: int = 100
    ) -> Sequence[Delivery]:
        """Return deliveries in the order of (endpoint, sequence).

        Args:
            after: Return only deliveries behind this endpoint and sequence.
            limit: The maximum number of deliveries.

        Returns:
            The deliveries with their attempts; empty if there are no more.
        """

    @abstractmethod
    async def put_deliveries(self, deliveries: Collection[Delivery]) -> None:
        """Store deliveries exactly as given, for transferring a store.

        Stored deliveries with the same keys are replaced.
        """
