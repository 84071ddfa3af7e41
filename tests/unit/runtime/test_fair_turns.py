"""Turns are shared fairly."""

from __future__ import annotations

import asyncio

import pytest

from fhirpub.errors import Throttled
from fhirpub.runtime.fair_turns import FairTurns


@pytest.fixture
def turns() -> FairTurns:
    return FairTurns(max_turns=3, per_owner=2)


def wait_for(turns: FairTurns, owner: str, given: list[str]) -> asyncio.Task[None]:
    async def take() -> None:
        await turns.take(owner)
        given.append(owner)

    return asyncio.create_task(take())


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_turn_that_is_free_is_taken_at_once(turns: FairTurns) -> None:
    taking = turns.take("lab")

    with pytest.raises(StopIteration):  # it ends without waiting
        taking.send(None)


async def test_an_owner_has_no_more_turns_than_its_share(turns: FairTurns) -> None:
    given: list[str] = []
    tasks = [wait_for(turns, "lab", given) for _ in range(5)]
    await settle()

    assert len(given) == 2
    for number in range(3, 6):
        turns.release("lab")
        await settle()
        assert len(given) == number
    await asyncio.gather(*tasks)


async def test_the_owner_with_the_fewest_turns_is_next(turns: FairTurns) -> None:
    given: list[str] = []
    tasks = [wait_for(turns, owner, given) for owner in ("lab", "lab", "clinic")]
    await settle()
    tasks += [wait_for(turns, owner, given) for owner in ("clinic", "clinic", "surgery")]
    await settle()

    turns.release("lab")
    await settle()
    assert given == ["lab", "lab", "clinic", "surgery"]
    turns.release("lab")
    await settle()
    assert given[4:] == ["clinic"]
    turns.release("surgery")
    await settle()
    assert given[5:] == []  # the clinic has its share
    turns.release("clinic")
    await asyncio.gather(*tasks)


async def test_an_owner_that_waits_for_its_own_turns_is_throttled(turns: FairTurns) -> None:
    await turns.take("lab")
    await turns.take("lab")

    with pytest.raises(Throttled):
        await turns.take("lab", seconds=0.01)
    await turns.take("clinic", seconds=0.01)
    with pytest.raises(TimeoutError):  # it has fewer than it may have
        await turns.take("clinic", seconds=0.01)


async def test_turns_of_cancelled_callers_are_given_to_others(turns: FairTurns) -> None:
    given: list[str] = []
    tasks = [wait_for(turns, "lab", given) for _ in range(4)]
    await settle()

    tasks[2].cancel()
    await settle()
    turns.release("lab")
    tasks[3].cancel()  # at the moment when it is given one
    await asyncio.gather(*tasks, return_exceptions=True)

    async with asyncio.timeout(20), turns.turn("lab"):
        assert len(given) == 2


async def test_a_turn_that_becomes_free_passes_over_all_callers_that_have_gone(
    turns: FairTurns,
) -> None:
    given: list[str] = []
    tasks = [wait_for(turns, "lab", given) for _ in range(5)]
    await settle()
    for task in tasks[2:4]:
        task.cancel()
    await settle()

    turns.release("lab")

    await asyncio.wait_for(tasks[4], 30)
    assert len(given) == 3


async def test_all_turns_are_awaited_at_the_end(turns: FairTurns) -> None:
    await turns.take("lab")
    draining = asyncio.create_task(turns.drain())
    await asyncio.sleep(0.05)

    assert not draining.done()
    turns.release("lab")
    async with asyncio.timeout(20):
        await draining


async def test_a_block_holds_a_turn_until_it_ends_or_fails(turns: FairTurns) -> None:
    given: list[str] = []
    tasks: list[asyncio.Task[None]] = []

    async def hold() -> None:
        async with turns.turn("lab"), turns.turn("lab"):
            tasks.append(wait_for(turns, "lab", given))
            await settle()
            assert given == []
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await hold()

    await asyncio.wait_for(tasks[0], 30)
    assert given == ["lab"]


async def test_a_block_waits_for_its_turn_as_long_as_it_is_given(turns: FairTurns) -> None:
    async with turns.turn("lab"), turns.turn("lab"):
        with pytest.raises(Throttled):
            async with turns.turn("lab", seconds=0.001):
                pass
