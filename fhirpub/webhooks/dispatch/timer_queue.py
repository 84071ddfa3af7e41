"""A priority queue of endpoint wake-up times; pure."""

from __future__ import annotations

import heapq


class TimerQueue:
    """Wake-up times with names, earliest first, in milliseconds UTC."""

    def __init__(self) -> None:
        self._ordered: list[tuple[int, str]] = []
        self._known: set[tuple[int, str]] = set()

    def __len__(self) -> int:
        return len(self._ordered)

    def add(self, moment: int, name: str) -> None:
        """Schedule a wake-up; duplicates are ignored."""
        alarm = (moment, name)
        if alarm not in self._known:
            self._known.add(alarm)
            heapq.heappush(self._ordered, alarm)

    def pop_due(self, now: int) -> list[str]:
        """Remove the wake-ups that are due and return their names."""
        names = []
        while self._ordered and self._ordered[0][0] <= now:
            alarm = heapq.heappop(self._ordered)
            self._known.remove(alarm)
            names.append(alarm[1])
        return names

    @property
    def earliest(self) -> int | None:
        """The next wake-up time, or None."""
        return self._ordered[0][0] if self._ordered else None
