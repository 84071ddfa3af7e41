"""Large computations share threads fairly."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator

import pytest

from fhirpub.runtime.fair_executor import FairExecutor


class Gate:
    """Work that starts, and ends when the test says so."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self._open = threading.Event()

    def work(self, name: str) -> str:
        self.started.append(name)
        assert self._open.wait(20)
        return name

    def open(self) -> None:
        self._open.set()


@pytest.fixture
async def executor() -> AsyncGenerator[FairExecutor]:
    executor = FairExecutor(max_threads=3, per_owner=2)
    yield executor
    executor.close()


def submit(executor: FairExecutor, owner: str, gate: Gate, name: str) -> asyncio.Task[str]:
    return asyncio.create_task(executor.run(owner, lambda: gate.work(name)))


async def started(gate: Gate, number: int) -> None:
    async with asyncio.timeout(10):
        while len(gate.started) < number:
            await asyncio.sleep(0.005)


async def test_a_result_and_an_exception_reach_the_caller(executor: FairExecutor) -> None:
    def fail() -> None:
        raise ValueError("wrong")

    assert await executor.run("lab", lambda: 7) == 7
    with pytest.raises(ValueError, match="wrong"):
        await executor.run("lab", fail)


async def test_an_owner_runs_a_limited_number_at_a_time(executor: FairExecutor) -> None:
    gate = Gate()
    tasks = [submit(executor, "lab", gate, str(number)) for number in range(5)]
    await started(gate, 2)
    await asyncio.sleep(0.05)

    assert gate.started == ["0", "1"]
    gate.open()
    assert await asyncio.gather(*tasks) == ["0", "1", "2", "3", "4"]


async def test_another_owner_does_not_wait_behind_the_queue_of_one(
    executor: FairExecutor,
) -> None:
    gate = Gate()
    tasks = [submit(executor, "lab", gate, str(number)) for number in range(50)]
    await started(gate, 2)

    tasks.append(submit(executor, "clinic", gate, "other"))
    await started(gate, 3)

    assert gate.started[2] == "other"
    gate.open()
    await asyncio.gather(*tasks)


async def test_work_of_a_cancelled_caller_is_not_started(executor: FairExecutor) -> None:
    gate = Gate()
    tasks = [submit(executor, "lab", gate, str(number)) for number in range(3)]
    await started(gate, 2)
    tasks[2].cancel()
    await asyncio.sleep(0)

    gate.open()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert await executor.run("lab", lambda: "next") == "next"
    assert gate.started == ["0", "1"]
