"""Puts events at the end of endpoints' queues, each once, in their order, without a gap."""

from __future__ import annotations

from collections.abc import Sequence

from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.clock import Clock
from fhirpub.storage.webhook_contract import Delivery, DeliveryQueueStore, Endpoint
from fhirpub.webhooks.transport.envelope import WebhookEvent

_MAX_RACES = 20


class Appender:
    """Appends to delivery queues and caches their last sequences; for one event loop.

    Other processes may append too; an event is queued once per endpoint. An append that finds a
    sequence number or an event taken reads the end of the queue again.
    """

    def __init__(self, store: DeliveryQueueStore, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._ends: dict[str, int] = {}

    async def append(self, endpoint: Endpoint, events: Sequence[WebhookEvent]) -> list[Delivery]:
        """Make a delivery of each event of which the endpoint has none; return those made.

        Raises StoreUnavailable; some of the first deliveries may have been created then.
        """
        made: list[Delivery] = []
        for _race in range(_MAX_RACES):
            if not events:
                return made
            end = self._ends.pop(endpoint.id, None)
            if end is None:
                end = (await self._store.last_sequences([endpoint.id])).get(endpoint.id, 0)
            wanted = [
                self._delivery(endpoint, event, number)
                for number, event in enumerate(events, start=end + 1)
            ]
            added = await self._store.append(wanted)
            made += wanted[:added]
            if added == len(wanted):
                self._ends[endpoint.id] = end + added
                return made
            told = await self._store.existing_deliveries(
                endpoint.id, [webhook_event.id for webhook_event in events]
            )
            events = [webhook_event for webhook_event in events if webhook_event.id not in told]
        raise StoreUnavailable("lost too many races for the end of a queue")

    def _delivery(self, endpoint: Endpoint, event: WebhookEvent, sequence: int) -> Delivery:
        return Delivery(
            endpoint=endpoint.id,
            tenant=endpoint.tenant,
            sequence=sequence,
            event_id=event.id,
            event_type=event.type,
            resource=event.resource,
            created=self._clock(),
            body=event.body(sequence=sequence, payload=endpoint.payload),
        )
