"""Publishes the outbox: creates deliveries for every committed version (ADR 11).

One relay works at a time in an installation. It may be killed anywhere: what it does is safe to
repeat, and a version is marked only after all its deliveries are durable, in the next round.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from fhirpub.runtime.faults import where
from fhirpub.runtime.logging import logger
from fhirpub.runtime.tracing.context import TraceContext
from fhirpub.runtime.tracing.spans import Span, Tracer
from fhirpub.storage.leases import Leases
from fhirpub.storage.webhook_contract import Delivery, DeliveryQueueStore, Endpoint, OutboxEntry
from fhirpub.webhooks.dispatch.appender import Appender
from fhirpub.webhooks.dispatch.periodic import gather_all
from fhirpub.webhooks.management.event_types import matches
from fhirpub.webhooks.transport.envelope import WebhookEvent, events_of

_LEASE = "relay"
BATCH_SIZE = 100
BATCH_SIZE_WITHOUT_ENDPOINTS = 1_000
"""Versions of one pass; fanning them out takes longer than skipping them."""

_log = logger()

_Key = tuple[str, int]
Enqueue = Callable[[Sequence[Delivery]], None]


class Relay:
    """Makes deliveries of what was committed. ``enqueue`` is handed those that were made."""

    def __init__(
        self,
        store: DeliveryQueueStore,
        *,
        appender: Appender,
        leases: Leases,
        fhir_url: str,
        enqueue: Enqueue,
        tracer: Tracer | None = None,
    ) -> None:
        self._store = store
        self._appender = appender
        self._leases = leases
        self._fhir_url = fhir_url
        self._enqueue = enqueue
        self._tracer = tracer
        self._spans: list[Span] = []
        self._faulty: set[_Key] = set()
        self._unmarked: set[_Key] = set()
        self.oldest: int | None = None
        """When the oldest version of the last round was committed, if it found any.

        None while another relay works.
        """
        self.oldest_by_tenant: dict[str, int] = {}
        """The same for each tenant that has an endpoint and had such a version."""

    @property
    def leading(self) -> bool:
        """Whether this is the one that works."""
        return self._leases.held(_LEASE)

    async def relay(self, *, most: int = BATCH_SIZE) -> int | None:
        """Relay some versions; return how many, or None if another relay works.

        Raises StoreUnavailable; then it is to be called again.
        """
        try:
            return await self._relay(most)
        finally:
            for span in self._spans:
                span.end({})
            self._spans.clear()

    async def _relay(self, most: int) -> int | None:
        if not await self._leads():
            self.oldest, self.oldest_by_tenant = None, {}
            return None
        known = self._faulty | self._unmarked
        pending = await self._store.pending_outbox(limit=most + len(known))
        new = {
            key: (tenant, version)
            for tenant, version in pending
            if (key := (version.id, version.version)) not in known
        }
        self.oldest = min((version.updated for _, version in new.values()), default=None)
        self.oldest_by_tenant = {}
        work: list[Awaitable[None]] = []
        if new:
            # Read after the versions: an endpoint that was added before them must receive them.
            tenants = {tenant for tenant, _ in new.values()}
            endpoints = await self._store.all_endpoints(of=tenants)
            work = self._fan_out(self._events(new.values(), endpoints), endpoints)
            notified = {endpoint.tenant for endpoint in endpoints}
            for tenant, version in new.values():
                if tenant in notified:
                    oldest = self.oldest_by_tenant.get(tenant, version.updated)
                    self.oldest_by_tenant[tenant] = min(oldest, version.updated)
        relayed = new.keys() - self._faulty
        if work:
            await gather_all(*work, self._mark())
            self._unmarked = relayed
        else:  # there are no deliveries to wait for, and the next round need not read them again
            self._unmarked |= relayed
            await self._mark()
        return len(relayed)

    async def finish(self) -> None:
        """Mark what was relayed last. Raises StoreUnavailable; then it is relayed once more."""
        await self._mark()

    async def _mark(self) -> None:
        """Mark what the round before has relayed, in one commit with what this one adds."""
        marked = self._unmarked
        if marked:
            await self._store.mark_published(marked)
            self._unmarked = self._unmarked - marked

    async def _leads(self) -> bool:
        """Renew the lease; of two processes that assume it, one meets taken sequence numbers."""
        if self._leases.due(_LEASE):
            await self._leases.take([_LEASE])
        return self.leading

    def _events(
        self, pending: Iterable[tuple[str, OutboxEntry]], endpoints: Iterable[Endpoint]
    ) -> Mapping[str, Sequence[WebhookEvent]]:
        """Return the events to publish, by tenant, for tenants that have an endpoint."""
        found: dict[str, list[WebhookEvent]] = {endpoint.tenant: [] for endpoint in endpoints}
        for tenant, version in pending:
            if tenant not in found:
                continue
            try:
                found[tenant] += map(self._traced, events_of(version, fhir_url=self._fhir_url))
            except Exception as problem:  # noqa: BLE001 - one version must not stop the others
                # It stays in the outbox: a later release may be able to read it.
                self._faulty.add((version.id, version.version))
                _log.error(
                    "events not relayed", id=version.id, version=version.version, **where(problem)
                )
        return found

    def _traced(self, event: WebhookEvent) -> WebhookEvent:
        """Begin the span of an event in the trace of its request, and let deliveries follow it."""
        parent = TraceContext.parse([event.traceparent])
        if self._tracer is None or parent is None:
            return event
        span = self._tracer.start("relay", "producer", parent)
        if span is None:
            return event
        self._spans.append(span)
        return replace(event, traceparent=span.context.header)

    def _fan_out(
        self, events_by_tenant: Mapping[str, Sequence[WebhookEvent]], endpoints: Iterable[Endpoint]
    ) -> list[Awaitable[None]]:
        work: list[Awaitable[None]] = []
        for endpoint in endpoints:
            enqueue = events_by_tenant[endpoint.tenant]
            events = [
                webhook_event
                for webhook_event in enqueue
                if matches(endpoint.events, webhook_event.type)
            ]
            if events:
                work.append(self._append(endpoint, events))
        return work

    async def _append(self, endpoint: Endpoint, events: Sequence[WebhookEvent]) -> None:
        self._enqueue(await self._appender.append(endpoint, events))
