"""Loads reports in parallel: several workers, each with one group at a time."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from fhirpub.cli.publish.bulk.intake import Intake, Taken
from fhirpub.cli.publish.bulk.items import Item
from fhirpub.cli.publish.bulk.sender import SendGroup
from fhirpub.cli.publish.outcome import Outcome, outcome_of

_GRACE_SECONDS = 10.0
"""How long requests in flight may take after an interruption."""

Record = Callable[[Item, Outcome], None]


@dataclass(frozen=True, slots=True)
class Load:
    """Sends what an intake has, and records each result as soon as it is known.

    ``finish`` is called in a thread before that.
    """

    intake: Intake
    send: SendGroup
    record: Record
    jobs: int
    finish: Record | None = None

    async def run(self) -> None:
        """Load until the intake has no more, or is stopped.

        Raises what the sender and the recording raise; requests in flight are then given up.
        """
        with ThreadPoolExecutor(self.jobs) as threads:  # at its end, no thread takes anything
            workers = [asyncio.create_task(self._work(threads)) for _ in range(self.jobs)]
            stop = asyncio.create_task(self._give_up())
            try:
                await _all_or_first_failure(workers, stop)
            finally:
                self.intake.stopped.set()
                for task in (*workers, stop):
                    task.cancel()
                await asyncio.gather(*workers, stop, return_exceptions=True)

    async def _work(self, threads: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        while group := await loop.run_in_executor(threads, self.intake.take):
            await self._send(group, threads)

    async def _send(self, group: Sequence[Taken], threads: ThreadPoolExecutor) -> None:
        for taken in group:
            if taken.registration is None:
                await self._keep(taken.item, _unsent(taken), threads)
        ready = [(taken.item, taken.registration) for taken in group if taken.registration]
        if not ready:
            return
        async with aclosing(self.send([registration for _, registration in ready])) as answers:
            for item, registration in ready:
                answered, file = await anext(answers), str(item.file)
                outcome = outcome_of(answered, file, registration.type_name, line=item.line)
                await self._keep(item, outcome, threads)
                if self.intake.stopped.is_set():
                    return

    async def _keep(self, item: Item, outcome: Outcome, threads: ThreadPoolExecutor) -> None:
        if self.finish:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(threads, self.finish, item, outcome)
        self.record(item, outcome)

    async def _give_up(self) -> None:
        """Return some seconds after the intake was stopped."""
        while not self.intake.stopped.is_set():
            await asyncio.sleep(0.1)
        await asyncio.sleep(_GRACE_SECONDS)


def _unsent(taken: Taken) -> Outcome:
    item = taken.item
    return Outcome(file=str(item.file), line=item.line, result="not sent", reason=taken.problem)


async def _all_or_first_failure(
    workers: Sequence[asyncio.Task[None]], stop: asyncio.Task[None]
) -> None:
    """Wait for all workers, or for the end of ``stop``. Raises what a worker raises."""
    pending: set[asyncio.Task[None]] = {*workers, stop}
    while pending - {stop} and stop in pending:
        finished, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in finished:
            task.result()


@asynccontextmanager
async def interruptible(stop: Callable[[], None]) -> AsyncIterator[Callable[[], bool]]:
    """Call ``stop`` at SIGINT and SIGTERM; a second signal cancels what runs.

    The value returns whether there was a signal.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    received: list[int] = []

    def receive(number: int) -> None:
        received.append(number)
        stop()
        if len(received) > 1 and task:
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, receive, number)
    try:
        yield lambda: bool(received)
    except asyncio.CancelledError:
        if not received:
            raise
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
