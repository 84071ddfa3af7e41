from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from fhirpub.auth import revocation
from fhirpub.auth.clients import NewClient, add_client, edit_client
from fhirpub.auth.revocation import record_revocation
from fhirpub.errors import (
    NoSuchRecord,
    NotAuthenticated,
    StoreUnavailable,
    Throttled,
    TokenRefused,
)
from fhirpub.problems import RequestProblem
from fhirpub.storage.client_activity_contract import RevokedToken
from tests.unit.auth.conftest import World, b64url, bearer

DAY = 86_400


async def is_refused(world: World, token: str, **options: Any) -> bool:
    tokens = options.get("by", world.tokens)
    try:
        await tokens.caller(bearer(token))
    except NotAuthenticated as refusal:
        return refusal.details is RequestProblem.TOKEN_REVOKED
    return False


async def test_a_revoked_token_is_refused_at_once_by_the_process_that_revoked_it(
    world: World,
) -> None:
    token = await world.token()
    await world.tokens.caller(bearer(token))

    await world.revoke(token)

    assert world.tokens.cached_caller(f"Bearer {token}") is None
    assert await is_refused(world, token)


async def test_a_revoked_token_is_refused_by_another_process_within_30_seconds(
    world: World,
) -> None:
    other, token = await world.another_process(), await world.token()
    await other.caller(bearer(token))
    await world.revoke(token)

    world.clock.pass_seconds(29.999)
    assert not await is_refused(world, token, by=other)
    world.clock.pass_seconds(0.001)
    assert other.cached_caller(f"Bearer {token}") is None
    assert await is_refused(world, token, by=other)


async def test_a_revoked_token_is_refused_for_as_long_as_it_would_have_been_valid(
    make_world: Callable[..., Any],
) -> None:
    world: World = await make_world(leeway_seconds=30)
    token = await world.token()
    await world.revoke(token)

    (kept,) = await world.access.revoked_tokens(world.client.id)

    assert kept.until == world.clock() + (DAY + 30) * 1000


async def test_the_other_tokens_of_a_client_stay_valid(world: World) -> None:
    revoked, other = await world.token(), await world.token()

    await world.revoke(revoked)

    assert await is_refused(world, revoked)
    assert not await is_refused(world, other)


async def test_the_second_text_of_a_revoked_token_is_refused_too(world: World) -> None:
    token = await world.token()
    head, _, signature = token.rpartition(".")
    raw = decoded(signature)
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    s = order - int.from_bytes(raw[32:], "big")
    second = f"{head}.{b64url(raw[:32] + s.to_bytes(32, 'big'))}"
    await world.tokens.caller(bearer(second))

    await world.revoke(token)

    assert await is_refused(world, second)


def decoded(segment: str) -> bytes:
    return base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))


@pytest.mark.parametrize("token", ["x", "a.b.c", "x" * 5000])
async def test_what_is_no_token_is_revoked_without_a_word(world: World, token: str) -> None:
    await world.revoke(token)

    assert await world.access.revoked_tokens(world.client.id) == []


async def test_an_expired_token_is_not_recorded(world: World) -> None:
    token = await world.token()
    world.clock.pass_seconds(DAY)

    await world.revoke(token)

    assert await world.access.revoked_tokens(world.client.id) == []


async def test_a_token_without_jti_is_not_recorded_since_it_is_refused_anyway(
    world: World,
) -> None:
    claims = world.claims()
    del claims["jti"]
    token = await world.signed(claims)

    await world.revoke(token)

    assert await world.access.revoked_tokens(world.client.id) == []
    with pytest.raises(NotAuthenticated):
        await world.tokens.caller(bearer(token))


async def test_a_token_with_a_forged_signature_is_not_recorded(world: World) -> None:
    other = await world.another_process()
    token = await world.token()

    await world.revoke(f"{token[:-4]}AAAA", by=other)

    assert await world.access.revoked_tokens(world.client.id) == []


async def test_a_client_cannot_revoke_the_token_of_another(world: World) -> None:
    token = await world.token()
    other, secret = await add_client(
        world.access,
        NewClient(tenant=world.tenant.id, name="other", environment="sandbox"),
        clock=world.clock,
    )

    with pytest.raises(TokenRefused) as raised:
        await world.revoke(token, client_id=other.id, client_secret=secret)

    assert raised.value.error == "unauthorized_client"
    assert not await is_refused(world, token)
    assert await world.access.revoked_tokens(other.id) == []


async def test_wrong_credentials_revoke_nothing_and_count_as_failures(world: World) -> None:
    token = await world.token()

    for _ in range(10):
        with pytest.raises(TokenRefused) as raised:
            await world.revoke(token, client_secret="wrong")
        assert raised.value.error == "invalid_client"

    with pytest.raises(Throttled):
        await world.revoke(token)
    assert not await is_refused(world, token)


async def test_a_request_without_a_token_names_all_that_is_missing(world: World) -> None:
    with pytest.raises(TokenRefused, match="missing: token, client_id, client_secret"):
        await world.revoke("", client_id=None, client_secret=None)


@pytest.mark.parametrize("hint", ["access_token", "refresh_token", "other"])
async def test_the_hint_is_ignored(world: World, hint: str) -> None:
    token = await world.token()

    await world.revoke(token, token_type_hint=hint, audience=None, grant_type=None)

    assert await is_refused(world, token)


async def test_a_client_cannot_revoke_from_outside_of_its_networks(world: World) -> None:
    token = await world.token()
    await edit_client(world.access, world.client.id, networks=["198.51.100.0/24"])

    with pytest.raises(TokenRefused) as raised:
        await world.revoke(token)

    assert raised.value.error == "unauthorized_client"


async def test_when_the_store_is_away_nothing_is_confirmed(world: World) -> None:
    token = await world.token()
    world.access.away = True

    with pytest.raises(StoreUnavailable):
        await world.revoke(token)


async def test_a_flood_of_revocations_ends_at_the_limit(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revocation, "MAX_REVOKED", 3)
    tokens = [await world.token() for _ in range(4)]
    for token in tokens[:3]:
        await world.revoke(token)

    with pytest.raises(Throttled) as raised:
        await world.revoke(tokens[3])

    assert raised.value.retry_after == 3_600
    await world.revoke(tokens[2])
    assert [await is_refused(world, token) for token in tokens] == [True, True, True, False]


async def test_tokens_that_are_none_do_not_use_up_the_limit(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revocation, "MAX_REVOKED", 1)
    for number in range(5):
        await world.revoke(f"a.b.c{number}")
    token = await world.token()

    await world.revoke(token)

    assert await is_refused(world, token)


async def test_a_revocation_is_logged_without_the_token(world: World) -> None:
    token = await world.token()

    with capture_logs() as lines:
        await world.revoke(token)

    (line,) = lines
    (kept,) = await world.access.revoked_tokens(world.client.id)
    assert line == {
        "event": "token revoked",
        "log_level": "info",
        "client": world.client.id,
        "tenant": world.tenant.id,
        "jti": kept.jti,
    }


async def test_an_operator_can_revoke_the_token_of_any_client(world: World) -> None:
    token = await world.token()

    recorded = await (await world.another_process()).revoke_for_operator(token)

    assert recorded.client == world.client.id
    world.clock.pass_seconds(30)
    assert await is_refused(world, token)


async def test_an_operator_learns_that_a_text_is_no_token(world: World) -> None:
    with pytest.raises(NotAuthenticated):
        await world.tokens.revoke_for_operator("a.b.c")


async def test_a_revocation_for_an_unknown_client_is_refused(world: World) -> None:
    with pytest.raises(NoSuchRecord):
        await record_revocation(world.access, RevokedToken("x", "j", 1), clock=world.clock)
