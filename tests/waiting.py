"""Waiting for conditions, in a thread or in a loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.01, 0.5


def wait_until(true: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Return whether the condition became true in time."""
    begun = time.monotonic()
    while not true():
        waited = time.monotonic() - begun
        if waited > seconds:
            return False
        # Less and less often: to look may be a request, which takes time from what is waited for.
        time.sleep(min(max(waited / 10, _SHORTEST_SECONDS), _LONGEST_SECONDS))
    return True


async def until(true: Callable[[], object], seconds: float = 30.0) -> None:
    """Let the loop run until the condition is true. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while not true():
            await asyncio.sleep(0.001)
