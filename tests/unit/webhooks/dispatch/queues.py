"""Queues with deliveries in them, and what may be sent of them."""

from __future__ import annotations

from fhirpub.storage.webhook_contract import Ordering, QueuedDelivery
from fhirpub.webhooks.dispatch.queue import Queue

NOW = 1_795_000_000_000
ORDERINGS: tuple[Ordering, ...] = ("none", "per_resource", "strict")


def waiting(sequence: int, resource: str = "", *, due: int = 0, leased: int = 0) -> QueuedDelivery:
    return QueuedDelivery(
        endpoint="e",
        sequence=sequence,
        event_id=f"evt_{sequence}",
        resource=resource,
        created=NOW + sequence,
        due=due,
        number=0,
        leased=leased,
    )


def queue_of(ordering: Ordering, *found: QueuedDelivery) -> Queue:
    queue = Queue(ordering)
    queue.add(found)
    return queue


def dequeued(queue: Queue, now: int = NOW, most: int = 100) -> list[int]:
    return [delivery.sequence for delivery in queue.take(now, most)]
