"""Which attempts and fetches are counted together, and which client a refusal names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fhirpub.auth.authentication import TokenEndpoint
from fhirpub.auth.clients import NewClient, add_client, edit_client
from fhirpub.errors import Throttled, TokenRefused
from tests.unit.auth.assertions.signing import key_set, pair
from tests.unit.auth.conftest import ADDRESS, World
from tests.unit.auth.test_authentication import (
    ES384,
    JWKS_URL,
    TOKEN_URL,
    Answer,
    Ward,
    make_ward,
    ward,
)

__all__ = ["make_ward", "ward"]
FORGER = pair("ES384", "forger")


async def test_a_published_key_set_is_fetched_by_the_rules_of_the_tenant(
    make_ward: Callable[..., Any],
) -> None:
    ward: Ward = await make_ward(jwks_url=JWKS_URL)
    fetched: list[tuple[str, str]] = []

    async def fetch(url: str, tenant: str) -> Answer:
        fetched.append((url, tenant))
        return ward.published

    endpoint = TokenEndpoint(TOKEN_URL, fetch)
    tokens = await ward.world.another_process(endpoint=endpoint)
    await tokens.grant(ward.message(ES384.sign(ward.claims())), address=ADDRESS)

    assert fetched == [(JWKS_URL, ward.world.tenant.id)]


async def test_forgeries_for_one_client_slow_down_no_other(ward: Ward) -> None:
    world = ward.world
    new = NewClient(
        tenant=world.tenant.id,
        name="desk",
        environment=world.config.environment,
        jwks=key_set(ES384).decode(),
    )
    other, _ = await add_client(world.access, new, clock=world.clock)
    for _ in range(10):
        await ward.refusal(FORGER.sign(ward.claims(), header={"kid": "k1"}))
    with pytest.raises(Throttled):
        await ward.ask()

    claims = ward.claims(iss=other.id, sub=other.id)

    assert (await ward.ask(ES384.sign(claims))).client == other.id


async def test_who_guesses_too_often_is_named_as_claimed(world: World) -> None:
    for _ in range(10):
        with pytest.raises(TokenRefused):
            await world.ask(client_secret="wrong")

    with pytest.raises(Throttled) as refused:
        await world.ask()

    assert refused.value.client == world.client.id


async def test_who_forges_too_often_is_named_as_claimed(ward: Ward) -> None:
    for _ in range(10):
        await ward.refusal(FORGER.sign(ward.claims(), header={"kid": "k1"}))

    with pytest.raises(Throttled) as refused:
        await ward.ask()

    assert refused.value.client == ward.client.id


@pytest.mark.parametrize("changes", [{"audience": "https://x"}, {"scope": "system/Patient.rs"}])
async def test_who_asks_for_what_it_may_not_have_is_named(
    make_world: Callable[..., Any], changes: dict[str, str]
) -> None:
    world: World = await make_world(scopes=("system/DiagnosticReport.rs",))

    with pytest.raises(TokenRefused) as refused:
        await world.ask(**changes)

    assert refused.value.client == world.client.id


async def test_who_calls_from_outside_of_its_networks_is_named(world: World) -> None:
    await edit_client(world.access, world.client.id, networks=["198.51.100.0/24"])

    with pytest.raises(TokenRefused) as refused:
        await world.ask()

    assert (refused.value.error, refused.value.client) == (
        "unauthorized_client",
        world.client.id,
    )
