"""A webhook worker runs on an event loop of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.webhooks.dispatch.thread import WorkerThread
from tests.waiting import until


class Worker:
    """Stands for a worker: notes on which thread it is used, and has lags."""

    def __init__(self) -> None:
        self.threads: list[str] = []
        self.rings = 0
        self.relays_at_once = True
        self.now: dict[str, float] = {}

    def ring(self) -> None:
        self.threads.append(threading.current_thread().name)
        self.rings += 1

    def lags(self) -> dict[str, float]:
        return self.now

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        self.threads.append(threading.current_thread().name)
        yield
        self.threads.append("ended")


def thread_of(worker: Worker) -> WorkerThread:
    @asynccontextmanager
    async def create() -> AsyncGenerator[Any]:
        yield worker

    return WorkerThread(create)


async def test_the_worker_runs_and_is_woken_on_its_own_thread() -> None:
    worker = Worker()
    thread = thread_of(worker)

    async with thread.running():
        thread.ring()
        await until(lambda: worker.rings)

    assert worker.threads == ["webhooks", "webhooks", "ended"]


async def test_each_later_commit_wakes_it_again() -> None:
    worker = Worker()
    thread = thread_of(worker)

    async with thread.running():
        for number in (1, 2, 3):
            thread.ring()
            await until(lambda number=number: worker.rings == number)  # type: ignore[misc]

    assert worker.rings == 3


async def test_many_commits_wake_it_once() -> None:
    worker = Worker()
    thread = thread_of(worker)
    async with thread.running():
        for _ in range(1_000):
            thread.ring()
        await until(lambda: worker.rings)

        assert worker.rings < 100


async def test_a_commit_before_the_start_or_after_the_end_is_ignored() -> None:
    worker = Worker()
    thread = thread_of(worker)
    thread.ring()
    async with thread.running():
        pass
    thread.ring()

    assert worker.rings == 0


async def test_what_the_start_raises_is_raised() -> None:
    class Fails(Worker):
        @asynccontextmanager
        async def running(self) -> AsyncGenerator[None]:
            if self.rings == 0:
                raise StoreUnavailable("away")
            yield

    with pytest.raises(StoreUnavailable):
        async with thread_of(Fails()).running():
            pass


@pytest.mark.parametrize(
    ("lag", "pauses"), [(0.0, False), (0.09, False), (0.2, True), (60.0, True)]
)
async def test_writes_of_a_tenant_pause_while_its_events_wait_for_the_process(
    lag: float, *, pauses: bool
) -> None:
    worker = Worker()
    worker.now = {"lab": lag, "other": 0.0}
    thread = thread_of(worker)
    async with thread.running():
        await until(lambda: thread._lags)

        pause = thread.pause_for("lab")
        others = [thread.pause_for("other"), thread.pause_for("unknown")]

    assert (pause > 0) == pauses
    assert pause <= 0.05
    assert others == [0.0, 0.0]


async def test_a_worker_that_does_not_relay_is_not_woken() -> None:
    worker = Worker()
    worker.relays_at_once = False
    thread = thread_of(worker)

    async with thread.running():
        thread.ring()

    assert worker.rings == 0


async def test_writes_pause_no_longer_once_events_have_been_sent() -> None:
    worker = Worker()
    worker.now = {"lab": 60.0}
    thread = thread_of(worker)
    async with thread.running():
        await until(lambda: thread.pause_for("lab"))
        worker.now = {}
        await until(lambda: not thread.pause_for("lab"))


async def test_after_the_end_no_write_pauses() -> None:
    worker = Worker()
    worker.now = {"lab": 60.0}
    thread = thread_of(worker)

    async with thread.running():
        await until(lambda: thread.pause_for("lab"))

    assert thread.pause_for("lab") == 0.0


async def test_the_end_waits_until_the_worker_has_ended() -> None:
    class Slow(Worker):
        @asynccontextmanager
        async def running(self) -> AsyncGenerator[None]:
            yield
            await asyncio.sleep(0.05)
            self.threads.append("ended")

    worker = Slow()

    async with thread_of(worker).running():
        pass

    assert worker.threads == ["ended"]


class Gated(WorkerThread):
    """A thread that begins, and then starts its worker, once it may."""

    def __init__(self, worker: Worker) -> None:
        super().__init__(self._open)
        self.may_begin, self.starting, self.may_start = (threading.Event() for _number in range(3))
        self._given: Any = worker

    def _run(self, *arguments: Any) -> None:
        self.may_begin.wait(30)
        super()._run(*arguments)

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[Any]:
        self.starting.set()
        await asyncio.to_thread(self.may_start.wait, 30)
        yield self._given

    async def run(self) -> None:
        async with self.running():
            pass

    def end(self) -> None:
        """End it whatever it knows, since the tests would never end otherwise."""
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)


@pytest.mark.parametrize("begun", [True, False])
async def test_a_worker_whose_start_is_given_up_ends_once_it_has_started(*, begun: bool) -> None:
    worker = Worker()
    thread = Gated(worker)
    task = asyncio.create_task(thread.run())
    await asyncio.sleep(0)
    if begun:
        thread.may_begin.set()
        await asyncio.to_thread(thread.starting.wait, 30)

    task.cancel()
    await asyncio.sleep(0)
    thread.may_begin.set()
    thread.may_start.set()

    try:
        await until(task.done)
    finally:
        thread.end()
        await asyncio.wait({task}, timeout=30)
    assert task.cancelled()
    assert worker.threads == ["webhooks", "ended"]
