"""Group commit whose batches are shared fairly among owners, the tenants.

A batch is bounded by what it costs, and the owner that has had the least of the batches is next
(ADR 21): start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996). An owner whose calls cost
the same as another's takes turns with it. One that was idle comes first, and what it hands in
waits for the batch in progress only.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from fhirpub.storage.batching import Bounds, GroupCommit, R, T, Waiting


class FairCommit(GroupCommit[T, R]):
    """A `GroupCommit` that knows the owner of each item; the size of an item is what it costs.

    Items of one owner stay in their order. An item beyond the bound of a batch goes alone, as do
    those of which the bounds say so.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[T]], Awaitable[Sequence[R | Exception]]],
        *,
        owner_of: Callable[[T], str],
        deadline_seconds: float,
        bounds: Bounds,
    ) -> None:
        super().__init__(commit, deadline_seconds=deadline_seconds, bounds=bounds)
        self._owner_of = owner_of
        self._now = 0
        """How much an owner has had that was never idle and had as little as any other."""
        self._used: dict[str, int] = {}
        """How much those owners have had that have had more than that."""

    def _take(self) -> list[Waiting[T, R]]:
        queues: dict[str, deque[Waiting[T, R]]] = {}
        for waiting in self._waiting:
            queues.setdefault(self._owner_of(waiting.item), deque()).append(waiting)
        turns = [
            (max(self._now, self._used.get(owner, 0)), place, owner)
            for place, owner in enumerate(queues)  # of equals the one that has waited longest
        ]
        heapq.heapify(turns)
        batch: list[Waiting[T, R]] = []
        room = self._bounds.size
        while turns and len(batch) < self._bounds.items:
            used, place, owner = heapq.heappop(turns)
            queue = queues[owner]
            if not self._may_join(queue[0], batch, room):
                continue  # the next in its queue must not overtake it
            batch.append(queue.popleft())
            room -= batch[-1].size
            self._now = max(self._now, used)
            self._used[owner] = used + batch[-1].size
            if queue:
                heapq.heappush(turns, (self._used[owner], place, owner))
        self._forget(batch)
        return batch

    def _forget(self, batch: Sequence[Waiting[T, R]]) -> None:
        """Forget what is taken, and the owners that are no longer ahead of an idle one."""
        taken = set(map(id, batch))
        self._waiting = deque(waiting for waiting in self._waiting if id(waiting) not in taken)
        self._used = {owner: used for owner, used in self._used.items() if used > self._now}
