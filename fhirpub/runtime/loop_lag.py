"""Measures how long the event loop is held: the delay of a timer that is due all the time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

_INTERVAL_SECONDS = 0.05
_WINDOW_SECONDS = 60.0


class LoopLag:
    """The delays of the last minute, in seconds."""

    def __init__(self) -> None:
        self._delays: deque[float] = deque(maxlen=int(_WINDOW_SECONDS / _INTERVAL_SECONDS))

    async def run(self, observe: Callable[[float], None] = lambda _delay: None) -> None:
        """Measure until cancelled; ``observe`` gets each delay."""
        clock = asyncio.get_running_loop().time
        while True:
            due = clock() + _INTERVAL_SECONDS
            await asyncio.sleep(_INTERVAL_SECONDS)
            delay = max(0.0, clock() - due)
            self._delays.append(delay)
            observe(delay)

    def quantile(self, share: float) -> float:
        """Return the delay that this share of the delays does not exceed, 0 before the first."""
        ordered = sorted(self._delays)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0

    def highest(self) -> float:
        """Return the longest delay of the last minute."""
        return max(self._delays, default=0.0)
