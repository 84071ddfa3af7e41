"""A system that starts no more threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_BEYOND_ALL_ADDRESSES = 1 << 50


@contextmanager
def no_new_threads() -> Iterator[None]:
    """Let the system refuse each new thread within the block, as one does that has too many."""
    before = threading.stack_size(_BEYOND_ALL_ADDRESSES)
    try:
        yield
    finally:
        threading.stack_size(before)
