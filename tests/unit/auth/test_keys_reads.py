"""Reads of the signing keys that take a while: what they found, and from when it counts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from fhirpub.auth.keys import KeyRing, make_ready, rotate
from fhirpub.config.settings import AuthConfig
from fhirpub.storage.contract import SigningKey
from tests.unit.auth.conftest import HandClock, MemoryAccess

UNKNOWN = "x" * 43
CONFIG = AuthConfig()


class Slow(MemoryAccess):
    """Returns what was there when it was asked, once it is asked to go on."""

    gate: asyncio.Event | None = None
    seconds = 0
    clock: HandClock

    async def signing_keys(self, environment: str) -> Sequence[SigningKey]:
        found = await super().signing_keys(environment)
        self.clock.pass_seconds(self.seconds)
        if self.gate is not None:
            await self.gate.wait()
        return found


async def a_ring() -> tuple[Slow, KeyRing]:
    access = Slow()
    access.clock = HandClock()
    ring = KeyRing(access, CONFIG, clock=access.clock)
    await ring.signing()
    return access, ring


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_key_that_was_stored_during_a_read_is_looked_for_by_another() -> None:
    access, ring = await a_ring()
    access.gate = asyncio.Event()
    first = asyncio.create_task(ring.find(UNKNOWN))
    await turns()
    new = await super(Slow, access).signing_keys(CONFIG.environment)
    key = await rotated(access, [one.kid for one in new])
    second = asyncio.create_task(ring.find(key.kid))
    await turns()
    access.gate.set()

    found = await second

    assert found is not None
    assert await first is None


async def rotated(access: MemoryAccess, expected: Sequence[str]) -> SigningKey:
    """Store another key that signs from now on."""
    made = await rotate(MemoryAccess(), CONFIG, clock=HandClock())
    assert await access.rotate_signing_key(made, expected=expected)
    return made


async def test_keys_are_as_old_as_the_question_for_them() -> None:
    access, ring = await a_ring()
    access.clock.pass_seconds(30)
    access.seconds = 20
    await ring.refresh()
    access.seconds = 0
    access.reads.clear()
    access.clock.pass_seconds(10)

    await ring.refresh()

    assert access.reads == ["keys"]


async def test_a_retired_key_of_another_environment_is_known_for_the_refusal() -> None:
    access, ring = await a_ring()
    other = AuthConfig(environment="production")
    before = await rotate(access, other, clock=access.clock)
    await rotate(access, other, clock=access.clock)

    found = await ring.find_foreign(before.kid)

    assert found is not None
    assert found.kid == make_ready(before).kid


async def test_looks_that_are_refused_earn_no_more_looks() -> None:
    _access, ring = await a_ring()
    assert all(ring._may_look(100.0) for _ in range(10))

    quarters = [ring._may_look(100 + number / 4) for number in range(41)]

    assert sum(quarters) == 10


async def test_a_key_that_is_gone_from_the_store_verifies_no_more() -> None:
    access, ring = await a_ring()
    gone = (await ring.signing()).kid
    await rotated(access, [gone])
    del access._keys[gone]
    access.clock.pass_seconds(30)

    assert await ring.find(gone) is None
