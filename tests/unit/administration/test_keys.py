"""Signing keys are listed and rotated, and tokens revoked until they would have expired."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from urllib.parse import urlencode

import pytest

from fhirpub.administration import clients, keys
from fhirpub.audit.record import BEGUN
from fhirpub.auth.keys import longest_token_seconds
from fhirpub.auth.revocation import MAX_REVOKED
from fhirpub.auth.token_request import Message
from fhirpub.auth.tokens import Tokens
from fhirpub.errors import InvalidContent, NotPossible
from fhirpub.fhir.times import instant
from fhirpub.storage.client_activity_contract import RevokedToken
from fhirpub.testing.contracts.store.records import a_key
from tests.unit.administration.declared import declared
from tests.unit.administration.office import Office


@pytest.fixture
async def ward(office: Office, lab: str) -> str:
    return str((await office.run(clients.ADD, tenant=lab, name="ward"))["client_id"])


async def test_only_the_keys_of_this_environment_are_listed(office: Office) -> None:
    await office.store.put_signing_key(a_key("here", created=5))
    await office.store.put_signing_key(a_key("there", environment="production"))

    assert await office.run(keys.LIST) == [
        {
            "kid": "here",
            "algorithm": "ES256",
            "environment": "sandbox",
            "created": instant(5),
            "retired": None,
        }
    ]


async def test_a_rotation_adds_a_key_and_retires_the_one_before(office: Office) -> None:
    first = await office.run(keys.ROTATE)
    office.clock.forward(seconds=5)
    second = await office.run(keys.ROTATE)

    listed = await office.run(keys.LIST)

    assert [one["kid"] for one in listed] == [first["kid"], second["kid"]]
    assert second["created"] == instant(office.clock())
    assert [one["retired"] for one in listed] == [instant(office.clock()), None]


async def test_a_rotation_is_recorded_with_the_new_key(office: Office) -> None:
    new = await office.run(keys.ROTATE)

    assert await office.records() == [
        ("", "key.rotate", BEGUN, []),
        ("", "key.rotate", 200, [f"Key/{new['kid']}"]),
    ]


async def test_a_named_token_is_revoked_until_the_last_one_of_now_expires(
    office: Office, lab: str, ward: str
) -> None:
    auth = office.administration.config.auth

    revoked = await office.run(keys.REVOKE, client="ward", jti="j-1")

    end = office.clock() + (longest_token_seconds(auth) + auth.leeway_seconds) * 1000
    assert revoked == {"client_id": ward, "jti": "j-1", "until": instant(end)}
    assert await office.store.revoked_tokens(ward) == [RevokedToken(ward, "j-1", end)]


async def test_the_longer_life_of_tokens_counts(office: Office, ward: str) -> None:
    auth = replace(
        office.administration.config.auth,
        token_seconds=60,
        assertion_token_seconds=7_000,
        leeway_seconds=3,
    )

    revoked = await office.with_config(auth=auth).run(keys.REVOKE, client=ward, jti="j-1")

    assert revoked["until"] == instant(office.clock() + 7_003_000)


async def test_a_revocation_is_in_the_chain_of_the_tenant(
    office: Office, lab: str, ward: str
) -> None:
    before = await office.records()

    await office.run(keys.REVOKE, client=ward, jti="j-1")

    assert (await office.records())[len(before) :] == [
        (lab, "token.revoke", status, [f"Client/{ward}"]) for status in (BEGUN, 200)
    ]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"client": "ward"},
        {"jti": "j-1"},
        {"token": "x", "client": "ward"},
        {"token": "x", "jti": "j-1"},
        {"token": "x", "client": "ward", "jti": "j-1"},
    ],
)
async def test_a_token_or_a_client_and_a_jti_must_be_given(
    office: Office, ward: str, given: dict[str, str]
) -> None:
    before = await office.records()

    with pytest.raises(InvalidContent) as refused:
        await office.run(keys.REVOKE, **given)

    (issue,) = refused.value.issues
    assert issue.expression == "token"
    assert issue.diagnostics == "must be given, or else both client and jti"
    assert await office.records() == before


@pytest.mark.parametrize(
    ("jti", "is_right"),
    [("a", True), ("A_z-9", True), ("x" * 255, True), ("", False), ("x" * 256, False),
     ("a b", False), ("ä", False), ("a\n", False)],
)  # fmt: skip
async def test_a_jti_is_the_claim_of_a_token(
    office: Office, ward: str, jti: str, *, is_right: bool
) -> None:
    if is_right:
        assert (await office.run(keys.REVOKE, client=ward, jti=jti))["jti"] == jti
    else:
        with pytest.raises(InvalidContent, match="jti: must be the claim of a token"):
            await office.run(keys.REVOKE, client=ward, jti=jti)


async def test_a_token_is_revoked_by_its_text_in_the_chain_of_its_tenant(
    office: Office, lab: str
) -> None:
    added = await office.run(clients.ADD, tenant=lab, scopes=["system/*.rs"])
    config = office.administration.config
    tokens = Tokens(
        access=office.store,
        config=config.auth,
        limits=config.limits,
        issuer=config.issuer,
        clock=office.clock,
    )
    fields = {
        "grant_type": "client_credentials",
        "audience": config.auth.audience,
        "client_id": added["client_id"],
        "client_secret": added["client_secret"],
    }
    body = urlencode(fields).encode()
    message = Message(content_type="application/x-www-form-urlencoded", body=body)
    granted = await tokens.grant(message, address="192.0.2.1")
    before = len(await office.records())

    revoked = await office.run(keys.REVOKE, token=granted.access_token)

    assert revoked["client_id"] == added["client_id"]
    (stored,) = await office.store.revoked_tokens(added["client_id"])
    assert (stored.jti, instant(stored.until)) == (revoked["jti"], revoked["until"])
    assert (await office.records())[before:] == [
        ("", "token.revoke", BEGUN, []),
        (lab, "token.revoke", 200, [f"Client/{added['client_id']}"]),
    ]


async def test_what_is_no_token_revokes_nothing(office: Office) -> None:
    with pytest.raises(NotPossible, match="this is no valid token of the service"):
        await office.run(keys.REVOKE, token="x")


async def test_a_client_has_at_most_so_many_revoked_tokens(office: Office, ward: str) -> None:
    end = office.clock() + 60_000
    tokens = [RevokedToken(ward, str(number), end) for number in range(MAX_REVOKED)]
    await asyncio.gather(*(office.store.revoke_token(one, most=MAX_REVOKED) for one in tokens))

    with pytest.raises(NotPossible, match="which is the limit: fhirpub client disable ends all"):
        await office.run(keys.REVOKE, client=ward, jti="one-more")

    assert len(await office.store.revoked_tokens(ward)) == MAX_REVOKED


def test_the_operations_are_those_that_clients_know() -> None:
    assert declared(keys.OPERATIONS) == {
        "keys list": [
            "GET /keys 200",
            "creates a store",
        ],
        "keys rotate": [
            "POST /keys/rotate 200",
            "creates a store, as key.rotate",
        ],
        "token revoke": [
            "POST /tokens/revoke 200",
            "final, creates a store",
            "body token string 8192 characters",
            "body client string",
            "body jti string",
        ],
    }
