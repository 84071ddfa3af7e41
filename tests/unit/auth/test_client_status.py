from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from fhirpub.auth.client_status import ClientStatus, ClientStatusCache
from fhirpub.errors import StoreUnavailable
from fhirpub.storage.client_activity_contract import RevokedToken
from tests.unit.auth.conftest import World


async def test_a_standing_is_read_again_after_half_a_minute(world: World) -> None:
    standings = ClientStatusCache(world.access, clock=world.clock)
    world.access.reads.clear()

    for seconds in (0, 29.999, 0.001):
        world.clock.pass_seconds(seconds)
        await standings.of(world.client.id)

    assert world.access.reads == ["client", "tenant", "revoked"] * 2


async def test_a_client_that_is_forgotten_amid_a_read_is_read_again(world: World) -> None:
    standings = ClientStatusCache(world.access, clock=world.clock)
    reading = asyncio.create_task(standings.of(world.client.id))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    standings.forget(world.client.id)
    await reading
    await world.access.revoke_token(RevokedToken(world.client.id, "j", 1), most=1)

    assert (await standings.of(world.client.id)).revoked == {"j"}


async def test_concurrent_callers_share_the_answer_or_the_failure(world: World) -> None:
    standings = ClientStatusCache(world.access, clock=world.clock)
    world.access.away = True
    world.access.reads.clear()

    answers = await asyncio.gather(
        *(standings.of(world.client.id) for _ in range(20)), return_exceptions=True
    )

    assert {type(answer) for answer in answers} == {StoreUnavailable}
    assert world.access.reads == ["client"]
    world.access.away = False
    assert (await standings.of(world.client.id)).client == world.client


@pytest.mark.parametrize(
    ("client", "tenant"),
    [
        ({"disabled": True}, {}),
        ({"environment": "production"}, {}),
        ({}, {"disabled": True}),
        ({}, {"id": "5f0c3b9e-0000-4000-8000-000000000000"}),
        (None, {}),
        ({}, None),
    ],
)
async def test_only_an_enabled_client_of_an_enabled_tenant_may_act(
    world: World, client: dict[str, object] | None, tenant: dict[str, object] | None
) -> None:
    standing = ClientStatus(
        None if client is None else replace(world.client, **client),  # type: ignore[arg-type]
        None if tenant is None else replace(world.tenant, **tenant),  # type: ignore[arg-type]
        read=0,
        until=1,
    )

    assert standing.tenant_for(world.tenant.id, environment="sandbox") is None
