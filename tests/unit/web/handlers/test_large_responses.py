"""Large answers wait for memory, and read what they answer again when they have it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from fhirpub.errors import Busy
from fhirpub.testing.service import Integrator
from fhirpub.web.admission.memory_budget import MemoryBudget
from fhirpub.web.handlers.large_responses import with_memory_budget
from fhirpub.web.handlers.placement import LARGE
from tests.unit.web.handlers.asking import REPORTS, Asked, asked, running
from tests.waiting import until


class Look:
    """Reads a number of bytes, and counts how often."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.count = 0

    async def __call__(self) -> int:
        self.count += 1
        return self.size


@dataclass(frozen=True, slots=True)
class Reading:
    """A large answer that is read within a budget, which another request may use up."""

    one: Asked
    other: Asked
    memory: MemoryBudget
    look: Look
    task: asyncio.Task[int]

    async def waits(self) -> None:
        """Return once the answer waits for memory."""
        await until(lambda: self.one.request in self.memory._queue)


def on_reading(
    lab: Integrator,
    size: int,
    use: Callable[[Reading], Awaitable[Any]],
    *,
    full: bool = True,
    patience: float = 5,
) -> Any:
    """Return what is made of the reading of a number of bytes."""
    memory = MemoryBudget(100_000, patience_seconds=patience)
    services = replace(running(lab).services, response_memory=memory)
    look = Look(size)

    async def used() -> Any:
        async with (
            asked(lab, "GET", REPORTS, services=services) as other,
            asked(lab, "GET", REPORTS, services=services) as one,
        ):
            if full:
                memory.acquire(other.request, 100_000, owner="other")
            reading = asyncio.ensure_future(with_memory_budget(one.handler, look, lambda n: n))
            return await use(Reading(one, other, memory, look, reading))

    return running(lab).call(used())


@pytest.mark.parametrize(
    ("size", "held"), [(0, None), (LARGE, None), (LARGE + 1, (LARGE + 1, True))]
)
def test_a_large_answer_holds_memory_of_its_tenant(
    lab: Integrator, size: int, held: tuple[int, bool] | None
) -> None:
    async def use(reading: Reading) -> tuple[int, Any]:
        await reading.task
        found = reading.memory._held.get(reading.one.request)
        return reading.look.count, found and (found.size, found.owner == lab.tenant.id)

    assert on_reading(lab, size, use, full=False) == (1, held)


def test_an_answer_that_gets_no_memory_is_busy(lab: Integrator) -> None:
    async def use(reading: Reading) -> int:
        with pytest.raises(Busy):
            await reading.task
        return reading.look.count

    assert on_reading(lab, 90_000, use, patience=0.05) == 1


def test_an_answer_that_waited_is_read_again(lab: Integrator) -> None:
    async def use(reading: Reading) -> list[Any]:
        await reading.waits()
        waiting = [reading.task.done(), reading.look.count]
        reading.memory.release(reading.other.request)
        found = await reading.task
        return [*waiting, found, reading.look.count, reading.one.request in reading.memory]

    assert on_reading(lab, 90_000, use) == [False, 1, 90_000, 2, True]


def test_one_that_holds_memory_does_not_reserve_it_again(lab: Integrator) -> None:
    async def found() -> int:
        async with asked(lab, "GET", REPORTS) as one:
            memory = one.handler.services.response_memory
            memory.acquire(one.request, 10, owner=lab.tenant.id)
            await with_memory_budget(one.handler, Look(90_000), lambda n: n)
            size = memory._held[one.request].size
            memory.release(one.request)
            return size

    assert running(lab).call(found()) == 10


def test_an_answer_for_a_client_that_has_left_is_cancelled(lab: Integrator) -> None:
    async def use(reading: Reading) -> tuple[bool, bool, bool, int]:
        await reading.waits()
        reading.one.exchange.stream.close()
        await asyncio.wait([reading.task])
        handler = reading.one.handler
        in_flight = handler in handler.services.in_flight
        ended = reading.one.exchange._ended.done()
        return reading.task.cancelled(), in_flight, ended, reading.look.count

    assert on_reading(lab, 90_000, use) == (True, False, True, 1)
