"""The CPU time of servers, as the kernel counts it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from bench.memory import family

_TICKS = os.sysconf("SC_CLK_TCK")
_USER, _SYSTEM = 11, 12
"""The places behind the name of the process in ``/proc/<pid>/stat`` (proc(5))."""


def cpu_seconds(*pids: int) -> float:
    """Return the CPU time that processes and their children have taken, in seconds."""
    return sum(_ticks(member) for pid in pids for member in family(pid)) / _TICKS


def _ticks(pid: int) -> int:
    with suppress(OSError):
        values = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(values[_USER]) + int(values[_SYSTEM])
    return 0


def children_named(name: str) -> list[int]:
    """Return the processes below this one that run a program of this name."""
    return [pid for pid in family(os.getpid()) if _name(pid) == name]


def _name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""
