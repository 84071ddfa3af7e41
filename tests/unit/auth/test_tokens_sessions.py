"""Sessions of persons, tokens bound to a certificate, and what is logged and refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from joserfc import jwk as other_jwk
from joserfc import jwt as other_jwt
from structlog.testing import capture_logs

from fhirpub.auth.caller import Caller
from fhirpub.auth.clients import disable_client, edit_client, rotate_client
from fhirpub.auth.keys import rotate
from fhirpub.auth.networks import parse_networks
from fhirpub.auth.token_request import Message
from fhirpub.errors import (
    NoSuchRecord,
    NotAuthenticated,
    TokenRefused,
)
from fhirpub.fhir.times import instant
from fhirpub.problems import RequestProblem
from fhirpub.storage.client_activity_contract import RevokedToken
from tests.unit.auth.assertions.signing import key_set, pair
from tests.unit.auth.conftest import (
    ADDRESS,
    AUDIENCE,
    FORM,
    World,
    bearer,
)

DAY = 86_400
PASSKEYS = key_set(pair("ES256", "passkey:1")).decode()
DIGEST = "A4DtL2JmUMhAsvJj5tKyn64SqzmuXbMrJa0n761y5v0"


async def session(world: World, *, jti: str = "s-1", kid: str = "") -> Caller:
    return await world.tokens.caller_of_session(world.client.id, jti, kid)


async def details(asked: Any) -> tuple[str, object]:
    with pytest.raises(NotAuthenticated) as refused:
        await asked
    return refused.value.reason, refused.value.details


async def test_a_session_has_the_tenant_the_scopes_and_the_networks_of_its_client(
    make_world: Callable[..., Any],
) -> None:
    world: World = await make_world(scopes=("system/*.rs",))
    await edit_client(world.access, world.client.id, networks=["192.0.2.0/24"])

    assert await session(world) == Caller(
        world.tenant,
        world.client.id,
        scopes=("system/*.rs",),
        networks=parse_networks(("192.0.2.0/24",)),
    )


async def test_the_scopes_of_a_person_always_count(world: World) -> None:
    await world.access.put_client(replace(world.client, secrets=(), jwks=PASSKEYS))

    assert (await session(world, kid="passkey:1")).scopes_count
    assert not (await session(world, kid="")).certificate


async def test_a_session_ends_with_its_passkey(world: World) -> None:
    await world.access.put_client(replace(world.client, secrets=(), jwks=PASSKEYS))

    assert await details(session(world, kid="passkey:2")) == (
        "revoked",
        RequestProblem.TOKEN_REVOKED,
    )


async def test_a_session_is_refused_at_once_where_it_was_ended(world: World) -> None:
    await session(world)

    await world.tokens.end_session(RevokedToken(world.client.id, "s-1", world.clock() + 1))

    assert await details(session(world)) == ("revoked", RequestProblem.TOKEN_REVOKED)
    assert (await session(world, jti="s-2")).client_id == world.client.id


async def test_a_session_of_an_unknown_client_is_not_ended(world: World) -> None:
    with pytest.raises(NoSuchRecord):
        await world.tokens.end_session(RevokedToken("unknown", "s-1", 1))


async def test_a_session_is_a_use_of_its_client(world: World) -> None:
    await session(world)
    await world.tokens.stop()

    assert world.access.uses == {world.client.id: world.clock()}


async def test_a_session_of_another_environment_is_refused(world: World) -> None:
    await world.access.put_client(replace(world.client, environment="production"))

    assert (await details(session(world)))[1] is RequestProblem.TOKEN_MISDIRECTED


async def test_a_token_is_bound_to_the_certificate_of_its_request(world: World) -> None:
    message = Message(content_type=FORM, body=urlencode(world.form()).encode())

    grant = await world.tokens.grant(message, address=ADDRESS, certificate=DIGEST)

    keys = other_jwk.KeySet.import_key_set(world.tokens.jwks())  # type: ignore[arg-type]
    claims = other_jwt.decode(grant.access_token, keys, algorithms=["ES256"]).claims
    assert claims["cnf"] == {"x5t#S256": DIGEST}
    assert (await world.tokens.caller(bearer(grant.access_token))).certificate == DIGEST


async def test_a_token_without_a_certificate_is_bound_to_none(world: World) -> None:
    caller = await world.tokens.caller(bearer(await world.token()))

    assert caller.certificate == ""


async def test_a_grant_is_logged_with_its_client_its_tenant_and_its_jti(world: World) -> None:
    with capture_logs() as lines:
        token = await world.token()

    recorded = await world.tokens.revoke_for_operator(token)
    assert lines == [
        {
            "event": "token granted",
            "log_level": "info",
            "client": world.client.id,
            "tenant": world.tenant.id,
            "jti": recorded.jti,
        }
    ]


async def test_a_grant_names_its_client_and_its_tenant(world: World) -> None:
    grant = await world.ask()

    assert (grant.client, grant.tenant) == (world.client.id, world.tenant.id)


async def test_the_warning_of_a_secret_names_when_it_ends(world: World) -> None:
    _, world.secret = await rotate_client(
        world.access, world.client.id, grace_seconds=0, valid_days=29, clock=world.clock
    )

    with capture_logs() as lines:
        await world.token()

    assert lines[-1] == {
        "event": "secret ends soon",
        "log_level": "warning",
        "client": world.client.id,
        "ends": instant(world.clock() + 29 * DAY * 1000),
    }


async def test_a_revocation_returns_the_client_that_asked(world: World) -> None:
    body = urlencode(world.form(token="a.b.c")).encode()

    client = await world.tokens.revoke(Message(content_type=FORM, body=body), address=ADDRESS)

    assert client == world.client


async def test_the_refusal_of_anothers_token_has_the_client_that_asked(world: World) -> None:
    token = await world.token()
    other = replace(world.client, id="other")
    await world.access.put_client(other)

    with pytest.raises(TokenRefused) as refused:
        await world.revoke(token, client_id="other")

    assert str(refused.value) == "the token was issued to another client"
    assert refused.value.client == "other"


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        (
            {"audience": "other"},
            "insufficient_scope",
            f"the client is not permitted this audience: use {AUDIENCE}",
        ),
        (
            {"scope": "system/*.cud"},
            "insufficient_scope",
            "the client is not permitted these scopes",
        ),
        (
            {"scope": " ".join(f"system/{'A' * 90}{letter}.rs" for letter in "BCDEFGHIJKLMNOPQ")},
            "invalid_request",
            "the scopes must not have more than 1500 characters",
        ),
    ],
)
async def test_what_a_client_may_not_have_is_refused_in_words(
    make_world: Callable[..., Any], changes: dict[str, str], error: str, words: str
) -> None:
    world: World = await make_world(scopes=("system/*.rs",))

    with pytest.raises(TokenRefused) as refused:
        await world.ask(**changes)

    assert (refused.value.error, str(refused.value)) == (error, words)


async def test_scopes_of_1500_characters_are_granted(make_world: Callable[..., Any]) -> None:
    world: World = await make_world(scopes=("system/*.rs",))
    first = f"system/{'A' * 700}.rs"
    wanted = f"{first} system/{'B' * (1_500 - len(first) - 1 - len('system/.rs'))}.rs"

    assert (await world.ask(scope=wanted)).scope == wanted
    with pytest.raises(TokenRefused):
        await world.ask(scope=wanted.replace("B.rs", "BB.rs"))


async def test_a_token_that_expired_is_refused_as_that_when_it_was_known_before(
    world: World,
) -> None:
    token = await world.token()
    await world.tokens.caller(bearer(token))
    world.clock.pass_seconds(DAY)

    refused = [await details(world.tokens.caller(bearer(token))) for _ in range(2)]

    assert refused == [("expired", RequestProblem.TOKEN_EXPIRED)] * 2


async def test_a_known_token_whose_key_is_gone_proves_nothing(world: World) -> None:
    token = await world.token()
    await world.tokens.caller(bearer(token))
    leaked = await world.key()
    await rotate(world.access, world.config, clock=world.clock)
    await world.access.put_signing_key(replace(leaked, retired=0))
    world.clock.pass_seconds(30)

    assert await details(world.tokens.caller(bearer(token))) == (
        "kid",
        RequestProblem.TOKEN_INVALID,
    )
    assert len(world.tokens._verified) == 0


async def test_a_token_that_is_refused_is_kept_no_longer(world: World) -> None:
    token = await world.token()
    await world.tokens.caller(bearer(token))
    await disable_client(world.access, world.client.id)
    world.clock.pass_seconds(30)

    assert await details(world.tokens.caller(bearer(token))) == (
        "client or tenant",
        RequestProblem.CLIENT_DISABLED,
    )
    assert len(world.tokens._verified) == 0


async def test_a_token_counts_again_after_the_leeway_and_no_longer(
    make_world: Callable[..., Any],
) -> None:
    world: World = await make_world(leeway_seconds=10)
    token = await world.token()

    world.clock.pass_seconds(DAY + 9.999)
    await world.tokens.caller(bearer(token))
    assert world.tokens.cached_caller(f"Bearer {token}") is not None
    world.clock.pass_seconds(0.001)
    assert world.tokens.cached_caller(f"Bearer {token}") is None


async def test_a_revocation_ends_what_is_known_of_other_tokens_of_the_client_only(
    world: World,
) -> None:
    await world.access.put_client(replace(world.client, id="other"))
    mine, others = await world.token(), (await world.ask(client_id="other")).access_token
    for token in (mine, others):
        await world.tokens.caller(bearer(token))

    await world.revoke(await world.token())

    assert world.tokens.cached_caller(f"Bearer {mine}") is None
    assert world.tokens.cached_caller(f"Bearer {others}") is not None


async def test_an_operator_gets_what_was_recorded(world: World) -> None:
    token = await world.token()

    recorded = await world.tokens.revoke_for_operator(token)

    assert recorded.until == world.clock() + DAY * 1000
    assert await world.access.revoked_tokens(world.client.id) == [recorded]


async def test_an_operator_learns_that_a_token_has_expired(world: World) -> None:
    token = await world.token()
    world.clock.pass_seconds(DAY)

    asked = world.tokens.revoke_for_operator(token)

    assert await details(asked) == ("expired", RequestProblem.TOKEN_EXPIRED)
