"""The memory of a server, as the kernel counts it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory of a process and its children, in MiB."""

    now: float
    peak: float


def memory(pid: int) -> Memory:
    """Return the memory of a process and its children."""
    pages = [_status(member) for member in family(pid)]
    return Memory(
        now=round(sum(page.get("VmRSS", 0) for page in pages) / 1024, 1),
        peak=round(sum(page.get("VmHWM", 0) for page in pages) / 1024, 1),
    )


def family(pid: int) -> list[int]:
    """Return a process and all its descendants, whichever of its threads started them."""
    own: list[int] = []
    with suppress(OSError):  # it has ended
        for task in Path(f"/proc/{pid}/task").iterdir():
            own += map(int, (task / "children").read_text().split())
    return [pid, *(member for child in own for member in family(child))]


def _status(pid: int) -> dict[str, int]:
    """Return the sizes of ``/proc/<pid>/status`` in KiB; nothing where there is none."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in lines if line.endswith("kB"))
    return {name: int(value.split()[0]) for name, value in pairs}
