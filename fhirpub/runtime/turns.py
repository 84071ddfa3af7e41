"""Work on many records, cut up so that other requests have their turn of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")
_IN_A_TURN = 100


async def in_turns(make: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """Return what is made of each item; all other tasks go on after every hundred."""
    made: list[B] = []
    for number, item in enumerate(items, start=1):
        made.append(make(item))
        if number % _IN_A_TURN == 0:
            await asyncio.sleep(0)
    return made
