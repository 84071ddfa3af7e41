from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from fhirpub.auth.keys import KeyRing, rotate
from fhirpub.config.settings import AuthConfig
from fhirpub.errors import StoreUnavailable
from tests.unit.auth.conftest import HandClock, MemoryAccess

DAY = 86_400
ES256 = AuthConfig()
RS256 = AuthConfig(algorithm="RS256")


def ring(access: MemoryAccess, clock: HandClock, config: AuthConfig = ES256) -> KeyRing:
    return KeyRing(access, config, clock=clock)


async def test_processes_that_start_at_once_agree_on_one_first_key() -> None:
    access, clock = MemoryAccess(), HandClock()

    keys = await asyncio.gather(*(ring(access, clock).signer() for _ in range(8)))

    assert len({key.kid for key in keys}) == 1
    assert len(await access.signing_keys("sandbox")) == 1


@pytest.mark.parametrize(
    ("config", "members"),
    [(ES256, {"kty", "crv", "x", "y"}), (RS256, {"kty", "n", "e"})],
)
async def test_the_key_set_has_only_public_members(config: AuthConfig, members: set[str]) -> None:
    keys = ring(MemoryAccess(), HandClock(), config)
    key = await keys.signer()

    (published,) = keys.jwks()["keys"]

    assert published.keys() == members | {"use", "alg", "kid"}
    assert (published["use"], published["alg"]) == ("sig", config.algorithm)
    assert published["kid"] == key.kid
    assert re.fullmatch("[A-Za-z0-9_-]{43}", key.kid)
    assert "PRIVATE" not in repr(key)


async def test_the_previous_key_verifies_until_its_last_token_has_expired() -> None:
    access, clock = MemoryAccess(), HandClock()
    keys = ring(access, clock)
    old = await keys.signer()
    await rotate(access, ES256, clock=clock)

    clock.pass_seconds(DAY + 59)
    assert await keys.find(old.kid) is not None
    assert len(keys.jwks()["keys"]) == 2
    clock.pass_seconds(1)
    assert keys.cached_key(old.kid) is None
    assert await keys.find(old.kid) is None
    assert [key["kid"] for key in keys.jwks()["keys"]] == [(await keys.signer()).kid]


async def test_the_previous_key_verifies_the_longer_lived_tokens_of_clients_with_keys() -> None:
    access, clock = MemoryAccess(), HandClock()
    keys = ring(access, clock, AuthConfig(token_seconds=60, assertion_token_seconds=300))
    old = await keys.signer()
    await rotate(access, ES256, clock=clock)

    clock.pass_seconds(300 + 59)
    assert await keys.find(old.kid) is not None
    clock.pass_seconds(1)
    assert await keys.find(old.kid) is None


async def test_a_rotated_key_signs_in_other_processes_within_half_a_minute() -> None:
    access, clock = MemoryAccess(), HandClock()
    keys = ring(access, clock)
    old = await keys.signer()
    new = await rotate(access, ES256, clock=clock)

    clock.pass_seconds(29.999)
    assert (await keys.signer()).kid == old.kid
    clock.pass_seconds(0.001)
    assert (await keys.signer()).kid == new.kid


async def test_a_key_of_another_process_is_found_at_once() -> None:
    access, clock = MemoryAccess(), HandClock()
    keys = ring(access, clock)
    await keys.signer()
    new = await rotate(access, ES256, clock=clock)

    found = await keys.find(new.kid)

    assert found is not None
    assert found.record == new


async def test_made_up_kids_cost_ten_reads_then_one_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])
    access, clock = MemoryAccess(), HandClock()
    keys = ring(access, clock)
    await keys.signer()
    access.reads.clear()

    for number in range(200):
        assert await keys.find("x" * 40 + f"{number:03}") is None

    assert access.reads == ["keys"] * 10
    new = await rotate(access, ES256, clock=clock)
    now[0] += 1.0
    assert await keys.find(new.kid) is not None


async def test_unknown_kids_at_once_share_a_read() -> None:
    access, clock = MemoryAccess(), HandClock()
    keys = ring(access, clock)
    await keys.signer()
    access.reads.clear()
    new = await rotate(access, ES256, clock=clock)

    found = await asyncio.gather(*(keys.find(new.kid) for _ in range(50)))

    assert all(ready_key is not None and ready_key.record == new for ready_key in found)
    assert access.reads.count("keys") <= 3


@pytest.mark.parametrize("kid", ["", "../../etc/passwd", "' or 1=1", "x" * 42, "x" * 10_000])
async def test_a_kid_of_another_shape_is_not_looked_for(kid: str) -> None:
    access = MemoryAccess()
    keys = ring(access, HandClock())
    await keys.signer()
    access.reads.clear()

    assert await keys.find(kid) is None
    assert access.reads == []


async def test_racing_rotations_make_one_key() -> None:
    access, clock = MemoryAccess(), HandClock()
    await ring(access, clock).signer()

    made = await asyncio.gather(*(rotate(access, ES256, clock=clock) for _ in range(8)))

    keys = await access.signing_keys("sandbox")
    assert len(keys) == 2
    assert [key.kid for key in keys if key.retired is None] == [made[0].kid]
    assert {key.kid for key in made} == {made[0].kid}


async def test_a_rotation_without_a_key_makes_the_first_one() -> None:
    access, clock = MemoryAccess(), HandClock()

    made = await rotate(access, RS256, clock=clock)

    assert (await ring(access, clock).signer()).record == made
    assert made.algorithm == "RS256"


async def test_environments_do_not_share_keys() -> None:
    access, clock = MemoryAccess(), HandClock()
    sandbox = await ring(access, clock).signer()

    production = ring(access, clock, replace(ES256, environment="production"))

    assert (await production.signer()).kid != sandbox.kid
    assert await production.find(sandbox.kid) is None


async def test_no_caller_queues_for_a_store_that_is_away() -> None:
    access, clock = MemoryAccess(), HandClock()
    keys = ring(access, clock)
    key = await keys.signer()
    clock.pass_seconds(30)
    access.away = True
    access.reads.clear()

    found = await asyncio.gather(*(keys.find(key.kid) for _ in range(50)), return_exceptions=True)

    assert {type(item) for item in found} == {StoreUnavailable}
    assert access.reads == ["keys"]


async def test_a_clock_that_goes_back_makes_keys_old_not_young() -> None:
    access, clock = MemoryAccess(), HandClock()
    keys = ring(access, clock)
    await keys.signer()
    access.reads.clear()
    clock.pass_seconds(-3600)

    await keys.refresh()

    assert access.reads == ["keys"]


async def damage(access: MemoryAccess, kid: str) -> None:
    (key,) = [item for item in await access.signing_keys("sandbox") if item.kid == kid]
    await access.put_signing_key(replace(key, private_pem=b"-----BEGIN PRIVATE KEY-----\nx"))


async def test_with_a_damaged_key_nothing_is_signed_and_the_error_says_why() -> None:
    access, clock = MemoryAccess(), HandClock()
    new = await rotate(access, ES256, clock=clock)
    await damage(access, new.kid)

    with pytest.raises(StoreUnavailable) as refusal:
        await ring(access, clock).signer()

    assert refusal.value.reason == f"signing key {new.kid} cannot be read: rotate the keys"
    assert [key.kid for key in await access.signing_keys("sandbox")] == [new.kid]


async def test_despite_a_damaged_key_the_one_before_still_verifies() -> None:
    access, clock = MemoryAccess(), HandClock()
    keys = ring(access, clock)
    old = await keys.signer()
    await damage(access, (await rotate(access, ES256, clock=clock)).kid)
    clock.pass_seconds(30)

    assert await keys.find(old.kid) is not None
    assert [key["kid"] for key in keys.jwks()["keys"]] == [old.kid]


async def test_a_damaged_key_is_logged_once() -> None:
    access, clock = MemoryAccess(), HandClock()
    new = await rotate(access, ES256, clock=clock)
    await damage(access, new.kid)
    keys = ring(access, clock)

    with capture_logs() as lines:
        await keys.refresh()
        clock.pass_seconds(30)
        await keys.refresh()

    assert [(line["log_level"], line["kid"]) for line in lines] == [("error", new.kid)]


async def test_after_a_rotation_the_damaged_key_does_no_harm() -> None:
    access, clock = MemoryAccess(), HandClock()
    keys = ring(access, clock)
    await damage(access, (await keys.signer()).kid)
    clock.pass_seconds(30)
    await keys.refresh()

    new = await rotate(access, ES256, clock=clock)
    clock.pass_seconds(30)

    assert (await keys.signer()).kid == new.kid


async def test_a_service_starts_with_a_damaged_key() -> None:
    access, clock = MemoryAccess(), HandClock()
    new = await rotate(access, ES256, clock=clock)
    await damage(access, new.kid)

    assert (await ring(access, clock).signing()).kid == new.kid
