"""How long tokens count, what is used last, and what happens while a session is ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from fhirpub.auth import jwt
from fhirpub.auth import tokens as tokens_module
from fhirpub.auth.tokens import Tokens
from fhirpub.config.settings import AuthConfig, LimitsConfig
from fhirpub.errors import NotAuthenticated, StoreUnavailable
from fhirpub.storage.client_activity_contract import RevokedToken
from fhirpub.storage.contract import SigningKey
from tests.unit.auth.conftest import ISSUER, HandClock, MemoryAccess, World, bearer
from tests.unit.auth.test_authentication import Ward, make_ward
from tests.waiting import until

__all__ = ["make_ward"]


async def test_a_token_lasts_as_long_as_its_answer_says_however_it_was_got(
    make_ward: Callable[..., Any],
) -> None:
    ward: Ward = await make_ward(token_seconds=600, assertion_token_seconds=120)

    for grant in (await ward.ask(), await ward.world.ask()):
        claims = jwt.decode(grant.access_token).payload
        assert claims["exp"] - claims["iat"] == grant.expires_in


async def test_a_known_token_is_looked_at_again_after_the_clock_was_set_back(
    world: World,
) -> None:
    token = await world.token()
    await world.tokens.caller(bearer(token))
    world.access.reads.clear()
    world.clock.pass_seconds(-1)

    await world.tokens.caller(bearer(token))

    assert "client" in world.access.reads


async def test_the_last_use_before_a_stop_is_recorded_though_one_was_this_hour(
    world: World,
) -> None:
    await world.token()
    await world.tokens._uses.record()
    world.clock.pass_seconds(60)
    await world.token()

    await world.tokens.stop()

    assert world.access.uses == {world.client.id: world.clock()}


class SlowRevocations(MemoryAccess):
    """Lets a caller be looked up before a token that is to be revoked is stored."""

    tokens: Tokens
    client_id: str

    async def revoke_token(self, token: RevokedToken, *, most: int) -> bool:
        await self.tokens.caller_of_session(self.client_id, token.jti, "")
        return await super().revoke_token(token, most=most)


async def test_a_session_that_is_used_while_it_is_ended_is_refused_at_once(world: World) -> None:
    access = SlowRevocations()
    await access.put_tenant(world.tenant)
    await access.put_client(world.client)
    tokens = Tokens(
        access=access, config=world.config, limits=world.limits, issuer=ISSUER, clock=world.clock
    )
    access.tokens, access.client_id = tokens, world.client.id

    await tokens.end_session(RevokedToken(world.client.id, "s-1", world.clock() + 60_000))

    with pytest.raises(NotAuthenticated):
        await tokens.caller_of_session(world.client.id, "s-1", "")


class WithoutKeys(MemoryAccess):
    """Answers all but what is asked about keys, once they are away."""

    are_away = False

    async def signing_keys(self, environment: str) -> Sequence[SigningKey]:
        if self.are_away:
            raise StoreUnavailable("no keys")
        return await super().signing_keys(environment)


async def test_uses_are_recorded_while_keys_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tokens_module, "FRESH_SECONDS", 0)
    access, clock = WithoutKeys(), HandClock()
    tokens = Tokens(
        access=access, config=AuthConfig(), limits=LimitsConfig(), issuer=ISSUER, clock=clock
    )
    await tokens.start()
    access.are_away = True
    clock.pass_seconds(60)
    tokens._uses.note("c-1")

    await until(lambda: access.uses)

    assert access.uses == {"c-1": clock()}
    await tokens.stop()
