"""Leases by which processes that share a store divide the work; they expire with their owner.

A lease is a promise to each other, not a lock: a process that hangs may wake up after its lease
has run out. What must not happen twice is prevented by the store. See ADR 10.
"""

from __future__ import annotations

from collections.abc import Collection

from fhirpub.runtime.clock import Clock
from fhirpub.storage.webhook_contract import DeliveryQueueStore


class Leases:
    """The leases of one process."""

    def __init__(
        self, store: DeliveryQueueStore, *, owner: str, seconds: float, clock: Clock
    ) -> None:
        self._store = store
        self._owner = owner
        self._length = round(seconds * 1000)
        self._clock = clock
        self._until: dict[str, int] = {}

    def held(self, name: str) -> bool:
        """Return whether this process holds the lease now."""
        return self._clock() < self._until.get(name, 0)

    def due(self, name: str) -> bool:
        """Return whether to acquire or renew it: a third of it has passed."""
        return self._clock() >= self._until.get(name, 0) - self._length * 2 // 3

    async def take(self, names: Collection[str]) -> frozenset[str]:
        """Take or prolong leases; return those that are ours now. Raises StoreUnavailable."""
        now = self._clock()
        until = now + self._length
        ours = await self._store.lease(names, owner=self._owner, now=now, until=until)
        for name in names:
            self._until.pop(name, None)
        self._until |= dict.fromkeys(ours, until)
        return ours

    async def release(self, names: Collection[str]) -> None:
        """Release leases. Raises StoreUnavailable."""
        for name in names:
            self._until.pop(name, None)
        if names:
            await self._store.release(names, owner=self._owner)

    async def release_all(self) -> None:
        """Release all leases. Raises StoreUnavailable."""
        await self.release(list(self._until))
