"""The highest resident memory of some processes, sampled in a thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Self

_EVERY_SECONDS = 0.01
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class MemorySampler:
    """Samples the memory of processes while it is used as a context manager; all in MiB."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = pids
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.peak = 0.0
        """The highest sum over the processes at one time."""
        self.peak_of_a_process = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stopped.set()
        self._thread.join()

    @property
    def now(self) -> float:
        """The memory of all the processes now."""
        return round(sum(map(_resident, self._pids)), 1)

    def _run(self) -> None:
        while not self._stopped.wait(_EVERY_SECONDS):
            sizes = [_resident(pid) for pid in self._pids]
            self.peak = max(self.peak, round(sum(sizes), 1))
            self.peak_of_a_process = max(self.peak_of_a_process, round(max(sizes), 1))


def _resident(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):  # it has ended
        return 0.0
    return pages * _PAGE_BYTES / 1024**2
