"""Loads the queue of an endpoint from the store: all of it, or what comes after its end."""

from __future__ import annotations

from fhirpub.runtime.clock import Clock
from fhirpub.storage.webhook_contract import Delivery, DeliveryQueueStore, QueuedDelivery
from fhirpub.webhooks.dispatch.endpoint_worker import EndpointWorker
from fhirpub.webhooks.dispatch.queue import WINDOW

_PAGE = 1_000


class QueueLoader:
    """Loads queues, each by one task at a time."""

    def __init__(self, store: DeliveryQueueStore, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def fill(self, line: EndpointWorker) -> None:
        """Load a queue, whole if it is stale. Raises StoreUnavailable."""
        line.reading = True
        try:
            if line.stale:
                await self._reload_queue(line)
            else:
                await self._read_more(line)
        finally:
            line.reading = False

    async def _reload_queue(self, line: EndpointWorker) -> None:
        name, found, whole = line.endpoint.id, list[QueuedDelivery](), False
        line.read = self._clock()
        try:
            line.queue.watch()
            end = (await self._store.last_sequences([name])).get(name, 0)
            while len(found) < WINDOW and not whole:
                after = found[-1].sequence if found else 0
                page = await self._store.waiting(name, after=after, limit=_PAGE)
                found += page
                whole = len(page) < _PAGE
        except BaseException:
            line.read = 0
            raise
        line.queue.renew(found, ordering=line.endpoint.ordering, last=end if whole else 0)
        line.behind = line.behind or not whole

    async def _read_more(self, line: EndpointWorker) -> None:
        name = line.endpoint.id
        line.behind = False
        try:
            end = (await self._store.last_sequences([name])).get(name, 0)
            page = await self._store.waiting(name, after=line.queue.last, limit=_PAGE)
        except BaseException:
            line.behind = True
            raise
        line.queue.add(page)
        if len(page) < _PAGE:
            line.queue.last = max(line.queue.last, end)
        else:
            line.behind = True


def needs_refill(line: EndpointWorker) -> bool:
    """Return whether the store has what the queue lacks and has room for."""
    return line.stale or (line.behind and len(line.queue) < WINDOW)


def queued(delivery: Delivery) -> QueuedDelivery:
    """Return as much of a delivery as a queue holds."""
    return QueuedDelivery(
        endpoint=delivery.endpoint,
        sequence=delivery.sequence,
        event_id=delivery.event_id,
        resource=delivery.resource,
        created=delivery.created,
        due=delivery.due,
        number=delivery.number,
        leased=delivery.leased,
    )
