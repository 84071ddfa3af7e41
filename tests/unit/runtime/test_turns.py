"""Work on many records leaves the event loop to others in between."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

import pytest

from fhirpub.runtime import turns
from fhirpub.runtime.turns import in_turns


async def test_each_item_is_made_in_its_order() -> None:
    assert await in_turns(str, range(250)) == [*map(str, range(250))]


async def test_others_go_on_after_every_hundred() -> None:
    made: list[int] = []
    seen: list[int] = []

    async def look() -> None:
        while len(made) < 1_000:
            seen.append(len(made))
            await asyncio.sleep(0)

    looking = asyncio.create_task(look())
    await in_turns(made.append, range(1_000))
    await looking

    assert {*range(100, 1_000, 100)} <= {*seen}


async def test_others_go_on_after_a_few_milliseconds() -> None:
    made: list[int] = []
    seen: list[int] = []

    def make_slowly(number: int) -> None:
        until = time.monotonic() + 0.005
        while time.monotonic() < until:
            pass
        made.append(number)

    async def look() -> None:
        while len(made) < 5:
            seen.append(len(made))
            await asyncio.sleep(0)

    looking = asyncio.create_task(look())
    await in_turns(make_slowly, range(5))
    await looking

    assert seen == [1, 2, 3, 4]


async def test_a_turn_begins_anew_after_others_had_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds, seen = [0.0], list[int]()
    monkeypatch.setattr(turns, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    made: list[int] = []

    def make(number: int) -> None:
        seconds[0] += 0.003
        made.append(number)

    async def look() -> None:
        while len(made) < 7:
            seen.append(len(made))
            await asyncio.sleep(0)

    looking = asyncio.create_task(look())
    await in_turns(make, range(7))
    await looking

    assert seen == [2, 4, 6]
