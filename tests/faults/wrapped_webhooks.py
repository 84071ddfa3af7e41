"""The webhook part of a store that delegates to another one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import (
    AttemptResult,
    Delivery,
    DeliveryKey,
    DeliveryQuery,
    DeliveryQueueStore,
    DeliveryState,
    Endpoint,
    Endpoints,
    OutboxEntry,
    QueuedDelivery,
)


class WebhooksWrapper(Endpoints, DeliveryQueueStore):
    """The methods that :class:`tests.faults.broken_stores.StoreWrapper` delegates unchanged."""

    inner: Store

    async def put_endpoint(self, tenant: str, endpoint: Endpoint) -> bool:
        return await self.inner.put_endpoint(tenant, endpoint)

    async def endpoint(self, tenant: str, endpoint_id: str) -> Endpoint | None:
        return await self.inner.endpoint(tenant, endpoint_id)

    async def endpoints(self, tenant: str) -> Sequence[Endpoint]:
        return await self.inner.endpoints(tenant)

    async def deliveries(self, tenant: str, query: DeliveryQuery) -> Sequence[Delivery]:
        return await self.inner.deliveries(tenant, query)

    async def count_deliveries(self, tenant: str, endpoint_id: str) -> Mapping[DeliveryState, int]:
        return await self.inner.count_deliveries(tenant, endpoint_id)

    async def reopen(
        self, tenant: str, endpoint_id: str, event_ids: Collection[str], *, now: int
    ) -> int:
        return await self.inner.reopen(tenant, endpoint_id, event_ids, now=now)

    async def all_endpoints(self, *, of: Collection[str] | None = None) -> Sequence[Endpoint]:
        return await self.inner.all_endpoints(of=of)

    async def save_health(self, endpoint_id: str, condition: bytes) -> None:
        await self.inner.save_health(endpoint_id, condition)

    async def copy_endpoint(self, endpoint: Endpoint, *, over: Endpoint | None) -> bool:
        return await self.inner.copy_endpoint(endpoint, over=over)

    async def lease(
        self, names: Collection[str], *, owner: str, now: int, until: int
    ) -> frozenset[str]:
        return await self.inner.lease(names, owner=owner, now=now, until=until)

    async def release(self, names: Collection[str], *, owner: str) -> None:
        await self.inner.release(names, owner=owner)

    async def pending_outbox(self, *, limit: int) -> Sequence[tuple[str, OutboxEntry]]:
        return await self.inner.pending_outbox(limit=limit)

    async def mark_published(self, keys: Collection[tuple[str, int]]) -> None:
        await self.inner.mark_published(keys)

    async def outbox_contains(
        self, keys: Collection[tuple[str, int]]
    ) -> frozenset[tuple[str, int]]:
        return await self.inner.outbox_contains(keys)

    async def last_sequences(self, endpoints: Collection[str]) -> Mapping[str, int]:
        return await self.inner.last_sequences(endpoints)

    async def append(self, deliveries: Sequence[Delivery]) -> int:
        return await self.inner.append(deliveries)

    async def existing_deliveries(
        self, endpoint_id: str, event_ids: Collection[str]
    ) -> frozenset[str]:
        return await self.inner.existing_deliveries(endpoint_id, event_ids)

    async def waiting(
        self, endpoint_id: str, *, after: int = 0, limit: int = 1000
    ) -> Sequence[QueuedDelivery]:
        return await self.inner.waiting(endpoint_id, after=after, limit=limit)

    async def begin(
        self, keys: Collection[DeliveryKey], *, now: int, until: int
    ) -> Sequence[Delivery]:
        return await self.inner.begin(keys, now=now, until=until)

    async def finish(self, outcomes: Sequence[AttemptResult]) -> Sequence[bool]:
        return await self.inner.finish(outcomes)

    async def sweep_deliveries(self, *, delivered: int, dead: int, open_: int) -> int:
        return await self.inner.sweep_deliveries(delivered=delivered, dead=dead, open_=open_)

    async def scan_deliveries(
        self, *, after: tuple[str, int] = ("", 0), limit: int = 100
    ) -> Sequence[Delivery]:
        return await self.inner.scan_deliveries(after=after, limit=limit)

    async def put_deliveries(self, deliveries: Collection[Delivery]) -> None:
        await self.inner.put_deliveries(deliveries)
