"""When which endpoint is to be looked at again; pure."""

from __future__ import annotations

import heapq


class TimerQueue:
    """Moments with names, the earliest first. Times are milliseconds UTC."""

    def __init__(self) -> None:
        self._ordered: list[tuple[int, str]] = []
        self._known: set[tuple[int, str]] = set()

    def __len__(self) -> int:
        return len(self._ordered)

    def add(self, moment: int, name: str) -> None:
        """Have a name rung at a moment; the same twice is rung once."""
        alarm = (moment, name)
        if alarm not in self._known:
            self._known.add(alarm)
            heapq.heappush(self._ordered, alarm)

    def pop_due(self, now: int) -> list[str]:
        """Return the names whose moment has come, and forget these alarms."""
        names = []
        while self._ordered and self._ordered[0][0] <= now:
            alarm = heapq.heappop(self._ordered)
            self._known.remove(alarm)
            names.append(alarm[1])
        return names

    @property
    def earliest(self) -> int | None:
        """The next moment, if there is one."""
        return self._ordered[0][0] if self._ordered else None
