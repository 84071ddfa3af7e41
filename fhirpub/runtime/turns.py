"""Work on many records, cut up so that other requests have their turn of the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")
_IN_A_TURN = 100
_TURN_SECONDS = 0.004


async def in_turns(make: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """Return what is made of each item; others go on after each hundred, or some milliseconds."""
    made: list[B] = []
    began = time.monotonic()
    for number, item in enumerate(items, start=1):
        made.append(make(item))
        if number % _IN_A_TURN == 0 or time.monotonic() - began >= _TURN_SECONDS:
            await asyncio.sleep(0)
            began = time.monotonic()
    return made
