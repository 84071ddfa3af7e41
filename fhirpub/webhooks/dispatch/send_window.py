"""How many deliveries of one endpoint are begun, and how many of them are sent at a time."""

from __future__ import annotations

import asyncio

_FAST_MS = 250.0
_AHEAD = 4
"""To a fast receiver this many times more deliveries are begun than are sent at a time. The last
of them waits for a second, far less than the margin of its lease."""
_WEIGHT_OF_LATEST = 0.2


class SendWindow:
    """The slots of one endpoint, and the deliveries that are begun ahead for a fast receiver.

    Each delivery is begun and ended by a commit; a fast receiver would otherwise wait for these.
    """

    def __init__(self, max_in_flight: int) -> None:
        self._max = max_in_flight
        self._average_ms: float | None = None
        """The recent duration of successful attempts; None: not known, or the last one failed."""
        self.slots = asyncio.Semaphore(max_in_flight)
        """The attempts that may be made at the same time."""

    @property
    def size(self) -> int:
        """How many deliveries may be begun and not ended."""
        is_fast = self._average_ms is not None and self._average_ms < _FAST_MS
        return self._max * _AHEAD if is_fast else self._max

    def note_attempt(self, milliseconds: int, *, delivered: bool) -> None:
        """Note how long an attempt took."""
        if not delivered:
            self._average_ms = None
        elif self._average_ms is None:
            self._average_ms = float(milliseconds)
        else:
            self._average_ms += (milliseconds - self._average_ms) * _WEIGHT_OF_LATEST
