"""What is stored of a key and published, and which key signs or verifies at a moment."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from joserfc.jwk import ECKey, RSAKey
from structlog.testing import capture_logs

from fhirpub.auth.keys import KeyRing, make_ready, rotate
from fhirpub.config.settings import AuthConfig
from fhirpub.errors import SecretsUnavailable, StoreUnavailable
from fhirpub.sealed import MARK
from fhirpub.storage.contract import SigningKey
from tests.unit.auth.conftest import HandClock, MemoryAccess

DAY = 86_400
ES256 = AuthConfig()
RS256 = AuthConfig(algorithm="RS256")
PRODUCTION = AuthConfig(environment="production")
UNKNOWN = "x" * 43
SEALED = "its private key cannot be decrypted: run `fhirpub check`"


class Refusing(MemoryAccess):
    """A store that is away with a reason and a time to come back."""

    async def signing_keys(self, environment: str) -> list[SigningKey]:
        self.reads.append("keys")
        await asyncio.sleep(0)
        raise StoreUnavailable("electing", retry_after=7)


def ring(access: MemoryAccess, clock: HandClock, config: AuthConfig = ES256) -> KeyRing:
    return KeyRing(access, config, clock=clock)


def without_private_key(key: SigningKey) -> SigningKey:
    return replace(key, private_pem=MARK + b"x")


async def test_a_key_is_stored_with_its_time_its_algorithm_and_its_environment() -> None:
    access, clock = MemoryAccess(), HandClock()

    made = await rotate(access, replace(RS256, environment="production"), clock=clock)

    assert (made.created, made.retired) == (clock(), None)
    assert (made.algorithm, made.environment) == ("RS256", "production")
    assert await access.signing_keys("production") == [made]


async def test_a_key_is_named_by_the_thumbprint_of_rfc_7638() -> None:
    elliptic = await rotate(MemoryAccess(), ES256, clock=HandClock())
    with_modulus = await rotate(MemoryAccess(), RS256, clock=HandClock())

    assert elliptic.kid == ECKey.import_key(elliptic.private_pem).thumbprint()
    assert with_modulus.kid == RSAKey.import_key(with_modulus.private_pem).thumbprint()


async def test_an_rsa_key_has_2048_bits_and_the_usual_exponent() -> None:
    made = await rotate(MemoryAccess(), RS256, clock=HandClock())

    key = load_pem_private_key(made.private_pem, None)
    assert isinstance(key, rsa.RSAPrivateKey)
    assert (key.key_size, key.public_key().public_numbers().e) == (2048, 65_537)


async def test_a_rotation_retires_the_key_before_from_now_on() -> None:
    access, clock = MemoryAccess(), HandClock()
    old = await rotate(access, ES256, clock=clock)
    clock.pass_seconds(5)

    new = await rotate(access, ES256, clock=clock)

    kept = {key.kid: key for key in await access.signing_keys("sandbox")}
    assert kept == {old.kid: replace(old, retired=clock()), new.kid: new}


async def test_a_second_rotation_replaces_the_key_that_signs_and_no_retired_one() -> None:
    access, clock = MemoryAccess(), HandClock()
    retired = []
    for _ in range(3):
        retired.append(clock())
        await rotate(access, ES256, clock=clock)
        clock.pass_seconds(5)

    assert [key.retired for key in await access.signing_keys("sandbox")] == [*retired[1:], None]


async def test_the_published_keys_begin_with_the_newest() -> None:
    access, clock = MemoryAccess(), HandClock()
    kids = []
    for _ in range(3):
        kids.append((await rotate(access, ES256, clock=clock)).kid)
        clock.pass_seconds(1)
    keys = ring(access, clock)
    await keys.refresh()

    assert [key["kid"] for key in keys.jwks()["keys"]] == kids[::-1]


@pytest.mark.parametrize("order", [1, -1])
async def test_of_two_keys_that_are_not_retired_the_newer_signs(order: int) -> None:
    access, clock = MemoryAccess(), HandClock()
    made = [await rotate(MemoryAccess(), ES256, clock=clock)]
    clock.pass_seconds(1)
    made.append(await rotate(MemoryAccess(), ES256, clock=clock))
    for key in made[::order]:
        await access.put_signing_key(key)

    assert (await ring(access, clock).signing()) == made[1]


@pytest.mark.parametrize("order", [1, -1])
async def test_of_two_keys_of_one_moment_all_processes_choose_the_same(order: int) -> None:
    access, clock = MemoryAccess(), HandClock()
    made = [await rotate(MemoryAccess(), ES256, clock=clock) for _ in range(2)]
    for key in made[::order]:
        await access.put_signing_key(key)

    assert (await ring(access, clock).signing()) == max(made, key=lambda key: key.kid)


async def test_a_retired_key_signs_nothing_even_if_it_is_the_newest() -> None:
    access, clock = MemoryAccess(), HandClock()
    old = await rotate(access, ES256, clock=clock)
    clock.pass_seconds(1)
    newer = await rotate(MemoryAccess(), ES256, clock=clock)
    await access.put_signing_key(replace(newer, retired=clock()))

    assert (await ring(access, clock).signing()) == old


async def test_a_retired_key_verifies_for_the_leeway_longer() -> None:
    access, clock = MemoryAccess(), HandClock()
    keys = ring(access, clock, replace(ES256, leeway_seconds=30))
    old = await keys.signer()
    await rotate(access, ES256, clock=clock)

    clock.pass_seconds(DAY + 30 + 60 - 0.001)
    assert await keys.find(old.kid) is not None
    clock.pass_seconds(0.001)
    assert await keys.find(old.kid) is None


async def test_a_key_that_verifies_no_more_is_not_made_ready() -> None:
    access, clock = MemoryAccess(), HandClock()
    old = await rotate(access, ES256, clock=clock)
    await rotate(access, ES256, clock=clock)
    damaged = replace(old, private_pem=b"x", retired=clock() - (DAY + 60) * 1000)
    await access.put_signing_key(damaged)

    with capture_logs() as lines:
        await ring(access, clock).refresh()

    assert lines == []


async def test_keys_are_read_again_at_half_a_minute_and_no_sooner() -> None:
    access, clock = MemoryAccess(), HandClock()
    keys = ring(access, clock)
    await keys.signer()
    access.reads.clear()

    await keys.refresh()
    clock.pass_seconds(29.999)
    await keys.refresh()
    assert access.reads == []
    clock.pass_seconds(0.001)
    await keys.refresh()
    assert access.reads == ["keys"]


async def test_a_key_that_did_not_change_is_not_made_ready_again() -> None:
    access, clock = MemoryAccess(), HandClock()
    keys = ring(access, clock)
    before = await keys.signer()
    clock.pass_seconds(30)

    assert await keys.signer() is before


async def test_a_key_that_changed_in_the_store_is_read_again() -> None:
    access, clock = MemoryAccess(), HandClock()
    keys = ring(access, clock)
    kid = (await keys.signer()).kid
    (record,) = await access.signing_keys("sandbox")
    await access.put_signing_key(replace(record, retired=clock()))
    clock.pass_seconds(30)

    found = await keys.find(kid)

    assert found is not None
    assert found.record.retired == clock() - 30_000


async def test_no_key_is_at_hand_before_the_first_read() -> None:
    access, clock = MemoryAccess(), HandClock()
    made = await rotate(access, ES256, clock=clock)
    keys = ring(access, clock)

    assert keys.cached_key(made.kid) is None
    assert keys.jwks() == {"keys": []}
    assert await keys.find(made.kid) is not None


async def test_callers_at_once_get_the_reason_of_the_one_that_asked_the_store() -> None:
    access = Refusing()
    keys = ring(access, HandClock())

    found = await asyncio.gather(*(keys.refresh() for _ in range(5)), return_exceptions=True)

    assert access.reads == ["keys"]
    assert {
        (one.reason, one.retry_after) for one in found if isinstance(one, StoreUnavailable)
    } == {("electing", 7)}
    assert len(found) == 5


async def test_after_a_failed_read_the_next_caller_asks_the_store_again() -> None:
    access, clock = MemoryAccess(), HandClock()
    await rotate(access, ES256, clock=clock)
    keys = ring(access, clock)
    access.away = True
    with pytest.raises(StoreUnavailable, match="not available"):
        await keys.refresh()
    access.away = False

    assert (await keys.signer()).record == (await access.signing_keys("sandbox"))[0]


async def test_a_key_that_cannot_be_decrypted_is_no_ready_key() -> None:
    made = await rotate(MemoryAccess(), ES256, clock=HandClock())

    with pytest.raises(SecretsUnavailable) as refused:
        make_ready(without_private_key(made))

    assert refused.value.reason == SEALED


async def test_the_log_names_why_a_key_cannot_be_read() -> None:
    access, clock = MemoryAccess(), HandClock()
    made = await rotate(access, ES256, clock=clock)
    await access.put_signing_key(without_private_key(made))

    with capture_logs() as lines:
        await ring(access, clock).refresh()

    (line,) = lines
    assert line["event"] == "signing key cannot be read; `fhirpub keys rotate` makes another"
    assert (line["kid"], line["reason"]) == (made.kid, SEALED)
    assert line["error"] == "SecretsUnavailable"


async def test_the_log_names_no_text_of_an_unexpected_fault() -> None:
    access, clock = MemoryAccess(), HandClock()
    made = await rotate(access, ES256, clock=clock)
    await access.put_signing_key(replace(made, private_pem=b"-----BEGIN PRIVATE KEY-----\nx"))

    with capture_logs() as lines:
        await ring(access, clock).refresh()

    assert [line["reason"] for line in lines] == [None]


async def test_a_retired_key_is_ready_too() -> None:
    made = await rotate(MemoryAccess(), ES256, clock=HandClock())

    ready = make_ready(replace(made, retired=1))

    assert (ready.kid, ready.algorithm, ready.record.retired) == (made.kid, "ES256", 1)


async def test_a_key_of_another_environment_is_found_for_the_refusal_alone() -> None:
    access, clock = MemoryAccess(), HandClock()
    foreign = await rotate(access, PRODUCTION, clock=clock)
    keys = ring(access, clock)
    await keys.signer()

    found = await keys.find_foreign(foreign.kid)

    assert found is not None
    assert found.record == foreign
    assert await keys.find(foreign.kid) is None


async def test_a_foreign_key_is_found_among_several() -> None:
    access, clock = MemoryAccess(), HandClock()
    foreign = [await rotate(access, PRODUCTION, clock=clock) for _ in range(2)]
    keys = ring(access, clock)

    found = [await keys.find_foreign(key.kid) for key in foreign]

    assert [key.kid for key in found if key is not None] == [key.kid for key in foreign]


async def test_an_own_key_and_an_unknown_one_are_no_foreign_keys() -> None:
    access, clock = MemoryAccess(), HandClock()
    await rotate(access, PRODUCTION, clock=clock)
    keys = ring(access, clock)
    own = await keys.signer()

    assert await keys.find_foreign(own.kid) is None
    assert await keys.find_foreign(UNKNOWN) is None


async def test_a_foreign_key_that_cannot_be_read_is_none() -> None:
    access, clock = MemoryAccess(), HandClock()
    foreign = await rotate(access, PRODUCTION, clock=clock)
    await access.put_signing_key(without_private_key(foreign))

    assert await ring(access, clock).find_foreign(foreign.kid) is None


@pytest.mark.parametrize("kid", ["", "x" * 42, "x" * 44, "'" * 43])
async def test_a_foreign_kid_of_another_shape_is_not_looked_for(kid: str) -> None:
    access = MemoryAccess()

    assert await ring(access, HandClock()).find_foreign(kid) is None
    assert access.reads == []


async def test_looks_for_foreign_and_for_own_kids_share_their_limit() -> None:
    access, clock = MemoryAccess(), HandClock()
    keys = ring(access, clock)
    await keys.signer()
    access.reads.clear()

    for _ in range(10):
        await keys.find_foreign(UNKNOWN)
    await keys.find(UNKNOWN)

    assert access.reads == ["keys"] * 10
