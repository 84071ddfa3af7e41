from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from joserfc import jwk as other_jwk
from joserfc import jwt as other_jwt
from structlog.testing import capture_logs

from fhirpub.auth.caller import Caller
from fhirpub.auth.clients import (
    NewClient,
    add_client,
    disable_client,
    edit_client,
    rotate_client,
    set_scopes,
)
from fhirpub.auth.keys import rotate
from fhirpub.auth.tenants import change_tenant
from fhirpub.auth.token_request import Message
from fhirpub.auth.tokens import Tokens
from fhirpub.config.settings import AuthConfig, LimitsConfig
from fhirpub.errors import (
    ConfigurationError,
    NotAuthenticated,
    StoreUnavailable,
    Throttled,
    TokenRefused,
)
from fhirpub.problems import RequestProblem
from tests.unit.auth.conftest import (
    AUDIENCE,
    FORM,
    ISSUER,
    HandClock,
    MemoryAccess,
    World,
    bearer,
)

DAY = 86_400


async def refusal(world: World, **changes: str | None) -> tuple[str, str, bool]:
    with pytest.raises(TokenRefused) as raised:
        await world.ask(**changes)
    return raised.value.error, str(raised.value), raised.value.challenge


@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
async def test_a_granted_token_verifies_with_the_published_keys(
    make_world: Callable[..., Any], algorithm: str
) -> None:
    world: World = await make_world(algorithm=algorithm, scopes=("system/*.rs",))

    grant = await world.ask()

    keys = other_jwk.KeySet.import_key_set(world.tokens.jwks())  # type: ignore[arg-type]
    token = other_jwt.decode(grant.access_token, keys, algorithms=[algorithm])
    assert token.header["typ"] == "at+jwt"
    assert len(token.claims.pop("jti")) == 22
    assert token.claims == {
        "iss": ISSUER,
        "sub": world.client.id,
        "aud": "https://fhirpub.local/fhir",
        "exp": 1_800_000_000 + DAY,
        "iat": 1_800_000_000,
        "client_id": world.client.id,
        "org_id": world.tenant.id,
        "scope": "system/*.rs",
    }
    assert (grant.expires_in, grant.scope) == (DAY, "system/*.rs")
    assert grant.access_token not in repr(grant)


async def test_a_token_that_is_known_speaks_for_the_same_client(world: World) -> None:
    token = await world.token()
    first = await world.tokens.caller(bearer(token))

    assert await world.tokens.caller(bearer(token)) == first


async def test_a_granted_token_speaks_for_its_client_until_it_expires(world: World) -> None:
    token = await world.token()

    assert await world.tokens.caller(bearer(token)) == Caller(world.tenant, world.client.id)
    world.clock.pass_seconds(DAY - 0.001)
    await world.tokens.caller(bearer(token))
    world.clock.pass_seconds(0.001)
    assert world.tokens.cached_caller(f"Bearer {token}") is None
    with pytest.raises(NotAuthenticated):
        await world.tokens.caller(bearer(token))


async def test_no_two_tokens_are_the_same(world: World) -> None:
    assert await world.token() != await world.token()


async def test_json_and_basic_are_granted_too(world: World) -> None:
    as_json = await world.post(json.dumps(world.form()).encode(), "application/json")
    header = other_basic(world.client.id, world.secret)
    with_basic = await world.post(
        b"grant_type=client_credentials&audience=https://fhirpub.local/fhir",
        authorization=[header],
    )

    for grant in (as_json, with_basic):
        caller = await world.tokens.caller(bearer(grant.access_token))
        assert caller.client_id == world.client.id


def other_basic(client_id: str, secret: str) -> str:
    return "Basic " + base64.b64encode(f"{client_id}:{secret}".encode()).decode()


async def test_wrong_secret_unknown_client_and_other_environment_look_the_same(
    world: World,
) -> None:
    elsewhere, its_secret = await add_client(
        world.access,
        NewClient(tenant=world.tenant.id, name="", environment="production"),
        clock=world.clock,
    )

    refusals = {
        await refusal(world, client_secret="wrong"),
        await refusal(world, client_id="nobody"),
        await refusal(world, client_id=elsewhere.id, client_secret=its_secret),
        await refusal(world, client_secret=world.secret + " "),
    }

    assert refusals == {("invalid_client", "client authentication failed", False)}


async def test_failed_basic_is_challenged(world: World) -> None:
    with pytest.raises(TokenRefused) as raised:
        await world.post(
            b"grant_type=client_credentials&audience=x",
            authorization=[other_basic(world.client.id, "wrong")],
        )

    assert (raised.value.error, raised.value.challenge) == ("invalid_client", True)


async def test_shape_comes_before_credentials_and_credentials_before_audience(
    world: World,
) -> None:
    assert (await refusal(world, audience=None, client_secret="x"))[0] == "invalid_request"
    other_grant = await refusal(world, grant_type="password", client_secret="x")
    assert other_grant[0] == "unsupported_grant_type"
    assert (await refusal(world, audience="other", client_secret="x"))[0] == "invalid_client"
    assert (await refusal(world, audience="other"))[0] == "insufficient_scope"


async def test_the_right_audience_is_named_to_a_client_that_has_authenticated(
    world: World,
) -> None:
    assert AUDIENCE not in (await refusal(world, audience="other", client_secret="x"))[1]
    assert (await refusal(world, audience="other"))[1].endswith(f": use {AUDIENCE}")


@pytest.mark.parametrize(
    ("wanted", "granted"),
    [
        (None, "system/*.rs system/DiagnosticReport.cruds"),
        ("", "system/*.rs system/DiagnosticReport.cruds"),
        ("system/Patient.rs", "system/Patient.rs"),
        ("openid  system/DiagnosticReport.read", "system/DiagnosticReport.read"),
        ("system/Patient.cruds", "system/Patient.rs"),
        ("system/*.write", "system/DiagnosticReport.cud"),
    ],
)
async def test_wanted_scopes_narrow_the_clients_own(
    make_world: Callable[..., Any], wanted: str | None, granted: str
) -> None:
    world: World = await make_world(scopes=("system/*.rs", "system/DiagnosticReport.cruds"))

    grant = await world.ask(scope=wanted)

    assert grant.scope == granted
    caller = await world.tokens.caller(bearer(grant.access_token))
    assert caller.scopes == tuple(granted.split())


async def test_scopes_that_a_client_does_not_have_are_refused(
    make_world: Callable[..., Any],
) -> None:
    world: World = await make_world(scopes=("system/*.rs",))

    assert (await refusal(world, scope="system/*.cud openid"))[0] == "insufficient_scope"


async def test_no_token_is_granted_that_is_too_long_to_be_read(
    make_world: Callable[..., Any],
) -> None:
    world: World = await make_world(scopes=("system/*.cruds",))
    wanted = " ".join(f"system/{'A' * 40}{letter}.rs" for letter in "BCDEFGHIJKLMNOPQRSTUVWXYZA")
    wanted += f" {wanted.replace('.rs', '.r')}"

    assert (await refusal(world, scope=wanted))[0] == "invalid_request"


async def test_a_client_without_scopes_gets_a_token_without(world: World) -> None:
    grant = await world.ask(scope="system/*.cruds")

    assert grant.scope is None
    assert (await world.tokens.caller(bearer(grant.access_token))).scopes == ()


async def test_ten_failures_a_minute_throttle_that_client_from_that_address(world: World) -> None:
    for _ in range(10):
        await refusal(world, client_secret="wrong")

    with pytest.raises(Throttled) as raised:
        await world.ask()

    assert raised.value.retry_after == 60
    await world.post(
        "&".join(f"{name}={value}" for name, value in world.form().items()).encode(),
        address="192.0.2.2",
    )
    world.clock.pass_seconds(60)
    await world.ask()


async def test_malformed_requests_and_other_audiences_are_no_guesses(world: World) -> None:
    for _ in range(15):
        await refusal(world, audience=None)
        await refusal(world, audience="other")

    await world.ask()


async def test_a_disabled_client_gets_no_token_and_its_tokens_end(world: World) -> None:
    token = await world.token()
    await world.tokens.caller(bearer(token))
    await disable_client(world.access, world.client.id)

    assert (await refusal(world))[0] == "invalid_client"
    world.clock.pass_seconds(30)
    assert world.tokens.cached_caller(f"Bearer {token}") is None
    for _ in range(2):
        with pytest.raises(NotAuthenticated):
            await world.tokens.caller(bearer(token))


async def test_tokens_lose_the_scopes_that_their_client_loses(
    make_world: Callable[..., Any],
) -> None:
    kept, lost = "system/Patient.rs", "system/DiagnosticReport.cud"
    world: World = await make_world(scopes=(kept, lost))
    token = await world.token()
    before = await world.tokens.caller(bearer(token))

    await set_scopes(world.access, world.client.id, ("system/*.rs",))
    world.clock.pass_seconds(30)

    assert before.scopes == (kept, lost)
    assert (await world.tokens.caller(bearer(token))).scopes == (kept,)


async def test_tokens_keep_what_is_left_of_a_scope_for_all_types(
    make_world: Callable[..., Any],
) -> None:
    world: World = await make_world(scopes=("system/*.cruds", "webhooks.read"))
    token = await world.token()
    left = ("system/DiagnosticReport.cruds", "system/Patient.r")

    await set_scopes(world.access, world.client.id, left)

    assert (await world.tokens.caller(bearer(token))).scopes == left


async def test_tokens_gain_no_scopes_that_their_client_gains(
    make_world: Callable[..., Any],
) -> None:
    world: World = await make_world(scopes=("system/Patient.rs",))
    token = await world.token()

    await set_scopes(world.access, world.client.id, ("system/*.cruds",))

    assert (await world.tokens.caller(bearer(token))).scopes == ("system/Patient.rs",)


async def test_a_disabled_tenants_tokens_end(world: World) -> None:
    tokens = [await world.token(), await world.token()]
    await world.tokens.caller(bearer(tokens[0]))
    await change_tenant(world.access, world.tenant.id, disabled=True)

    assert (await refusal(world))[0] == "invalid_client"
    world.clock.pass_seconds(30)
    for token in tokens:
        with pytest.raises(NotAuthenticated):
            await world.tokens.caller(bearer(token))


async def test_a_new_token_does_not_lengthen_what_is_believed_of_its_client(world: World) -> None:
    first, second = await world.token(), await world.token()
    await world.tokens.caller(bearer(first))
    await disable_client(world.access, world.client.id)
    world.clock.pass_seconds(29)
    await world.tokens.caller(bearer(second))

    world.clock.pass_seconds(1)

    assert world.tokens.cached_caller(f"Bearer {second}") is None
    with pytest.raises(NotAuthenticated):
        await world.tokens.caller(bearer(second))


async def test_a_secret_that_ended_gets_no_token(world: World) -> None:
    await rotate_client(world.access, world.client.id, grace_seconds=5, clock=world.clock)

    await world.ask()
    world.clock.pass_seconds(5)
    assert (await refusal(world))[0] == "invalid_client"


async def test_no_token_is_accepted_while_the_store_is_away(world: World) -> None:
    token = await world.token()
    await world.tokens.caller(bearer(token))
    world.clock.pass_seconds(30)
    world.access.away = True

    assert world.tokens.cached_caller(f"Bearer {token}") is None
    with pytest.raises(StoreUnavailable):
        await world.tokens.caller(bearer(token))
    with pytest.raises(StoreUnavailable):
        await world.ask()
    world.access.away = False
    await world.tokens.caller(bearer(token))
    await world.ask()


async def test_requests_at_once_ask_the_store_once(world: World) -> None:
    token = await world.token()
    world.access.reads.clear()

    await asyncio.gather(*(world.tokens.caller(bearer(token)) for _ in range(50)))
    world.clock.pass_seconds(29)
    assert world.tokens.cached_caller(f"Bearer {token}") is not None
    await world.tokens.caller(bearer(token))
    assert world.access.reads == ["client", "tenant", "revoked"]

    world.access.reads.clear()
    world.clock.pass_seconds(1)
    await asyncio.gather(*(world.tokens.caller(bearer(token)) for _ in range(50)))
    assert sorted(world.access.reads) == ["client", "keys", "revoked", "tenant"]


async def test_a_caller_that_goes_away_cancels_no_other(world: World) -> None:
    token = await world.token()
    asked = [asyncio.create_task(world.tokens.caller(bearer(token))) for _ in range(2)]
    await asyncio.sleep(0)

    asked[0].cancel()

    assert await asked[1] == Caller(world.tenant, world.client.id)


async def test_a_known_token_is_answered_without_waiting(world: World) -> None:
    token = await world.token()
    assert world.tokens.cached_caller(f"Bearer {token}") is None
    caller = await world.tokens.caller(bearer(token))

    assert world.tokens.cached_caller(f"Bearer {token}") is caller
    assert world.tokens.cached_caller(f"Bearer  {token}") is None
    assert world.tokens.cached_caller(token) is None
    assert world.tokens.cached_caller("") is None
    world.clock.pass_seconds(-1)
    assert world.tokens.cached_caller(f"Bearer {token}") is None


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEARER"])
async def test_the_scheme_is_read_in_any_case(world: World, scheme: str) -> None:
    caller = await world.tokens.caller([f"{scheme} {await world.token()}"])

    assert caller.client_id == world.client.id


@pytest.mark.parametrize(
    ("form", "token_sent"),
    [
        ("Bearer  {}", True),
        ("Bearer\t{}", True),
        ("Bearer{}", True),
        (" Bearer {}", True),
        ("Bearer {} ", True),
        ("Bearer {},", True),
        ("Bearer {}, Bearer {}", True),
        ("Bearer {}\n", True),
        ("Bearer\xa0{}", True),
        ("Bearer token={}", True),
        ('Bearer "{}"', True),
        ("Token {}", True),
        ("JWT {}", True),
        ("{}", True),
        ("Bearer é", True),
        ("Bearer ", False),
        ("Bearer", False),
        ("", False),
        ("Basic {}", False),
    ],
)
async def test_another_form_of_the_header_proves_nothing(
    world: World, form: str, *, token_sent: bool
) -> None:
    value = form.replace("{}", await world.token())

    with pytest.raises(NotAuthenticated) as raised:
        await world.tokens.caller([value])

    assert raised.value.token_sent is token_sent
    assert raised.value.details in (
        RequestProblem.AUTHORIZATION_MALFORMED,
        RequestProblem.TOKEN_INVALID,
    )


async def test_without_a_header_no_token_was_sent(world: World) -> None:
    with pytest.raises(NotAuthenticated) as raised:
        await world.tokens.caller([])

    assert not raised.value.token_sent


async def test_two_headers_prove_nothing_even_if_both_are_right(world: World) -> None:
    token = await world.token()
    await world.tokens.caller(bearer(token))

    with pytest.raises(NotAuthenticated) as raised:
        await world.tokens.caller(bearer(token) * 2)

    assert raised.value.token_sent


async def test_no_token_fails_while_keys_rotate_under_load(world: World) -> None:
    others = [await world.another_process() for _ in range(3)]
    processes = [world.tokens, *others]
    tokens: list[str] = []

    for number in range(4):
        await rotate(world.access, world.config, clock=world.clock)
        fresh = await world.another_process()
        body = "&".join(f"{name}={value}" for name, value in world.form().items()).encode()
        for process in (*processes, fresh):
            message = Message(content_type=FORM, body=body)
            grant = await process.grant(message, address="192.0.2.1")
            tokens.append(grant.access_token)
        await asyncio.gather(
            *(process.caller(bearer(token)) for process in processes for token in tokens)
        )
        world.clock.pass_seconds(10 * (number + 1))

    assert len(world.tokens.jwks()["keys"]) >= 4


async def test_a_key_that_an_operator_ends_early_is_out_within_half_a_minute(
    world: World,
) -> None:
    token = await world.token()
    await world.tokens.caller(bearer(token))
    leaked = await world.key()
    await rotate(world.access, world.config, clock=world.clock)
    await world.access.put_signing_key(replace(leaked, retired=0))

    world.clock.pass_seconds(30)

    with pytest.raises(NotAuthenticated):
        await world.tokens.caller(bearer(token))


async def test_a_client_that_moved_to_another_tenant_loses_its_tokens(world: World) -> None:
    token = await world.token()
    other = replace(world.tenant, id="5f0c3b9e-0000-4000-8000-000000000000")
    await world.access.put_tenant(other)
    await world.access.put_client(replace(world.client, tenant=other.id))

    with pytest.raises(NotAuthenticated):
        await world.tokens.caller(bearer(token))


async def test_memory_for_tokens_is_bounded(world: World) -> None:
    world.tokens._verified._most = 10
    tokens = [await world.token() for _ in range(12)]

    for token in tokens[:10]:
        await world.tokens.caller(bearer(token))
    assert world.tokens.cached_caller(f"Bearer {tokens[0]}") is not None
    for token in tokens[10:]:
        await world.tokens.caller(bearer(token))

    assert len(world.tokens._verified) == 10
    kept = [world.tokens.cached_caller(f"Bearer {name}") is not None for name in tokens]
    assert kept == [True, False, False, *[True] * 9]


@pytest.mark.parametrize("address", ["192.0.2.9", "::ffff:192.0.2.9", "2001:db8::9"])
async def test_a_client_gets_a_token_in_its_networks(world: World, address: str) -> None:
    networks = ["192.0.2.0/24", "2001:db8::/32"]
    await edit_client(world.access, world.client.id, networks=networks)
    body = urlencode(world.form()).encode()

    assert (await world.post(body, address=address)).access_token


@pytest.mark.parametrize("address", ["192.0.3.9", "::ffff:192.0.3.9", "2001:db9::9", "x", ""])
async def test_a_client_gets_no_token_outside_of_its_networks(world: World, address: str) -> None:
    networks = ["192.0.2.0/24", "2001:db8::/32"]
    await edit_client(world.access, world.client.id, networks=networks)
    body = urlencode(world.form()).encode()

    with capture_logs() as lines, pytest.raises(TokenRefused) as raised:
        await world.post(body, address=address)

    assert raised.value.error == "unauthorized_client"
    assert raised.value.client == world.client.id
    assert "may not call from this address" in str(raised.value)
    assert lines[0] == {
        "event": "address not permitted",
        "log_level": "warning",
        "client_id": world.client.id,
        "address": address,
    }


async def test_wrong_credentials_reveal_nothing_of_networks(world: World) -> None:
    await edit_client(world.access, world.client.id, networks=["198.51.100.0/24"])

    assert (await refusal(world, client_secret="wrong"))[0] == "invalid_client"


async def test_networks_apply_to_tokens_that_are_issued_already_within_half_a_minute(
    world: World,
) -> None:
    token = await world.token()
    assert (await world.tokens.caller(bearer(token))).may_call_from("203.0.113.1")
    await edit_client(world.access, world.client.id, networks=["192.0.2.0/24"])
    world.clock.pass_seconds(30)

    caller = await world.tokens.caller(bearer(token))

    assert caller.may_call_from("192.0.2.1")
    assert not caller.may_call_from("203.0.113.1")


@pytest.mark.parametrize(("days", "warnings"), [(29, 1), (31, 0)])
async def test_a_grant_to_a_client_whose_secret_ends_soon_is_a_warning(
    world: World, days: int, warnings: int
) -> None:
    _, world.secret = await rotate_client(
        world.access, world.client.id, grace_seconds=0, valid_days=days, clock=world.clock
    )

    with capture_logs() as lines:
        await world.token()

    found = [line for line in lines if line["event"] == "secret ends soon"]
    assert [line["client"] for line in found] == [world.client.id] * warnings


LOGGING = """
import asyncio, sys
from urllib.parse import urlencode

from fhirpub.auth.clients import NewClient, add_client
from fhirpub.auth.tenants import add_tenant
from fhirpub.auth.token_request import Message
from fhirpub.auth.tokens import Tokens
from fhirpub.config.settings import AuthConfig, LimitsConfig
from fhirpub.errors import TokenRefused
from fhirpub.runtime.logging import configure
from tests.unit.auth.conftest import AUDIENCE, AUDIENCE, FORM, HandClock, MemoryAccess

async def main():
    access, clock = MemoryAccess(), HandClock()
    tenant = await add_tenant(access, "Lab", clock=clock)
    new = NewClient(tenant=tenant.id, name="x", environment="sandbox")
    client, secret = await add_client(access, new, clock=clock)
    tokens = Tokens(
        access=access, config=AuthConfig(), limits=LimitsConfig(), issuer="i", clock=clock
    )
    good = dict(
        grant_type="client_credentials", client_id=client.id, client_secret=secret,
        audience=AUDIENCE,
    )
    print(secret)
    for change in (
        {},
        {"client_secret": secret + "x"},
        {"client_id": secret, "client_secret": client.id},
        {"audience": secret},
        {"grant_type": secret},
    ):
        body = urlencode({**good, **change}).encode()
        try:
            message = Message(content_type=FORM, body=body)
            grant = await tokens.grant(message, address="192.0.2.1")
            print(grant.access_token.split(".")[2])
        except TokenRefused:
            pass

configure(level="debug", form="json")
asyncio.run(main())
"""


def test_no_secret_and_no_token_is_ever_logged() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", LOGGING],
        env={"PYTHONPATH": os.pathsep.join(name for name in sys.path if name)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    secret, signature = ran.stdout.split()
    events = [json.loads(line)["event"] for line in ran.stderr.splitlines()]
    assert events == ["token granted"]
    assert secret not in ran.stderr
    assert signature not in ran.stderr


@pytest.mark.parametrize("claim", ["", "sub", "aud", "exp", "client_id", "scope", "nbf"])
def test_the_tenant_needs_a_claim_of_its_own(claim: str) -> None:
    with pytest.raises(ConfigurationError):
        Tokens(
            access=MemoryAccess(),
            config=AuthConfig(tenant_claim=claim),
            limits=LimitsConfig(),
            issuer=ISSUER,
            clock=HandClock(),
        )


async def test_stopping_leaves_nothing_running(world: World) -> None:
    await world.tokens.stop()
    await world.tokens.stop()

    assert asyncio.all_tasks() == {asyncio.current_task()}
