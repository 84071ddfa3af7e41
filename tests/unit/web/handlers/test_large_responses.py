"""Large answers wait for memory, and read what they answer again when they have it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import Busy
from fhirpub.testing.service import Integrator
from fhirpub.web.admission.memory_budget import MemoryBudget
from fhirpub.web.handlers.large_responses import with_memory_budget
from fhirpub.web.handlers.placement import LARGE
from tests.unit.web.handlers.asking import REPORTS, asked, running


class Look:
    """Reads a number of bytes, and counts how often."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.count = 0

    async def __call__(self) -> int:
        self.count += 1
        return self.size


def read(lab: Integrator, size: int, *, full: bool = False, leave: bool = False) -> list[Any]:
    """Return what is read, how often, and what is held then; or that there is no memory."""
    memory = MemoryBudget(100_000, patience_seconds=0.05)
    services = replace(running(lab).services, response_memory=memory)
    look = Look(size)

    async def found() -> list[Any]:
        async with (
            asked(lab, "GET", REPORTS, services=services) as other,
            asked(lab, "GET", REPORTS, services=services) as one,
        ):
            if full:
                memory.acquire(other.request, 100_000, owner="other")
            reading = asyncio.ensure_future(with_memory_budget(one.handler, look, lambda n: n))
            await asyncio.sleep(0.001)
            if leave:
                one.exchange.stream.close()
            await asyncio.wait([reading])
            if reading.cancelled():
                return ["cancelled", one.handler in services.in_flight, look.count]
            if reading.exception() is not None:
                return [type(reading.exception()), look.count]
            held = memory._held.get(one.request)
            return [look.count, held and (held.size, held.owner == lab.tenant.id)]

    return running(lab).call(found())


@pytest.mark.parametrize(
    ("size", "held"), [(0, None), (LARGE, None), (LARGE + 1, (LARGE + 1, True))]
)
def test_a_large_answer_holds_memory_of_its_tenant(
    lab: Integrator, size: int, held: tuple[int, bool] | None
) -> None:
    assert read(lab, size) == [1, held]


def test_an_answer_that_gets_no_memory_is_busy(lab: Integrator) -> None:
    assert read(lab, 90_000, full=True) == [Busy, 1]


def test_an_answer_that_waited_is_read_again(lab: Integrator) -> None:
    memory = MemoryBudget(100_000, patience_seconds=5)
    services = replace(running(lab).services, response_memory=memory)
    look = Look(90_000)

    async def found() -> list[Any]:
        async with (
            asked(lab, "GET", REPORTS, services=services) as other,
            asked(lab, "GET", REPORTS, services=services) as one,
        ):
            memory.acquire(other.request, 100_000, owner="other")
            reading = asyncio.ensure_future(with_memory_budget(one.handler, look, lambda n: n))
            await asyncio.sleep(0.001)
            waiting = [reading.done(), look.count]
            memory.release(other.request)
            return [*waiting, await reading, look.count, one.request in memory]

    assert running(lab).call(found()) == [False, 1, 90_000, 2, True]


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
    assert read(lab, 90_000, full=True, leave=True) == ["cancelled", False, 1]
