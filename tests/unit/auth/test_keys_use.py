"""A key that is at hand is used as it is; the first one is made when it is needed."""

from __future__ import annotations

from fhirpub.auth.keys import KeyRing, rotate
from fhirpub.config.settings import AuthConfig
from tests.unit.auth.conftest import HandClock, MemoryAccess

CONFIG = AuthConfig()


async def test_the_first_key_is_as_old_as_its_first_use() -> None:
    clock = HandClock()

    key = await KeyRing(MemoryAccess(), CONFIG, clock=clock).signer()

    assert key.record.created == clock()


async def test_a_key_that_is_at_hand_is_found_without_the_store() -> None:
    access = MemoryAccess()
    keys = KeyRing(access, CONFIG, clock=HandClock())
    key = await keys.signer()
    access.reads.clear()

    assert await keys.find(key.kid) is key
    assert access.reads == []


async def test_what_a_key_signs_verifies_by_it_and_by_no_other() -> None:
    access, clock = MemoryAccess(), HandClock()
    keys = KeyRing(access, CONFIG, clock=clock)
    key = await keys.signer()
    signature = key.signer.sign(b"message")
    new = await keys.find((await rotate(access, CONFIG, clock=clock)).kid)

    assert new is not None
    assert key.verifier.verify(b"message", signature)
    assert not key.verifier.verify(b"another", signature)
    assert not new.verifier.verify(b"message", signature)
