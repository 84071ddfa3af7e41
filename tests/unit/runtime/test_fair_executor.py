"""Large computations share threads fairly."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator

import pytest

from fhirpub.errors import Throttled
from fhirpub.runtime.fair_executor import FairExecutor
from tests.waiting import until


class Gate:
    """Work that starts, and ends when the test says so."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self._open = threading.Event()

    def work(self, name: str) -> str:
        self.started.append(name)
        assert self._open.wait(60)
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
    await until(lambda: len(gate.started) >= number)


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

    assert sorted(gate.started) == ["0", "1"]
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
    assert sorted(gate.started) == ["0", "1"]


async def test_an_owner_waits_for_its_own_threads_as_long_as_it_is_given(
    executor: FairExecutor,
) -> None:
    gate = Gate()
    tasks = [submit(executor, "lab", gate, str(number)) for number in range(2)]
    await started(gate, 2)

    with pytest.raises(Throttled):
        await executor.run("lab", lambda: "late", max_wait_seconds=0.001)

    gate.open()
    assert await asyncio.gather(*tasks) == ["0", "1"]


async def test_a_drain_ends_with_the_last_of_what_was_handed_in(executor: FairExecutor) -> None:
    gate = Gate()
    tasks = [submit(executor, "lab", gate, str(number)) for number in range(4)]
    await started(gate, 2)
    draining = asyncio.create_task(executor.drain())
    await asyncio.sleep(0)
    assert not draining.done()

    gate.open()
    await asyncio.wait_for(draining, 30)

    assert await asyncio.gather(*tasks) == ["0", "1", "2", "3"]


async def test_what_is_closed_takes_no_work_and_does_not_wait_for_what_it_has(
    executor: FairExecutor,
) -> None:
    gate = Gate()
    task = submit(executor, "lab", gate, "last")
    await started(gate, 1)

    executor.close()

    with pytest.raises(RuntimeError):
        await executor.run("lab", lambda: 7)
    gate.open()
    assert await task == "last"


async def test_work_whose_caller_goes_away_keeps_its_turn_until_it_ends(
    executor: FairExecutor,
) -> None:
    gate = Gate()
    tasks = [submit(executor, "lab", gate, str(number)) for number in range(2)]
    await started(gate, 2)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    draining = asyncio.create_task(executor.drain())
    with pytest.raises(Throttled):
        await executor.run("lab", lambda: "late", max_wait_seconds=0.05)
    assert not draining.done()

    gate.open()
    await asyncio.wait_for(draining, 30)


async def test_work_that_no_thread_can_be_started_for_takes_no_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    executor = FairExecutor(max_threads=1, per_owner=1)

    def refuse() -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(executor._threads, "_adjust_thread_count", refuse)
        with pytest.raises(RuntimeError, match="thread"):
            await executor.run("lab", lambda: 7)

    assert await asyncio.wait_for(executor.run("lab", lambda: 8), 30) == 8
    await asyncio.wait_for(executor.drain(), 30)
    executor.close()
