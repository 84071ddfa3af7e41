"""Turns of the event loop, of which each tenant has few in one iteration."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

import pytest

from fhirpub.web.admission.loop_turns import LoopTurns


class Requests:
    """Requests of several tenants, and those that have begun."""

    def __init__(self, *, per_owner: int) -> None:
        self.turns = LoopTurns(per_owner=per_owner)
        self.begun: list[str] = []

    def arrive(self, *names: str) -> None:
        """Let requests arrive; the first letter of a name is that of its tenant."""
        for name in names:
            self.turns.begin(name[0], self._beginning(name))

    def _beginning(self, name: str) -> Callable[[], None]:
        return lambda: self.begun.append(name)


@pytest.fixture
async def requests() -> Requests:
    """Return requests of which each tenant has two turns, while several are active."""
    return Requests(per_owner=2)


async def test_an_owner_begins_few_requests_in_one_iteration(requests: Requests) -> None:
    requests.arrive("a1", "a2", "a3", "a4")

    assert requests.begun == ["a1", "a2"]


async def test_another_owner_begins_at_once(requests: Requests) -> None:
    requests.arrive("a1", "a2", "a3", "b1")

    assert requests.begun == ["a1", "a2", "b1"]


async def test_what_waits_begins_in_its_order_few_in_each_iteration(requests: Requests) -> None:
    requests.arrive(*(f"a{number}" for number in range(7)))

    seen = []
    for _iteration in range(5):
        await asyncio.sleep(0)
        seen.append(len(requests.begun))

    assert requests.begun == [f"a{number}" for number in range(7)]
    assert max(after - before for before, after in itertools.pairwise(seen)) <= 2


async def test_a_new_request_does_not_overtake_those_that_wait(requests: Requests) -> None:
    requests.arrive("a1", "a2", "a3", "a4", "a5")
    await asyncio.sleep(0)
    requests.arrive("a6")

    for _iteration in range(5):
        await asyncio.sleep(0)

    assert requests.begun == ["a1", "a2", "a3", "a4", "a5", "a6"]


async def test_in_the_next_iteration_an_owner_begins_at_once_again(requests: Requests) -> None:
    requests.arrive("a1", "a2")
    await asyncio.sleep(0)

    requests.arrive("a3")

    assert requests.begun == ["a1", "a2", "a3"]


async def test_an_owner_whose_requests_have_waited_begins_at_once_again(
    requests: Requests,
) -> None:
    requests.arrive("b1", "a1", "a2", "a3")
    for _iteration in range(9):
        await asyncio.sleep(0)

    requests.arrive("a4")

    assert requests.begun == ["b1", "a1", "a2", "a3", "a4"]


async def test_an_owner_that_was_alone_for_a_while_needs_no_turns(
    requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests.arrive("b1", "a1")
    loop = asyncio.get_running_loop()
    later = loop.time() + 2
    monkeypatch.setattr(loop, "time", lambda: later)

    requests.arrive("a2", "a3", "a4", "a5")

    assert requests.begun == ["b1", "a1", "a2", "a3", "a4", "a5"]


async def test_what_has_waited_goes_on_in_turns_as_well(requests: Requests) -> None:
    async def go_on(name: str) -> None:
        await requests.turns.turn(name[0])
        requests.begun.append(name)

    requests.arrive("b1")
    going = [asyncio.ensure_future(go_on(f"a{number}")) for number in range(6)]
    seen = []
    while len(requests.begun) < 7:
        await asyncio.sleep(0)
        seen.append(len(requests.begun))

    assert max(after - before for before, after in itertools.pairwise(seen)) <= 2
    await asyncio.gather(*going)


async def test_a_turn_that_is_no_longer_wanted_ends_no_other(requests: Requests) -> None:
    problems: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, one: problems.append(one))
    requests.arrive("b1")
    going = [asyncio.ensure_future(requests.turns.turn("a")) for _number in range(6)]
    await asyncio.sleep(0)
    going[4].cancel()

    ended = await asyncio.gather(*going, return_exceptions=True)

    assert [type(one) for one in ended].count(asyncio.CancelledError) == 1
    assert ended.count(None) == 5
    assert problems == []


async def test_a_request_without_an_owner_begins_at_once(requests: Requests) -> None:
    requests.arrive("a1", "a2", "a3")

    begun: list[str] = []
    for _number in range(5):
        requests.turns.begin("", lambda: begun.append("health"))

    assert begun == ["health"] * 5
