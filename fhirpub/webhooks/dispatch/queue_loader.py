"""Loads the queue of an endpoint from the store: all of it, or what comes after its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from fhirpub.runtime.clock import Clock
from fhirpub.storage.webhook_contract import Delivery, DeliveryQueueStore, QueuedDelivery
from fhirpub.webhooks.dispatch.endpoint_worker import EndpointWorker
from fhirpub.webhooks.dispatch.queue import LEAST_WINDOW, WINDOW

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
            while len(found) < line.most_queued and not whole:
                after, limit = found[-1].sequence if found else 0, _page_of(line)
                page = await self._store.waiting(name, after=after, limit=limit)
                found += page
                whole = len(page) < limit
        except BaseException:
            line.read = 0
            raise
        line.queue.renew(found, ordering=line.endpoint.ordering, last=end if whole else 0)
        line.behind = line.behind or not whole

    async def _read_more(self, line: EndpointWorker) -> None:
        name, limit = line.endpoint.id, _page_of(line)
        line.behind = False
        try:
            end = (await self._store.last_sequences([name])).get(name, 0)
            page = await self._store.waiting(name, after=line.queue.last, limit=limit)
        except BaseException:
            line.behind = True
            raise
        line.queue.add(page)
        if len(page) < limit:
            line.queue.last = max(line.queue.last, end)
        else:
            line.behind = True


def needs_refill(line: EndpointWorker) -> bool:
    """Return whether the store has what the queue lacks and has room for."""
    room = line.most_queued - len(line.queue)
    return line.stale or (line.behind and room >= _page_of(line))


def _page_of(line: EndpointWorker) -> int:
    return min(_PAGE, line.most_queued // 2)


def divide_memory(lines: Collection[EndpointWorker]) -> None:
    """Give the endpoints of a tenant equal parts of what its queues may hold (D-196).

    A queue that holds far more is reloaded: there are more endpoints than before.
    """
    endpoints = Counter(line.endpoint.tenant for line in lines)
    for line in lines:
        line.most_queued = max(LEAST_WINDOW, WINDOW // endpoints[line.endpoint.tenant])
        if len(line.queue) > 2 * line.most_queued:
            line.read = 0


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
