"""Returns memory of large requests to the system (glibc; elsewhere nothing is done).

By default glibc keeps a heap for each thread, and raises the size from which a block is returned
as soon as it is freed. A process that served a few large requests would stay that large.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""Parameters of mallopt(3)."""
_BLOCK_BYTES = 8 * 1024 * 1024
"""The system clears each page of a block that was returned when it is used again: with 1 MiB here,
registrations with a document of 1 MB lost a quarter of their rate."""
_FREE_BYTES = 64 * 1024 * 1024
"""As much of each heap may stay free until `MemoryTrimmer` or `return_memory` returns it."""
_ARENAS = 2
_TRIM_SECONDS = 10.0


def tune_allocator() -> None:
    """Let glibc return large blocks as soon as they are freed, and keep few heaps."""
    libc = _glibc()
    if libc is not None:
        libc.mallopt(_M_MMAP_THRESHOLD, _BLOCK_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, _FREE_BYTES)
        libc.mallopt(_M_ARENA_MAX, _ARENAS)


class MemoryTrimmer:
    """Returns free memory to the system some seconds after large computations."""

    def __init__(self) -> None:
        self._is_due = False

    def note_large_work(self) -> None:
        """Return memory soon."""
        self._is_due = True

    async def run(self) -> None:
        """Return memory whenever that is due, until cancelled."""
        libc = _glibc()
        while libc is not None:
            await asyncio.sleep(_TRIM_SECONDS)
            if self._is_due:
                self._is_due = False
                gc.collect()  # a refusal and its traceback may keep a body in a cycle
                await asyncio.to_thread(libc.malloc_trim, 0)


def return_memory() -> None:
    """Collect garbage and return free memory to the system at once."""
    gc.collect()
    libc = _glibc()
    if libc is not None:
        libc.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "malloc_trim") and hasattr(libc, "mallopt") else None
