"""The event loop's time, of which each tenant begins few requests in one iteration.

A client with many connections would otherwise make each iteration as long as all its requests
take together, and a request of another tenant goes through several iterations (ADR 21).
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable

_PER_OWNER = 3
"""Requests take less than a millisecond each, or pause; fewer cost more iterations (ADR 21)."""
_SHARED_SECONDS = 1.0
"""How long after a change of tenants the loop counts as shared. A tenant alone needs no turns,
which cost its reads a sixth of their rate."""


class LoopTurns:
    """Lets each owner, a tenant, begin at most ``per_owner`` requests in one iteration."""

    def __init__(self, *, per_owner: int = _PER_OWNER) -> None:
        self._per_owner = per_owner
        self._begun: Counter[str] = Counter()
        self._waiting: dict[str, deque[Callable[[], None]]] = {}
        self._latest = ""
        self._shared_until = 0.0

    def begin(self, owner: str, request: Callable[[], None]) -> None:
        """Call ``request`` now, or in one of the next iterations if the owner had its turns.

        One without an owner, such as a health check, needs none, and does not share the loop.
        """
        loop = asyncio.get_running_loop()
        if not owner:
            request()
            return
        if owner != self._latest:
            self._latest, self._shared_until = owner, loop.time() + _SHARED_SECONDS
        elif not self._waiting and loop.time() > self._shared_until:
            request()
            return
        if not self._begun:
            loop.call_soon(self._begin_iteration)
        if self._begun[owner] < self._per_owner and owner not in self._waiting:
            self._begun[owner] += 1
            request()
        else:
            self._waiting.setdefault(owner, deque()).append(request)

    async def turn(self, owner: str) -> None:
        """Return in a turn of the owner: what one commit wakes up would go on in one iteration."""
        turned = asyncio.get_running_loop().create_future()

        def begin() -> None:
            if not turned.done():  # the request may have been cancelled
                turned.set_result(None)

        self.begin(owner, begin)
        await turned

    def _begin_iteration(self) -> None:
        loop = asyncio.get_running_loop()
        self._begun.clear()
        for owner, queue in [*self._waiting.items()]:
            self._begun[owner] = min(self._per_owner, len(queue))
            for _number in range(self._begun[owner]):
                loop.call_soon(queue.popleft())  # a fault of one ends no other
            if not queue:
                del self._waiting[owner]
        if self._begun:
            loop.call_soon(self._begin_iteration)
