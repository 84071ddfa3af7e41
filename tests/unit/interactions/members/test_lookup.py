"""Many members looked up, in their order, some together."""

from __future__ import annotations

import asyncio

import pytest

from fhirpub.interactions.members import lookup
from fhirpub.interactions.members.lookup import look_up_all
from fhirpub.storage.contract import Version
from fhirpub.testing.samples import a_version

KNOWN = {str(number): a_version(id=str(number)) for number in range(0, 10, 2)}


async def look_up(id_: str) -> Version | None:
    return KNOWN.get(id_)


async def test_what_is_found_comes_in_the_order_of_the_ids() -> None:
    found = await look_up_all(look_up, ["4", "1", "0", "8", "x"])

    assert [one.id for one in found] == ["4", "0", "8"]


@pytest.mark.parametrize("together", [1, 2, 3, 5, 50])
async def test_all_are_looked_up(monkeypatch: pytest.MonkeyPatch, together: int) -> None:
    monkeypatch.setattr(lookup, "_TOGETHER", together)
    ids = [str(number) for number in range(10)]

    assert [one.id for one in await look_up_all(look_up, ids)] == [*KNOWN]
    assert await look_up_all(look_up, []) == []


async def test_only_so_many_are_looked_up_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "_TOGETHER", 3)
    under_way = most = 0

    async def slow(id_: str) -> Version | None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return KNOWN.get(id_)

    await look_up_all(slow, [str(number) for number in range(10)])

    assert most == 3
