"""How many equal log lines are written: callers without a token must not fill the disk (D-300)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from fhirpub.runtime.clock import Clock

LINES_PER_MINUTE = 10
"""Lines of one event with one reason that a process writes in a minute."""
MAX_KINDS = 64
"""Of more kinds in one minute, the further ones of an event are counted together."""
OTHER = "other"
WINDOW_MS = 60_000
_MAX_REASON_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Kind:
    """What equal lines have in common."""

    level: str
    event: str
    reason: str


class LineSampler:
    """Counts lines by kind in windows of a minute, in bounded memory.

    Several threads may log at once: a count may then be wrong by a few, which is accepted, since
    a lock could be held by another thread in the moment of a fork.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock()
        self._counts: Counter[Kind] = Counter()

    def milliseconds_left(self) -> int:
        """Return how long the window lasts; 0 if it is over, also after the clock was set back."""
        passed = self._clock() - self._began
        return WINDOW_MS - passed if 0 <= passed < WINDOW_MS else 0

    def admits(self, level: str, event: str, reason: str) -> bool:
        """Count a line, and return whether it is one of those that are written."""
        kind = Kind(level, event, reason[:_MAX_REASON_LENGTH])
        if kind not in self._counts and len(self._counts) >= MAX_KINDS:
            kind = Kind(level, event, OTHER)
        self._counts[kind] += 1
        return self._counts[kind] <= LINES_PER_MINUTE

    def renew(self) -> Iterator[tuple[Kind, int]]:
        """Begin a new window; yield how many lines of each kind the last one left out."""
        counts, self._counts = self._counts, Counter()
        self._began = self._clock()
        for kind, count in counts.items():
            if count > LINES_PER_MINUTE:
                yield kind, count - LINES_PER_MINUTE
