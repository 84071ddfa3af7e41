"""How long processes were ready to run and had no core, as Linux counts it.

On one machine the service, the neighbour and the abuser take the cores from one another. What a
request waits for that is no fault of the service, and would not be there on machines of their own.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path


class CoreWaits:
    """Counts for the main threads of processes, from its beginning on."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        """Begin; ``pids`` are processes by name."""
        self._pids = pids
        self._began = time.monotonic()
        self._before = {name: _waited(pid) for name, pid in pids.items()}

    def shares(self) -> dict[str, float]:
        """Return the part of the time since the beginning, by name."""
        seconds = time.monotonic() - self._began
        return {
            name: round((_waited(pid) - self._before[name]) / seconds, 3)
            for name, pid in self._pids.items()
        }


def _waited(pid: int) -> float:
    """Return the seconds; 0 if the process has ended or the system does not count them."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text(encoding="ascii")
    except OSError:
        return 0.0
    return int(text.split()[1]) / 1e9
