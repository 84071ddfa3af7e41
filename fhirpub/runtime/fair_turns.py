"""Turns that are shared fairly among owners, the tenants.

An owner has few turns at a time, and the owner with the fewest is next: it never waits behind
another's queue (ADR 21).
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fhirpub.errors import Throttled

_RETRY_SECONDS = 1
_LOOK_SECONDS = 0.01


class FairTurns:
    """Gives at most ``max_turns`` turns at a time, ``per_owner`` to each owner; for one loop."""

    def __init__(self, *, max_turns: int, per_owner: int) -> None:
        self._free = max_turns
        self._per_owner = per_owner
        self._taken: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def take(self, owner: str, *, seconds: float | None = None) -> None:
        """Take a turn, to be released by `release`; wait for it if necessary.

        After ``seconds`` without one it raises Throttled if the owner has as many turns as it may
        have, and TimeoutError otherwise.
        """
        if self._free and not self._has_all(owner):
            self._count(owner, 1)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        try:
            async with asyncio.timeout(seconds):
                await turn
        except BaseException as problem:
            if not turn.cancelled():  # it was given at the same moment
                self.release(owner)
            if isinstance(problem, TimeoutError) and self._has_all(owner):
                raise Throttled(retry_after=_RETRY_SECONDS) from None
            raise

    def release(self, owner: str) -> None:
        """Release a turn of an owner; the next that waits gets it."""
        self._count(owner, -1)
        while self._free and (following := self._next_owner()) is not None:
            queue = self._waiting[following]
            turn = queue.popleft()
            if not queue:
                del self._waiting[following]
            if not turn.done():  # otherwise the request was cancelled
                self._count(following, 1)
                turn.set_result(None)

    @asynccontextmanager
    async def turn(self, owner: str, *, seconds: float | None = None) -> AsyncGenerator[None]:
        """Hold a turn for the block; raises what `take` raises."""
        await self.take(owner, seconds=seconds)
        try:
            yield
        finally:
            self.release(owner)

    async def drain(self) -> None:
        """Return when no turn is taken."""
        while self._taken:
            await asyncio.sleep(_LOOK_SECONDS)

    def _count(self, owner: str, change: int) -> None:
        self._free -= change
        self._taken[owner] += change
        if not self._taken[owner]:
            del self._taken[owner]

    def _has_all(self, owner: str) -> bool:
        return self._taken[owner] >= self._per_owner

    def _next_owner(self) -> str | None:
        ready = [name for name in self._waiting if not self._has_all(name)]
        return min(ready, key=self._taken.__getitem__, default=None)
