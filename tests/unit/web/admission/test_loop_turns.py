"""Turns of the event loop, of which each tenant has few in one iteration."""

from __future__ import annotations

import asyncio

from fhirpub.web.admission.loop_turns import LoopTurns


async def test_an_owner_begins_few_requests_in_one_iteration() -> None:
    turns = LoopTurns(per_owner=2)

    assert [turns.take("a") is None for _ in range(4)] == [True, True, False, False]


async def test_another_owner_begins_at_once() -> None:
    turns = LoopTurns(per_owner=2)
    waiting = [turns.take("a") for _ in range(9)]

    assert turns.take("b") is None
    assert any(waiting)


async def test_what_waits_begins_in_its_order_few_in_each_iteration() -> None:
    turns = LoopTurns(per_owner=2)
    waiting = [turns.take("a") for _ in range(7)][2:]

    done = []
    for _iteration in range(3):
        await asyncio.sleep(0)
        done.append([turn is not None and turn.done() for turn in waiting])

    assert done == [
        [True, True, False, False, False],
        [True, True, True, True, False],
        [True] * 5,
    ]


async def test_a_new_request_does_not_overtake_those_that_wait() -> None:
    turns = LoopTurns(per_owner=1)
    for _number in range(3):
        turns.take("a")
    await asyncio.sleep(0)

    assert turns.take("a") is not None


async def test_in_the_next_iteration_an_owner_begins_at_once_again() -> None:
    turns = LoopTurns(per_owner=1)
    turns.take("a")

    await asyncio.sleep(0)

    assert turns.take("a") is None


async def test_a_request_that_was_cancelled_takes_no_turn() -> None:
    turns = LoopTurns(per_owner=1)
    turns.take("a")
    first, second = turns.take("a"), turns.take("a")
    assert first is not None
    assert second is not None
    first.cancel()

    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert second.done()
