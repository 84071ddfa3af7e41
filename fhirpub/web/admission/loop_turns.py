"""The event loop's time, of which each tenant begins few requests in one iteration.

A client with many connections would otherwise make each iteration as long as all its requests
take together, and a request of another tenant goes through several iterations (ADR 21).
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque

_PER_OWNER = 8
"""Requests take less than a millisecond each, or pause; fewer would cost more iterations."""


class LoopTurns:
    """Lets each owner, a tenant, begin at most ``per_owner`` requests in one iteration."""

    def __init__(self, *, per_owner: int = _PER_OWNER) -> None:
        self._per_owner = per_owner
        self._begun: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def take(self, owner: str) -> asyncio.Future[None] | None:
        """Count a request that begins now; otherwise return what is done when it may begin."""
        loop = asyncio.get_running_loop()
        if not self._begun:
            loop.call_soon(self._begin_iteration)
        if self._begun[owner] < self._per_owner and owner not in self._waiting:
            self._begun[owner] += 1
            return None
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        return turn

    def _begin_iteration(self) -> None:
        self._begun.clear()
        for owner, queue in [*self._waiting.items()]:
            while queue and self._begun[owner] < self._per_owner:
                turn = queue.popleft()
                if not turn.done():
                    turn.set_result(None)
                    self._begun[owner] += 1
            if not queue:
                del self._waiting[owner]
        if self._begun:
            asyncio.get_running_loop().call_soon(self._begin_iteration)
