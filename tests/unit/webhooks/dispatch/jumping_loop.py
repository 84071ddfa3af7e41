"""An event loop that waits for nothing: its clock jumps to the next timer."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


class JumpingSelector(selectors.DefaultSelector):
    """Passes time instead of waiting."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if not found:
            assert timeout is not None, "nothing is left that could happen"
            self.now += timeout
        return found


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose time begins at 0."""

    def __init__(self) -> None:
        self._passing = JumpingSelector()
        super().__init__(self._passing)

    def time(self) -> float:
        return self._passing.now


def run(work: Coroutine[object, object, T]) -> T:
    """Run a coroutine on such a loop."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(work)
