"""A token that was verified once is looked at again, without another look at its signature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.auth import jwt
from fhirpub.auth.clients import disable_client
from fhirpub.auth.tenants import add_tenant, change_tenant
from fhirpub.errors import NotAuthenticated, StoreUnavailable
from tests.unit.auth.assertions.signing import key_set, pair
from tests.unit.auth.conftest import World, bearer
from tests.unit.auth.issuers.test_trust import Corp


@pytest.fixture
async def token(world: World) -> str:
    """Return a token that was verified half a minute ago."""
    found = await world.token()
    await world.tokens.caller(bearer(found))
    world.clock.pass_seconds(30)
    return found


async def test_a_known_token_is_answered_without_waiting_again_once_it_was_looked_at(
    world: World, token: str
) -> None:
    assert world.tokens.cached_caller(f"Bearer {token}") is None

    caller = await world.tokens.caller(bearer(token))

    assert world.tokens.cached_caller(f"Bearer {token}") is caller
    assert len(world.tokens._verified) == 1


async def test_the_signature_of_a_known_token_is_not_looked_at_again(
    world: World, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jwt, "check_signature", None)
    for _ in range(3):
        await world.tokens.caller(bearer(token))
        world.clock.pass_seconds(30)


async def test_a_known_token_is_kept_while_the_store_is_away(world: World, token: str) -> None:
    world.access.away = True

    with pytest.raises(StoreUnavailable):
        await world.tokens.caller(bearer(token))

    world.access.away = False
    assert (await world.tokens.caller(bearer(token))).client_id == world.client.id


async def test_a_known_token_is_accepted_until_its_leeway_ends(
    make_world: Callable[..., Any],
) -> None:
    world: World = await make_world(leeway_seconds=60)
    grant = await world.ask()
    await world.tokens.caller(bearer(grant.access_token))
    world.clock.pass_seconds(grant.expires_in + 59)

    caller = await world.tokens.caller(bearer(grant.access_token))

    assert caller.client_id == world.client.id
    world.clock.pass_seconds(1)
    with pytest.raises(NotAuthenticated) as refused:
        await world.tokens.caller(bearer(grant.access_token))
    assert refused.value.reason == "expired"


async def test_a_second_look_is_a_use_of_the_client(world: World, token: str) -> None:
    now = world.clock()
    await world.tokens.caller(bearer(token))
    await world.tokens.stop()

    assert world.access.uses == {world.client.id: now}


async def test_a_token_that_is_refused_is_no_use(world: World, token: str) -> None:
    before = world.clock() - 30_000
    await disable_client(world.access, world.client.id)

    with pytest.raises(NotAuthenticated):
        await world.tokens.caller(bearer(token))

    await world.tokens.stop()
    assert world.access.uses == {world.client.id: before}


async def test_a_session_by_a_new_passkey_begins_at_once(world: World) -> None:
    first, second = (pair("ES256", f"passkey:{number}") for number in (1, 2))
    person = replace(world.client, secrets=(), jwks=key_set(first).decode())
    await world.access.put_client(person)
    await world.tokens.caller_of_session(person.id, "s-1", "passkey:1")
    await world.access.put_client(replace(person, jwks=key_set(first, second).decode()))

    caller = await world.tokens.caller_of_session(person.id, "s-2", "passkey:2")

    assert caller.client_id == person.id


async def test_a_token_of_another_issuer_that_is_refused_is_kept_no_longer(world: World) -> None:
    tenant = await add_tenant(world.access, "corp", clock=world.clock)
    corp = Corp(world, {"corp": tenant.id, "ward": world.tenant.id})
    token = corp.token()
    await corp.tokens.caller(bearer(token))
    await change_tenant(world.access, tenant.id, disabled=True)
    world.clock.pass_seconds(31)

    await corp.refusal(token)

    assert len(corp.tokens._verified) == 0
