"""How far a load is: the bar on a terminal, and what is left."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from fhirpub.cli.publish.bulk.sources import Source

_BAR = 20


@dataclass(slots=True)
class Expected:
    """How many reports there are, as far as that is known.

    Files are counted in a thread; lines are estimated from the bytes that are not read yet.
    """

    sources: Sequence[Source]
    stopped: threading.Event
    files: int | None = None
    bytes_read: int = 0
    lines_read: int = 0
    _line_bytes: int = field(default=0, init=False)
    _has_stdin: bool = field(default=False, init=False)

    def start(self) -> None:
        """Begin to count."""
        self._line_bytes = sum(source.line_bytes for source in self.sources)
        self._has_stdin = any(source.is_stdin for source in self.sources)
        threading.Thread(target=self._count, daemon=True).start()

    def read(self, size: int) -> None:
        """Note that so many bytes of lines were read."""
        self.bytes_read += size

    def total(self) -> int | None:
        """Return how many reports there are; None as long as that is unknown."""
        if self.files is None or self._has_stdin:
            return None
        left = max(0, self._line_bytes - self.bytes_read)
        if left and not self.lines_read:
            return None
        average = self.bytes_read / self.lines_read if self.lines_read else 1
        return self.files + self.lines_read + round(left / average)

    def _count(self) -> None:
        number = 0
        for source in self.sources:
            for one in source.count():
                number += one
                if self.stopped.is_set():
                    return
        self.files = number


def bar(done: int, total: int | None, rate: float, *, failed: int) -> str:
    """Return the line that shows the progress; ``rate`` are the reports sent in a second."""
    words = [f"{done:,}" if total is None else f"{done:,} of {total:,}", f"{rate:,.0f}/s"]
    if total and rate:
        words.append(f"{_duration(max(0, total - done) / rate)} left")
    if failed:
        words.append(f"{failed:,} not published")
    filled = min(_BAR, _BAR * done // total) if total else 0
    drawn = f"[{'#' * filled}{'.' * (_BAR - filled)}]  " if total else ""
    return drawn + "  ".join(words)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
