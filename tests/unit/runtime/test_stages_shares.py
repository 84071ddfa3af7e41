"""What an owner gets of the loop after it was idle, and how many computations are begun."""

from __future__ import annotations

import asyncio

from fhirpub.runtime.stages import Stages, StageScheduler
from tests.unit.runtime.test_stages import Ticks, counting


async def test_an_owner_that_comes_late_gets_no_more_for_having_come_late() -> None:
    trace: list[str] = []
    scheduler = StageScheduler(turn_seconds=3.0, clock=Ticks())
    lab = scheduler.run(counting("a", trace, 80), owner="lab")
    while len(trace) < 30:
        await asyncio.sleep(0)
    begun = len(trace)

    clinic = scheduler.run(counting("b", trace, 20), owner="clinic")
    await asyncio.gather(lab, clinic)

    assert [name[0] for name in trace[begun : begun + 20]].count("a") >= 9


async def test_an_owner_that_has_had_more_waits_although_it_was_idle_in_between() -> None:
    trace: list[str] = []
    clock = Ticks()
    scheduler = StageScheduler(turn_seconds=3.0, clock=clock)

    def slow() -> Stages[None]:
        clock.moment += 50.0
        yield from ()

    clinic = scheduler.run(counting("b", trace, 80), owner="clinic")
    await scheduler.run(slow(), owner="lab")
    begun = len(trace)
    lab = scheduler.run(counting("a", trace, 3), owner="lab")
    await asyncio.gather(lab, clinic)

    after = [name[0] for name in trace[begun:]]
    assert after.index("a") > 30


async def test_owners_share_the_time_and_not_the_number_of_stages() -> None:
    trace: list[str] = []
    clock = Ticks()
    scheduler = StageScheduler(turn_seconds=1_000.0, clock=clock)

    def slow() -> Stages[None]:
        for _ in range(30):
            trace.append("a")
            clock.moment += 4.0
            yield

    lab = scheduler.run(slow(), owner="lab")
    clinic = scheduler.run(counting("b", trace, 120), owner="clinic")
    await asyncio.gather(lab, clinic)

    counts = [name[0] for name in trace[:90]].count("a")
    assert 13 <= counts <= 17


async def test_no_more_than_sixteen_are_begun_at_a_time() -> None:
    active, most = 0, 0
    scheduler = StageScheduler(turn_seconds=3.0, clock=Ticks())

    def noted() -> Stages[None]:
        nonlocal active, most
        active += 1
        most = max(most, active)
        for _ in range(4):
            yield
        active -= 1

    await asyncio.gather(*(scheduler.run(noted(), owner="lab") for _ in range(60)))

    assert most == 16
