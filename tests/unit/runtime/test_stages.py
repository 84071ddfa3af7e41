"""Stages of requests that arrived together run side by side; each caller gets its result."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress

import pytest

from fhirpub.runtime.stages import Stages, StageScheduler, collect, run_to_completion


def counting(name: str, trace: list[str], stages: int = 3) -> Stages[str]:
    for number in range(stages):
        trace.append(f"{name}{number}")
        yield
    return f"{name} is done"


def failing(problem: BaseException) -> Stages[str]:
    yield
    raise problem


class Ticks:
    """A clock that goes on by one second each time that it is read."""

    def __init__(self) -> None:
        self.moment = 0.0

    def __call__(self) -> float:
        self.moment += 1.0
        return self.moment


class Sent:
    """A caller's input."""


def refusing(sent: Sent) -> Stages[str]:
    kept = sent
    yield
    raise ValueError(type(kept).__name__)


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def test_a_computation_may_be_completed_at_once() -> None:
    assert run_to_completion(counting("a", [])) == "a is done"


def test_what_a_computation_raises_comes_through_when_it_is_completed() -> None:
    with pytest.raises(ValueError, match="wrong"):
        run_to_completion(failing(ValueError("wrong")))


@pytest.mark.parametrize(
    ("groups", "most", "found", "pauses"),
    [
        ([], 5, [], 0),
        ([[1, 2], [], [3]], 5, [1, 2, 3], 0),
        ([[1, 2], [3, 4]], 3, [1, 2, 3], 0),
        ([[1, 2], [3, 4]], 2, [1, 2], 0),
        ([[*range(9)]], 100, [*range(9)], 1),
        ([[*range(8)]], 100, [*range(8)], 0),
        ([[*range(10)]], 10, [*range(10)], 0),
        ([[*range(25)]], 100, [*range(25)], 2),
        ([[]] * 20, 5, [], 2),
        ([[*range(200)]], 100, [*range(100)], 9),
    ],
)
def test_items_are_collected_with_a_pause_after_ten_steps(
    groups: list[list[int]], most: int, found: list[int], pauses: int
) -> None:
    had = 0

    def counted() -> Stages[list[int]]:
        nonlocal had
        stages = collect(groups, most=most)
        while True:
            try:
                next(stages)
            except StopIteration as end:
                result: list[int] = end.value
                return result
            had += 1
            yield

    assert run_to_completion(counted()) == found
    assert had == pauses


def test_no_more_than_a_hundred_items_are_collected_unless_that_is_asked_for() -> None:
    assert run_to_completion(collect([range(500)])) == [*range(100)]


async def test_what_arrived_together_goes_through_each_stage_together() -> None:
    trace: list[str] = []
    scheduler = StageScheduler()

    await asyncio.gather(*(scheduler.run(counting(name, trace)) for name in "abc"))

    assert trace == ["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"]


async def test_an_owner_with_few_waits_for_no_queue_of_another() -> None:
    trace: list[str] = []
    scheduler = StageScheduler(turn_seconds=1_000.0, clock=Ticks())
    many = [scheduler.run(counting(f"a{n:02}.", trace), owner="lab") for n in range(40)]
    few = [scheduler.run(counting(f"b{n}.", trace), owner="clinic") for n in range(2)]

    await asyncio.gather(*many, *few)

    assert trace[:5] == ["a00.0", "b0.0", "a01.0", "b1.0", "a02.0"]


async def test_an_owner_whose_stages_are_slow_does_not_hold_up_those_of_another() -> None:
    trace: list[str] = []
    clock = Ticks()
    scheduler = StageScheduler(turn_seconds=1_000.0, clock=clock)

    def slow(name: str) -> Stages[None]:
        for number in range(3):
            trace.append(f"{name}{number}")
            clock.moment += 100.0
            yield

    many = [scheduler.run(slow(f"a{n}."), owner="lab") for n in range(8)]
    one = scheduler.run(counting("b", trace), owner="clinic")
    await asyncio.gather(*many, one)

    assert trace[:4] == ["a0.0", "b0", "b1", "b2"]


async def test_an_owner_that_was_idle_comes_next_even_if_the_cohort_is_full() -> None:
    trace: list[str] = []
    scheduler = StageScheduler(turn_seconds=2.0, clock=Ticks())
    many = [scheduler.run(counting(f"a{n:02}.", trace), owner="lab") for n in range(40)]
    while not trace:
        await asyncio.sleep(0)
    begun = len(trace)
    few = [scheduler.run(counting("b", trace), owner="clinic")]
    await asyncio.gather(*many, *few)

    assert "b0" in trace[begun : begun + 2]


async def test_an_owner_gets_no_more_for_having_been_idle() -> None:
    trace: list[str] = []
    scheduler = StageScheduler(turn_seconds=1_000.0, clock=Ticks())
    await asyncio.gather(*(scheduler.run(counting("a", []), owner="lab") for _ in range(9)))

    lab = [scheduler.run(counting(f"a{n}.", trace), owner="lab") for n in range(3)]
    clinic = [scheduler.run(counting(f"b{n}.", trace), owner="clinic") for n in range(3)]
    await asyncio.gather(*lab, *clinic)

    assert [name[0] for name in trace[:6]] == ["a", "b", "a", "b", "a", "b"]


async def test_between_two_turns_the_loop_has_several_iterations_for_others() -> None:
    scheduler = StageScheduler(turn_seconds=0.001)
    trace: list[str] = []

    def slow() -> Stages[None]:
        for _ in range(3):
            time.sleep(0.002)
            trace.append("stage")
            yield

    async def others() -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        trace.append("others")

    running = scheduler.run(slow())
    await asyncio.gather(running, others())

    assert trace[:2] == ["stage", "others"]


async def test_each_caller_gets_its_own_result() -> None:
    scheduler = StageScheduler()
    stages = [counting(name, [], number) for number, name in enumerate("abc")]

    results = await asyncio.gather(*map(scheduler.run, stages))

    assert results == ["a is done", "b is done", "c is done"]


async def test_a_problem_reaches_its_own_caller_alone() -> None:
    scheduler = StageScheduler()
    wrong = ValueError("wrong")

    results = await asyncio.gather(
        *map(scheduler.run, (counting("a", []), failing(wrong), counting("b", []))),
        return_exceptions=True,
    )

    assert results == ["a is done", wrong, "b is done"]


async def test_after_sixteen_the_loop_serves_others_first() -> None:
    trace: list[str] = []
    scheduler = StageScheduler(turn_seconds=60.0)
    running = [scheduler.run(counting(f"{number:02}.", trace)) for number in range(20)]

    asyncio.get_running_loop().call_soon(trace.append, "others")
    await asyncio.gather(*running)

    before, after = trace[: trace.index("others")], trace[trace.index("others") + 1 :]
    assert {name[:2] for name in before} == {f"{number:02}" for number in range(16)}
    assert {name[:2] for name in after} == {"16", "17", "18", "19"}


async def test_while_stages_are_slow_the_loop_serves_others_in_between() -> None:
    trace: list[str] = []
    scheduler = StageScheduler(turn_seconds=0.001)

    def slow(name: str) -> Stages[None]:
        trace.append(name)
        time.sleep(0.002)
        yield

    running = [scheduler.run(slow(name)) for name in "ab"]
    asyncio.get_running_loop().call_soon(trace.append, "others")
    await asyncio.gather(*running)

    assert trace == ["a", "others", "b"]


async def test_a_later_arrival_runs_on_its_own() -> None:
    trace: list[str] = []
    scheduler = StageScheduler()

    await scheduler.run(counting("a", trace))
    await scheduler.run(counting("b", trace))

    assert trace == ["a0", "a1", "a2", "b0", "b1", "b2"]


async def test_what_a_refused_caller_sent_is_released_at_once(
    without_collector: None,
) -> None:
    sent = Sent()
    gone = weakref.ref(sent)

    with suppress(ValueError):
        await StageScheduler().run(refusing(sent))
    del sent
    await asyncio.sleep(0)  # the event loop holds the outcome until then

    assert gone() is None


async def test_what_is_no_exception_reaches_its_own_caller_alone() -> None:
    scheduler = StageScheduler()

    results = await asyncio.gather(
        *map(scheduler.run, (failing(GeneratorExit()), counting("b", []))),
        return_exceptions=True,
    )

    assert [type(result) for result in results] == [GeneratorExit, str]


@pytest.mark.parametrize("stages", [counting("a", []), failing(ValueError("wrong"))])
async def test_a_caller_that_goes_away_leaves_the_others_alone(stages: Stages[str]) -> None:
    scheduler = StageScheduler()
    gone, other = scheduler.run(stages), scheduler.run(counting("b", []))

    gone.cancel()

    assert await other == "b is done"
