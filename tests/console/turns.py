"""How long the event loop of a service was held, in time of its own thread: others may compute."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from fhirpub.testing.service import RunningService
from tests.collector import without_collector


@dataclass
class Turns:
    """The turns of an event loop, in seconds of computing."""

    lengths: list[float] = field(default_factory=lambda: [0.0])

    @property
    def longest(self) -> float:
        """The longest turn, in milliseconds."""
        return max(self.lengths) * 1000

    async def measure(self) -> None:
        """Take the length of each turn, for ever."""
        while True:
            began = time.thread_time()
            await asyncio.sleep(0)
            self.lengths.append(time.thread_time() - began)


@contextmanager
def measured(service: RunningService) -> Iterator[Turns]:
    """Measure the turns of the event loop of a service until the block ends."""
    turns = Turns()

    async def begin() -> asyncio.Task[None]:
        return asyncio.create_task(turns.measure())

    async def end() -> None:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    with without_collector():
        task = service.call(begin())
        try:
            yield turns
        finally:
            service.call(end())
