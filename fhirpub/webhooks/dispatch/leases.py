"""Divides the endpoints among the processes that share a store, by leases.

A lease is no lock: what must not happen twice is prevented where deliveries are begun (ADR 10).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection
from random import Random

from fhirpub.storage.leases import Leases

_MAX_PROCESSES = 32
_COUNTS = 3
_ASKED = 32


class EndpointAssignments:
    """Which endpoints are this process's: as many as its share among the processes.

    Each process holds one of a few numbered places, so that all can count each other.
    """

    def __init__(self, leases: Leases, random: Random) -> None:
        self._leases = leases
        self._random = random
        self._place = ""
        self._counts: deque[int] = deque(maxlen=_COUNTS)
        self.owned: set[str] = set()
        """The endpoints of this process, by id."""

    async def update(self, wanted: Collection[str]) -> int:
        """Prolong what is ours, and take more up to our share of the endpoints that are wanted.

        Returns how many should be given away, by :meth:`give_up`. Raises StoreUnavailable.
        """
        if self._leases.due(self._place):
            await self._count()
            kept = await self._leases.take([_name(name) for name in self.owned])
            self.owned = {name for name in self.owned if _name(name) in kept}
        self.owned = {name for name in self.owned if self._leases.held(_name(name))}
        share = math.ceil(len(wanted) / min(self._counts, default=1))
        missing = share - len(self.owned)
        others = [name for name in wanted if name not in self.owned]
        if missing > 0 and others:
            # Most are others' already: with few questions the last free ones are found late.
            asked = self._random.sample(others, min(max(missing, _ASKED), len(others)))
            taken = await self._leases.take([_name(name) for name in asked])
            free = [name for name in asked if _name(name) in taken]
            self.owned.update(free[:missing])
            await self._leases.release([_name(name) for name in free[missing:]])
        return max(0, -missing)

    def holds(self, endpoint: str) -> bool:
        """Return whether this process holds the lease of an endpoint now."""
        return self._leases.held(_name(endpoint))

    async def give_up(self, endpoints: Collection[str]) -> None:
        """Leave endpoints to others. Raises StoreUnavailable."""
        self.owned.difference_update(endpoints)
        await self._leases.release([_name(endpoint) for endpoint in endpoints])

    async def _count(self) -> None:
        """Count the processes. Several may count at once, each too many: the least is right."""
        places = [f"dispatcher/{number}" for number in range(_MAX_PROCESSES)]
        ours = await self._leases.take(places)
        if self._place not in ours:
            self._place = next((place for place in places if place in ours), "")
        await self._leases.release(ours - {self._place})
        self._counts.append(1 + len(places) - len(ours))


def _name(endpoint: str) -> str:
    return f"endpoint/{endpoint}"
