"""Clients with key sets, and persons, beside those with a secret."""

from __future__ import annotations

import json

import pytest

from fhirpub.auth.clients import (
    NewClient,
    access_end,
    add_client,
    check_client,
    has_keys,
    is_person,
    rotate_client,
    set_keys,
)
from fhirpub.errors import ConfigurationError, NoSuchRecord
from fhirpub.storage.contract import Client
from tests.unit.auth.assertions.signing import key_set, pair
from tests.unit.auth.conftest import World

JWKS = key_set(pair("ES384")).decode()
OTHER = key_set(pair("ES384", "k2")).decode()
PASSKEYS = key_set(pair("ES256", "passkey:1")).decode()
URL = "https://ward.example.org/jwks.json"
IS_PERSON = (
    "the client is a person, who signs in to the console by passkeys: invite the person with "
    "`fhirpub client invite`, and add a client for each application"
)
SIGNS = "the client signs assertions: replace its keys with `fhirpub client edit --jwks`"
NO_SCOPE = "'two words' is no scope: write system/DiagnosticReport.cruds"


async def added(world: World, **changes: object) -> tuple[Client, str]:
    new = NewClient(
        tenant=world.tenant.id,
        name="other",
        environment="sandbox",
        **changes,  # type: ignore[arg-type]
    )
    return await add_client(world.access, new, clock=world.clock)


def kids(client: Client) -> list[str]:
    return [key["kid"] for key in json.loads(client.jwks)["keys"]]


async def test_a_client_with_a_key_set_gets_no_secret(world: World) -> None:
    client, secret = await added(world, jwks=JWKS)

    assert (secret, client.secrets, client.jwks_url) == ("", (), "")
    assert kids(client) == ["k1"]


async def test_a_client_with_the_url_of_a_key_set_gets_no_secret(world: World) -> None:
    client, secret = await added(world, jwks_url=URL)

    assert (secret, client.secrets, client.jwks, client.jwks_url) == ("", (), "", URL)


async def test_a_person_gets_neither_a_secret_nor_keys(world: World) -> None:
    client, secret = await added(world, is_person=True)

    assert (secret, client.secrets, client.jwks, client.jwks_url) == ("", (), "", "")


async def test_the_keys_of_an_application_make_no_person(world: World) -> None:
    client, _ = await added(world, jwks=JWKS)

    assert not is_person(client)


async def test_a_private_key_is_refused_and_not_stored(world: World) -> None:
    private = json.dumps({"keys": [pair("ES384").private.as_dict(private=True)]})

    with pytest.raises(ConfigurationError, match="has members of a private key"):
        await added(world, jwks=private)

    assert await world.access.clients() == [world.client]


async def test_an_application_has_no_key_with_the_name_of_a_passkey(world: World) -> None:
    with pytest.raises(ConfigurationError) as refused:
        await added(world, jwks=PASSKEYS)

    assert str(refused.value) == (
        "no kid may begin with passkey:, the mark of what persons sign in with"
    )


async def test_one_passkey_among_other_keys_is_refused_too() -> None:
    mixed = key_set(pair("ES384"), pair("ES256", "passkey:1")).decode()

    with pytest.raises(ConfigurationError, match="no kid may begin with passkey:"):
        check_client((), (), mixed)


async def test_scopes_networks_and_keys_are_refused_together(world: World) -> None:
    with pytest.raises(ConfigurationError) as refused:
        await added(world, scopes=("two words",), networks=("x",), jwks=PASSKEYS)

    lines = str(refused.value).splitlines()
    assert [line.split()[0] for line in lines] == ["'two", "'x'", "no"]
    assert lines[0] == NO_SCOPE


def test_the_same_rules_are_checked_without_adding_a_client() -> None:
    with pytest.raises(ConfigurationError) as refused:
        check_client(("two words",), ("x",), "{}")

    assert [line.split()[0] for line in str(refused.value).splitlines()] == ["'two", "'x'", "the"]
    assert str(refused.value).splitlines()[0] == NO_SCOPE


def test_right_scopes_networks_and_keys_pass() -> None:
    check_client(("system/*.rs",), ("192.0.2.0/24",), JWKS)


async def test_new_keys_take_the_place_of_those_before(world: World) -> None:
    client, _ = await added(world, jwks=JWKS)

    changed = await set_keys(
        world.access, client.id, jwks=OTHER, grace_seconds=0, clock=world.clock
    )

    assert kids(changed) == ["k2"]
    assert await world.access.client(client.id) == changed


async def test_the_url_of_a_key_set_takes_the_place_of_keys(world: World) -> None:
    client, _ = await added(world, jwks=JWKS)

    changed = await set_keys(
        world.access, client.id, jwks_url=URL, grace_seconds=0, clock=world.clock
    )

    assert (changed.jwks, changed.jwks_url) == ("", URL)


async def test_keys_take_the_place_of_the_url_of_a_key_set(world: World) -> None:
    client, _ = await added(world, jwks_url=URL)

    changed = await set_keys(
        world.access, client.id, jwks=JWKS, grace_seconds=0, clock=world.clock
    )

    assert (kids(changed), changed.jwks_url) == (["k1"], "")


async def test_keys_end_a_secret_after_the_grace_to_the_millisecond(world: World) -> None:
    changed = await set_keys(
        world.access, world.client.id, jwks=JWKS, grace_seconds=60, clock=world.clock
    )

    assert [secret.expires for secret in changed.secrets] == [world.clock() + 60_000]


async def test_keys_prolong_no_secret_that_ends_sooner(world: World) -> None:
    await rotate_client(world.access, world.client.id, grace_seconds=60, clock=world.clock)

    changed = await set_keys(
        world.access, world.client.id, jwks=JWKS, grace_seconds=3_600, clock=world.clock
    )

    now = world.clock()
    assert [secret.expires for secret in changed.secrets] == [now + 60_000, now + 3_600_000]


async def test_keys_without_a_grace_leave_no_secret(world: World) -> None:
    changed = await set_keys(
        world.access, world.client.id, jwks=JWKS, grace_seconds=0, clock=world.clock
    )

    assert changed.secrets == ()


async def test_wrong_keys_leave_a_client_as_it_was(world: World) -> None:
    with pytest.raises(ConfigurationError):
        await set_keys(
            world.access, world.client.id, jwks="{}", grace_seconds=0, clock=world.clock
        )

    assert await world.access.client(world.client.id) == world.client


async def test_an_unknown_client_gets_no_keys(world: World) -> None:
    with pytest.raises(NoSuchRecord) as refused:
        await set_keys(world.access, "unknown", jwks=JWKS, grace_seconds=0, clock=world.clock)

    assert (refused.value.kind, refused.value.record_id) == ("client", "unknown")


async def test_a_person_gets_no_keys_of_an_application(world: World) -> None:
    person, _ = await added(world, is_person=True)

    with pytest.raises(ConfigurationError) as refused:
        await set_keys(world.access, person.id, jwks=JWKS, grace_seconds=0, clock=world.clock)

    assert str(refused.value) == IS_PERSON
    assert await world.access.client(person.id) == person


async def test_a_person_gets_no_secret(world: World) -> None:
    person, _ = await added(world, is_person=True)

    with pytest.raises(ConfigurationError) as refused:
        await rotate_client(world.access, person.id, grace_seconds=0, clock=world.clock)

    assert str(refused.value) == IS_PERSON
    assert await world.access.client(person.id) == person


@pytest.mark.parametrize("keys", [{"jwks": JWKS}, {"jwks_url": URL}])
async def test_a_client_that_signs_gets_no_secret(world: World, keys: dict[str, str]) -> None:
    client, _ = await added(world, **keys)

    with pytest.raises(ConfigurationError) as refused:
        await rotate_client(world.access, client.id, grace_seconds=0, clock=world.clock)

    assert str(refused.value) == SIGNS
    assert await world.access.client(client.id) == client


@pytest.mark.parametrize("keys", [{"jwks": JWKS}, {"jwks_url": URL}])
async def test_the_end_of_its_secrets_is_not_the_end_of_a_client_with_keys(
    world: World, keys: dict[str, str]
) -> None:
    changed = await set_keys(
        world.access, world.client.id, grace_seconds=60, clock=world.clock, **keys
    )

    assert access_end(changed) is None


@pytest.mark.parametrize(
    ("jwks", "jwks_url", "has"),
    [
        (JWKS, "", True),
        ("", "", True),
        (OTHER, "", False),
        ("", URL, False),
        (JWKS, URL, False),
        (PASSKEYS, "", True),
        ("{}", "", True),  # no keys are wanted of a set that cannot be read
    ],
)
async def test_a_client_has_the_wanted_keys_or_not(
    world: World, jwks: str, jwks_url: str, *, has: bool
) -> None:
    client, _ = await added(world, jwks=JWKS)

    assert has_keys(client, jwks=jwks, jwks_url=jwks_url) is has


async def test_a_client_has_the_wanted_url_of_keys(world: World) -> None:
    client, _ = await added(world, jwks_url=URL)

    assert has_keys(client, jwks="", jwks_url=URL)
    assert not has_keys(client, jwks="", jwks_url=f"{URL}2")
