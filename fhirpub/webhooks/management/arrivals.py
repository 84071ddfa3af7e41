"""Lets requests wait for the next event of an endpoint (long polls, ADR 47)."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from fhirpub.errors import StoreUnavailable, Throttled
from fhirpub.storage.webhook_contract import DeliveryQueueStore, Endpoint

MAX_WAIT_SECONDS = 30
MAX_WAITS = 256
MAX_WAITS_OF_TENANT = 16
MAX_WAITS_OF_CLIENT = 8
"""So many requests of a process wait at a time, and of one tenant and one of its clients."""

_LOOK_SECONDS = 0.1
_RETRY_SECONDS = 1


@dataclass(slots=True, eq=False)
class _Wait:
    """A request that waits until the queue of an endpoint is longer than ``after``."""

    endpoint: str
    after: int
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Arrivals:
    """The waiting requests of one event loop. One task looks for all of them, while there are any.

    It asks the store and hears no signal: which process relays an event is not known here.
    """

    def __init__(self, store: DeliveryQueueStore) -> None:
        self._store = store
        self._waits: set[_Wait] = set()
        self._counts: Counter[str] = Counter()
        self._looking: asyncio.Task[None] | None = None
        self._is_stopped = False

    async def wait(self, endpoint: Endpoint, *, client: str, after: int, seconds: float) -> None:
        """Return once an endpoint has an event behind ``after``, or when the time is over.

        Raises Throttled if too many requests wait already.
        """
        owners = (endpoint.tenant, f"{endpoint.tenant} {client}")
        self._refuse_too_many(*owners)
        if self._is_stopped:
            return
        wait = _Wait(endpoint.id, after)
        self._waits.add(wait)
        self._counts.update(owners)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await wait.ended.wait()
        finally:
            self._waits.discard(wait)
            self._counts -= Counter(owners)

    def stop(self) -> None:
        """End all waits at once, and let no other begin: the service stops."""
        self._is_stopped = True
        for wait in self._waits:
            wait.ended.set()
        if self._looking is not None:
            self._looking.cancel()

    def _refuse_too_many(self, tenant: str, client: str) -> None:
        counts = self._counts
        if (
            len(self._waits) >= MAX_WAITS
            or counts[tenant] >= MAX_WAITS_OF_TENANT
            or counts[client] >= MAX_WAITS_OF_CLIENT
        ):
            raise Throttled(retry_after=_RETRY_SECONDS)

    async def _look(self) -> None:
        try:
            while self._waits:
                with suppress(StoreUnavailable):  # they wait on, and get a 503 in the end
                    await self._look_once()
                await asyncio.sleep(_LOOK_SECONDS)
        finally:
            self._looking = None

    async def _look_once(self) -> None:
        ends = await self._store.last_sequences({wait.endpoint for wait in self._waits})
        for wait in self._waits:
            if ends.get(wait.endpoint, 0) > wait.after:
                wait.ended.set()
