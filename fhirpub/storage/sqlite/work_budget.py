"""The time and the number of steps that a read of a SQLite store may take."""

from __future__ import annotations

import time

STEPS_BETWEEN_CHECKS = 10_000
"""Steps of SQLite's virtual machine between two calls of a progress handler: about 1 ms."""
_STEPS_PER_SECOND = 6_000_000
"""Half as many as an idle machine makes: a search costs the same number however busy it is."""


class WorkBudget:
    """Ends a read at its deadline, and a search also after its time or its steps.

    Args:
        deadline: The time of the monotonic clock at which its caller stops waiting, in seconds.
        max_seconds: The time for which a search may run, in seconds; None for other reads.
    """

    def __init__(self, deadline: float, max_seconds: float | None = None) -> None:
        self._deadline = deadline
        self._max_seconds = max_seconds
        self._ends = deadline
        self._checks_left = 0
        self.is_exceeded = False
        """Whether the search has used up its time or its steps."""

    def start(self) -> None:
        """Start the clock: the read begins."""
        if self._max_seconds is not None:
            self._ends = time.monotonic() + self._max_seconds
            self._checks_left = int(self._max_seconds * _STEPS_PER_SECOND / STEPS_BETWEEN_CHECKS)

    def check(self) -> bool:
        """Return whether the read must end; called by SQLite after so many steps."""
        now = time.monotonic()
        self._checks_left -= 1
        if self._max_seconds is not None and (self._checks_left < 0 or now > self._ends):
            self.is_exceeded = True
        return self.is_exceeded or now > self._deadline
