"""Keeps the garbage collector away from what is measured."""

from __future__ import annotations

import gc
import time
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


@contextmanager
def computing_less_than(seconds: float) -> Iterator[None]:
    """Assert that a block takes less of the processor, however busy the machine is."""
    with without_collector():
        began = time.thread_time()
        yield
        took = time.thread_time() - began
    assert took < seconds
