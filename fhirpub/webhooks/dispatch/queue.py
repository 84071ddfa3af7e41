"""What waits for one endpoint, and what of it may be sent now; pure (D-196)."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fhirpub.storage.webhook_contract import Ordering, QueuedDelivery

WINDOW = 10_000
"""How many open deliveries of one tenant are looked at; the next follow when some have ended."""
LEAST_WINDOW = 100
"""How many of one endpoint are looked at, however many endpoints its tenant has."""


class Queue:
    """Open deliveries of one endpoint, in the order of their sequence.

    They stand in lanes, of which only the head may be sent: one lane for all (``strict``), one
    for each resource (``per_resource``), one for each delivery (``none``). Times are
    milliseconds UTC.
    """

    def __init__(self, ordering: Ordering) -> None:
        self._changes: dict[str, QueuedDelivery | None] | None = None
        self._taken: dict[str, str] = {}
        self._empty(ordering)

    def _empty(self, ordering: Ordering) -> None:
        self.ordering = ordering
        self.last = 0
        """Up to here in the endpoint's sequence everything open is known."""
        self._lanes: dict[str, list[QueuedDelivery]] = {}
        self._created: dict[str, int] = {}
        """When each was made, in the order of the sequence."""
        # Every head that is not taken is in one of these, once.
        self._later: list[tuple[int, int, str]] = []
        self._ready: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._created)

    @property
    def oldest(self) -> int | None:
        """When the first in the sequence was made, if there is any."""
        return next(iter(self._created.values()), None)

    @property
    def taken(self) -> int:
        """How many are taken and have not come back."""
        return len(self._taken)

    def add(self, found: Iterable[QueuedDelivery]) -> None:
        """Put deliveries behind those that are known; known ones are passed over."""
        for queued_delivery in found:
            if queued_delivery.sequence > self.last:
                self.last = queued_delivery.sequence
                self._push(queued_delivery)

    def take(self, now: int, most: int) -> list[QueuedDelivery]:
        """Dequeue at most ``most`` deliveries that may be sent now, in sequence."""
        while self._later and self._later[0][0] <= now:
            _, sequence, lane = heapq.heappop(self._later)
            heapq.heappush(self._ready, (sequence, lane))
        taken: list[QueuedDelivery] = []
        while self._ready and len(taken) < most:
            _, lane = heapq.heappop(self._ready)
            head = self._lanes[lane][0]
            self._taken[head.event_id] = lane
            taken.append(head)
        return taken

    def next_moment(self) -> int | None:
        """Return when the next may be sent, 0 if one may be now; None: nothing waits for a time.

        To be asked after :meth:`take`.
        """
        if self._ready:
            return 0
        return self._later[0][0] if self._later else None

    @property
    def ready_since(self) -> int | None:
        """Since when the first delivery that may be sent now could be; None if there is none.

        The lease of another process, which was killed, has ended by then. To be asked after
        :meth:`take`.
        """
        if not self._ready:
            return None
        head = self._lanes[self._ready[0][1]][0]
        return max(head.created, head.due, head.leased)

    def back(self, event_id: str, *, due: int, number: int) -> None:
        """Put one that was taken back, to be sent (again) when it is due."""
        lane = self._taken.pop(event_id, "")
        place = self._place(lane, event_id)
        if place is None:
            return
        waiting = self._lanes[lane]
        waiting[place] = replace(waiting[place], due=due, number=number, leased=0)
        if self._changes is not None:
            self._changes[event_id] = waiting[place]
        if place == 0:
            self._expect(lane)

    def remove(self, event_id: str) -> None:
        """Forget one that was taken: it was delivered, or given up."""
        if self._changes is not None:
            self._changes[event_id] = None
        lane = self._taken.pop(event_id, "")
        place = self._place(lane, event_id)
        if place is None:
            return
        waiting = self._lanes[lane]
        del waiting[place]
        del self._created[event_id]
        if not waiting:
            del self._lanes[lane]
        elif place == 0 and waiting[0].event_id not in self._taken:
            self._expect(lane)

    def watch(self) -> None:
        """Record changes from now on, while the queue is reloaded."""
        self._changes = {}

    def renew(self, found: Sequence[QueuedDelivery], *, ordering: Ordering, last: int) -> None:
        """Take over all that was read since :meth:`watch`, up to ``last`` in the sequence.

        Deliveries in flight stay in flight; changes made during the reload take precedence.
        """
        changes, taken = self._changes or {}, self._taken
        self._changes, self._taken = None, dict.fromkeys(taken, "")
        self._empty(ordering)
        for queued_delivery in found:
            known = changes.get(queued_delivery.event_id, queued_delivery)
            if known is not None:
                self._push(known)
        self.last = max([last, *(queued_delivery.sequence for queued_delivery in found[-1:])])

    def _push(self, new: QueuedDelivery) -> None:
        lane = self._lane_of(new)
        waiting = self._lanes.setdefault(lane, [])
        waiting.append(new)
        self._created[new.event_id] = new.created
        if new.event_id in self._taken:
            self._taken[new.event_id] = lane
        elif len(waiting) == 1:
            self._expect(lane)

    def _expect(self, lane: str) -> None:
        head = self._lanes[lane][0]
        heapq.heappush(self._later, (max(head.due, head.leased), head.sequence, lane))

    def _place(self, lane: str, event_id: str) -> int | None:
        """Return where in its lane one stands: at its head, unless an earlier one was reopened."""
        waiting = self._lanes.get(lane, ())
        return next(
            (n for n, delivery in enumerate(waiting) if delivery.event_id == event_id), None
        )

    def _lane_of(self, delivery: QueuedDelivery) -> str:
        if self.ordering == "strict":
            return "all"
        if self.ordering == "per_resource" and delivery.resource:
            return delivery.resource
        return delivery.event_id


@dataclass(slots=True)
class Bucket:
    """A token bucket: a limit of attempts per second, with a burst of one second's worth."""

    rate: float
    tokens: float
    filled: int

    @classmethod
    def full(cls, rate: float, now: int) -> Bucket:
        """Return one from which nothing was taken yet."""
        return cls(rate, max(1.0, rate), now)

    def available(self, now: int) -> int:
        """Return how many attempts may begin now."""
        passed = max(0, now - self.filled) / 1000
        self.tokens = min(max(1.0, self.rate), self.tokens + passed * self.rate)
        self.filled = now
        return int(self.tokens)

    def take(self, number: int) -> None:
        """Count attempts that begin."""
        self.tokens -= number

    def next_moment(self) -> int:
        """Return when there is one more, as of the last look."""
        missing = max(0.0, 1 - self.tokens)
        return self.filled + max(1, round(missing / self.rate * 1000))
