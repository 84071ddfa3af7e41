"""What goes on beside requests: keys and uses, from the start to the stop."""

from __future__ import annotations

import asyncio
from urllib.parse import urlencode

import pytest
from structlog.testing import capture_logs

from fhirpub.auth import tokens as tokens_module
from fhirpub.auth.keys import rotate
from fhirpub.auth.token_request import Message
from fhirpub.auth.tokens import Tokens
from fhirpub.config.settings import AuthConfig, LimitsConfig
from fhirpub.errors import ConfigurationError, StoreUnavailable
from tests.unit.auth.conftest import ADDRESS, FORM, ISSUER, HandClock, MemoryAccess, World
from tests.waiting import until


async def use(world: World) -> None:
    await world.tokens.caller_of_session(world.client.id, "s-1", "")


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what runs every quarter of a minute run all the time."""
    monkeypatch.setattr(tokens_module, "FRESH_SECONDS", 0)


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.usefixtures("busy")
async def test_keys_are_read_again_without_a_request(world: World) -> None:
    new = await rotate(world.access, world.config, clock=world.clock)
    world.clock.pass_seconds(30)
    # A key is made ready in a thread.
    await until(lambda: world.tokens.ring.cached_key(new.kid) is not None)


@pytest.mark.usefixtures("busy")
async def test_uses_are_recorded_without_a_request(world: World) -> None:
    await world.token()
    await turns()

    assert world.access.uses == {world.client.id: world.clock()}


@pytest.mark.usefixtures("busy")
async def test_a_store_that_is_away_is_logged_and_ends_nothing(world: World) -> None:
    await use(world)
    await turns()
    world.clock.pass_seconds(3_600)
    await use(world)
    world.access.away = True
    world.clock.pass_seconds(30)
    with capture_logs() as lines:
        await turns()
    world.access.away = False
    await turns()

    warnings = {(line["event"], line["log_level"], line["reason"]) for line in lines}
    assert warnings == {
        ("signing keys not read", "warning", "switched off"),
        ("uses of clients not recorded", "warning", "switched off"),
    }
    assert world.access.uses == {world.client.id: world.clock() - 30_000}


async def test_stopping_records_the_last_uses_or_ends_without_a_store(world: World) -> None:
    await world.token()
    world.access.away = True

    await world.tokens.stop()

    assert world.access.uses == {}


async def test_tokens_that_did_not_start_record_nothing_at_their_end(world: World) -> None:
    other = await world.another_process()
    body = urlencode(world.form()).encode()
    await other.grant(Message(content_type=FORM, body=body), address=ADDRESS)

    await other.stop()

    assert world.access.uses == {}


async def test_the_first_key_is_made_at_the_start(world: World) -> None:
    assert len(await world.access.signing_keys("sandbox")) == 1
    assert len(world.tokens.jwks()["keys"]) == 1


async def test_a_store_that_is_away_fails_the_start() -> None:
    access = MemoryAccess()
    access.away = True
    tokens = Tokens(
        access=access,
        config=AuthConfig(),
        limits=LimitsConfig(),
        issuer=ISSUER,
        clock=HandClock(),
    )

    with pytest.raises(StoreUnavailable):
        await tokens.start()


def test_the_refusal_of_a_claim_names_the_setting() -> None:
    with pytest.raises(ConfigurationError) as refused:
        Tokens(
            access=MemoryAccess(),
            config=AuthConfig(tenant_claim="sub"),
            limits=LimitsConfig(),
            issuer=ISSUER,
            clock=HandClock(),
        )

    assert str(refused.value) == "[auth] tenant_claim must be a claim of its own, such as org_id"
