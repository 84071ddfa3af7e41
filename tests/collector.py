"""Keeps the garbage collector away from what is measured."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def without_collector() -> Iterator[None]:
    """Keep the collector away: what it finds is not of this computation."""
    gc.collect(0)
    gc.disable()
    try:
        # A service also collects some seconds after large work, in its event loop.
        with pytest.MonkeyPatch.context() as replaced:
            replaced.setattr(gc, "collect", lambda *_generation: 0)
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
