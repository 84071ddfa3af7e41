"""Keeps the garbage collector away from what is measured."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collector() -> Iterator[None]:
    """Keep the collector away: what it finds is not of this computation."""
    gc.collect(0)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
