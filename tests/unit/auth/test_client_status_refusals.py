"""Why a client may not act, in which order that is found, and what is kept of a standing."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import replace

import pytest

from fhirpub.auth import client_status
from fhirpub.auth.client_status import ClientStatus, ClientStatusCache, TenantStatusCache
from fhirpub.auth.clients import disable_client
from fhirpub.auth.networks import parse_networks
from fhirpub.auth.tenants import change_tenant
from fhirpub.errors import NotAuthenticated, StoreUnavailable
from fhirpub.problems import Problem, RequestProblem
from fhirpub.storage.client_activity_contract import RevokedToken
from fhirpub.storage.contract import Client
from fhirpub.tenant import Tenant
from tests.unit.auth.assertions.signing import key_set, pair
from tests.unit.auth.conftest import World

JWKS = key_set(pair("ES384"), pair("ES384", "k2")).decode()
URL = "https://ward.example.org/jwks.json"


def standing_of(
    client: Client | None, tenant: Tenant | None, revoked: frozenset[str] = frozenset()
) -> ClientStatus:
    return ClientStatus(client, tenant, 0, 1, revoked)


def refusal(
    standing: ClientStatus, *, jti: str = "j", tenant_id: str = "", kid: str = ""
) -> tuple[str, Problem]:
    with pytest.raises(NotAuthenticated) as refused:
        standing.admit(jti, "sandbox", tenant_id=tenant_id, kid=kid)
    assert refused.value.token_sent
    return refused.value.reason, refused.value.details


DISABLED = ("client or tenant", RequestProblem.CLIENT_DISABLED)
REVOKED = ("revoked", RequestProblem.TOKEN_REVOKED)


async def test_a_client_acts_for_its_own_tenant_unless_one_is_named(world: World) -> None:
    standing = standing_of(world.client, world.tenant)

    assert standing.admit("j", "sandbox") is world.tenant
    assert standing.admit("j", "sandbox", tenant_id=world.tenant.id) is world.tenant


async def test_a_token_of_another_tenant_is_refused(world: World) -> None:
    standing = standing_of(world.client, world.tenant)

    assert refusal(standing, tenant_id="5f0c3b9e-0000-4000-8000-000000000000") == DISABLED


async def test_an_unknown_client_may_not_act(world: World) -> None:
    assert refusal(standing_of(None, None)) == DISABLED
    assert refusal(standing_of(None, world.tenant), tenant_id=world.tenant.id) == DISABLED


async def test_a_client_whose_tenant_is_gone_may_not_act(world: World) -> None:
    assert refusal(standing_of(world.client, None)) == DISABLED


async def test_another_environment_is_found_before_all_else(world: World) -> None:
    client = replace(world.client, environment="production", disabled=True)

    assert refusal(standing_of(client, None, frozenset("j"))) == (
        "client of another environment",
        RequestProblem.TOKEN_MISDIRECTED,
    )


async def test_the_refusal_of_another_environment_names_what_to_do(world: World) -> None:
    client = replace(world.client, environment="production")

    with pytest.raises(NotAuthenticated) as refused:
        standing_of(client, world.tenant).admit("j", "sandbox")

    assert str(refused.value) == (
        "the access token is for another environment: request one from this service"
    )


async def test_a_disabled_client_is_found_before_a_revoked_token(world: World) -> None:
    client = replace(world.client, disabled=True)

    assert refusal(standing_of(client, world.tenant, frozenset("j"))) == DISABLED


async def test_a_revoked_token_is_refused_and_no_other(world: World) -> None:
    standing = standing_of(world.client, world.tenant, frozenset(["j", "k"]))

    assert refusal(standing, jti="k") == REVOKED
    assert standing.admit("l", "sandbox") is world.tenant


async def test_a_session_ends_with_the_key_that_it_began_with(world: World) -> None:
    standing = standing_of(replace(world.client, jwks=JWKS), world.tenant)

    assert standing.admit("j", "sandbox", kid="k2") is world.tenant
    assert refusal(standing, kid="k3") == REVOKED


async def test_a_client_has_the_keys_of_its_set(world: World) -> None:
    standing = standing_of(replace(world.client, jwks=JWKS), world.tenant)

    assert [standing.has_key(kid) for kid in ("k1", "k2", "k3", "")] == [True, True, False, False]


async def test_a_client_without_keys_has_none(world: World) -> None:
    assert not standing_of(world.client, world.tenant).has_key("k1")


async def test_a_client_that_publishes_its_keys_may_have_any(world: World) -> None:
    assert standing_of(replace(world.client, jwks_url=URL), world.tenant).has_key("k9")


def test_an_unknown_client_has_no_key() -> None:
    assert not standing_of(None, None).has_key("k1")


def test_an_unknown_client_has_nothing_and_is_nowhere_else() -> None:
    standing = standing_of(None, None)

    assert (standing.scopes, standing.networks) == ((), ())
    assert not standing.is_person
    assert not standing.is_elsewhere("sandbox")


async def test_a_standing_has_what_the_client_has(world: World) -> None:
    client = replace(world.client, scopes=("system/*.rs",), networks=("192.0.2.0/24",))
    standing = standing_of(client, world.tenant)

    assert standing.scopes == ("system/*.rs",)
    assert standing.networks == parse_networks(("192.0.2.0/24",))
    assert not standing.is_person
    assert standing_of(replace(client, secrets=()), world.tenant).is_person
    assert standing.is_elsewhere("production")
    assert not standing.is_elsewhere("sandbox")


def cache(world: World) -> ClientStatusCache:
    world.access.reads.clear()
    return ClientStatusCache(world.access, clock=world.clock)


async def test_a_standing_counts_for_half_a_minute_from_the_begin_of_its_read(
    world: World,
) -> None:
    await world.access.revoke_token(RevokedToken(world.client.id, "j", 1), most=1)
    await world.access.revoke_token(RevokedToken("other", "k", 1), most=1)
    now = world.clock()
    reading = asyncio.create_task(cache(world).of(world.client.id))
    for _ in range(2):  # the read is a task of its own
        await asyncio.sleep(0)
    world.clock.pass_seconds(5)

    assert await reading == ClientStatus(
        world.client, world.tenant, now, now + 30_000, frozenset("j")
    )


async def test_that_a_client_is_unknown_is_kept_as_long(world: World) -> None:
    standings, now = cache(world), world.clock()

    assert await standings.of("unknown") == ClientStatus(None, None, now, now + 30_000)
    world.clock.pass_seconds(29.999)
    await standings.of("unknown")
    assert world.access.reads == ["client"]


async def test_a_clock_that_goes_back_makes_a_standing_old(world: World) -> None:
    standings = cache(world)
    await standings.of(world.client.id)
    world.clock.pass_seconds(-0.001)

    await standings.of(world.client.id)

    assert world.access.reads.count("client") == 2


async def test_a_forgotten_client_is_read_again_and_no_other(world: World) -> None:
    standings = cache(world)
    for client_id in (world.client.id, "unknown"):
        await standings.of(client_id)
    standings.forget("unknown")
    standings.forget("unheard-of")
    world.access.reads.clear()

    for client_id in (world.client.id, "unknown"):
        await standings.of(client_id)

    assert world.access.reads == ["client"]


async def test_of_too_many_clients_the_one_read_first_is_forgotten(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_status, "_MAX_CLIENTS", 2)
    standings = cache(world)
    for client_id in ("a", "b"):
        await standings.of(client_id)
    world.clock.pass_seconds(30)
    for client_id in ("a", "c"):
        await standings.of(client_id)

    assert list(standings._known) == ["a", "c"]


async def test_after_a_read_nothing_of_it_is_left(world: World) -> None:
    standings = cache(world)
    await standings.of(world.client.id)
    await asyncio.sleep(0)

    assert not standings._reading


async def test_a_failed_read_is_tried_again_at_once(world: World) -> None:
    standings = cache(world)
    world.access.away = True
    with pytest.raises(StoreUnavailable):
        await standings.of(world.client.id)
    world.access.away = False

    assert (await standings.of(world.client.id)).client == world.client


async def test_a_read_that_fails_after_its_caller_went_away_is_no_fault_of_the_loop(
    world: World,
) -> None:
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, fault: faults.append(fault))
    standings = cache(world)
    for away in (True, False):
        world.access.away = away
        reading = asyncio.create_task(standings.of(world.client.id))
        await asyncio.sleep(0)
        reading.cancel()
        for _ in range(9):
            await asyncio.sleep(0)
        standings.forget(world.client.id)
    gc.collect()

    assert faults == []


async def test_a_key_that_is_not_known_is_looked_for_in_the_store(world: World) -> None:
    standings = cache(world)
    await standings.of(world.client.id)
    await world.access.put_client(replace(world.client, jwks=JWKS))

    assert (await standings.with_key(world.client.id, "k2")).has_key("k2")


@pytest.mark.parametrize("kid", ["", "k2"])
async def test_a_key_that_is_known_or_none_asks_the_store_for_nothing(
    world: World, kid: str
) -> None:
    await world.access.put_client(replace(world.client, jwks=JWKS))
    standings = cache(world)
    before = await standings.of(world.client.id)
    await disable_client(world.access, world.client.id)

    assert await standings.with_key(world.client.id, kid) is before


async def test_an_unknown_key_is_looked_for_once_a_call(world: World) -> None:
    standings = cache(world)
    await standings.of(world.client.id)

    assert not (await standings.with_key(world.client.id, "k3")).has_key("k3")
    assert world.access.reads.count("client") == 2


async def test_a_tenant_is_read_alike_by_its_id(world: World) -> None:
    world.access.reads.clear()
    standings, now = TenantStatusCache(world.access, clock=world.clock), world.clock()

    for _ in range(2):
        assert await standings.of(world.tenant.id) == ClientStatus(
            None, world.tenant, now, now + 30_000
        )
    assert world.access.reads == ["tenant"]


async def test_a_tenant_that_is_disabled_is_known_after_half_a_minute(world: World) -> None:
    standings = TenantStatusCache(world.access, clock=world.clock)
    await standings.of(world.tenant.id)
    await change_tenant(world.access, world.tenant.id, disabled=True)
    world.clock.pass_seconds(30)

    found = (await standings.of(world.tenant.id)).tenant

    assert found is not None
    assert found.disabled
