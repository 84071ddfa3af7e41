"""The highest resident memory of some processes, sampled in a thread."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from bench.memory import family

_EVERY_SECONDS = 0.01
_SAMPLES_BETWEEN_LOOKS = 20
"""How many samples are taken before the processes are looked for again."""
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
        return round(sum(map(_resident, self._family())), 1)

    def _family(self) -> set[int]:
        """Return the processes with those that they have started."""
        return {member for pid in self._pids for member in family(pid)}

    def _run(self) -> None:
        pids: Iterable[int] = ()
        for number in itertools.count():
            if self._stopped.wait(_EVERY_SECONDS):
                return
            if number % _SAMPLES_BETWEEN_LOOKS == 0:
                pids = self._family()
            sizes = [_resident(pid) for pid in pids]
            self.peak = max(self.peak, round(sum(sizes), 1))
            self.peak_of_a_process = max(self.peak_of_a_process, round(max(sizes, default=0.0), 1))


def _resident(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):  # it has ended
        return 0.0
    return pages * _PAGE_BYTES / 1024**2
