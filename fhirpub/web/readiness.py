"""Whether the store can serve now, asked at most once a second however often probes come."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

_FRESH_SECONDS = 1.0


class Readiness:
    """Checks the store, which costs a commit, once for all concurrent requests."""

    def __init__(self, check: Callable[[], Awaitable[None]]) -> None:
        self.seconds = 0.0
        """How long the last check that succeeded took."""
        self._check = check
        self._good_until = 0.0
        self._checking: asyncio.Task[None] | None = None

    async def confirm(self) -> None:
        """Return if the store could serve within the last second, or can now.

        Raises StoreUnavailable; a failure is returned to current waiters only, not to later ones.
        """
        if asyncio.get_running_loop().time() < self._good_until:
            return
        if self._checking is None:
            self._checking = asyncio.create_task(self._ask())
            self._checking.add_done_callback(self._end)
        await asyncio.shield(self._checking)

    async def _ask(self) -> None:
        clock = asyncio.get_running_loop().time
        begun = clock()
        await self._check()
        self.seconds = clock() - begun
        self._good_until = clock() + _FRESH_SECONDS

    def _end(self, task: asyncio.Task[None]) -> None:
        self._checking = None
        if not task.cancelled():
            task.exception()  # the waiters have it, unless they went away
