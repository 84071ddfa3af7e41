from __future__ import annotations

import sys
from dataclasses import replace

import orjson
import pytest

from fhirpub.auth.assertions.signing import new_key_pair
from fhirpub.auth.clients import NewClient, add_client, edit_client, is_person
from fhirpub.auth.passkeys import (
    MAX_PASSKEYS,
    add_passkey,
    check_invitable,
    ids_of_passkeys,
    passkey,
    remove_passkey,
    why_none,
)
from fhirpub.config.console import ConsoleConfig
from fhirpub.config.settings import Config
from fhirpub.errors import NotPossible
from fhirpub.storage.contract import Client
from tests.unit.auth.conftest import World


def a_passkey(kid: str) -> dict[str, str]:
    _private, public = new_key_pair()
    return {**{name: public["keys"][0][name] for name in ("kty", "crv", "x", "y")}, "kid": kid}


async def a_person(world: World) -> Client:
    new = NewClient(tenant=world.client.tenant, name="Ada", environment="sandbox", is_person=True)
    return (await add_client(world.access, new, clock=world.clock))[0]


async def test_a_person_is_one_with_passkeys_or_without_anything(world: World) -> None:
    person = await a_person(world)
    assert is_person(person)

    with_key = await add_passkey(world.access, person.id, a_passkey("passkey:1"))

    assert is_person(with_key)
    assert not is_person(world.client)
    assert not is_person(replace(person, jwks_url="https://ward.example.org/jwks.json"))


async def test_a_key_of_another_name_makes_no_person(world: World) -> None:
    person = await a_person(world)
    keys = {"keys": [a_passkey("passkey:1"), a_passkey("signing")]}

    mixed = replace(person, jwks=orjson.dumps(keys).decode())

    assert not is_person(mixed)
    assert passkey(mixed, "signing") is None


async def test_the_same_passkey_is_kept_once(world: World) -> None:
    person = await a_person(world)
    await add_passkey(world.access, person.id, a_passkey("passkey:1"))

    changed = await add_passkey(world.access, person.id, a_passkey("passkey:1"))

    assert changed.jwks.count('"passkey:1"') == 1


async def test_a_person_has_so_many_passkeys_at_most(world: World) -> None:
    person = await a_person(world)
    for number in range(MAX_PASSKEYS):
        await add_passkey(world.access, person.id, a_passkey(f"passkey:{number}"))

    with pytest.raises(NotPossible, match="which is the limit"):
        await add_passkey(world.access, person.id, a_passkey("passkey:more"))


async def test_what_else_changes_meanwhile_is_kept(world: World) -> None:
    person = await a_person(world)
    await add_passkey(world.access, person.id, a_passkey("passkey:1"))
    await edit_client(world.access, person.id, networks=["192.0.2.0/24"])

    changed = await remove_passkey(world.access, person.id, "passkey:1")

    assert (changed.jwks, changed.networks) == ("", ("192.0.2.0/24",))


def console_at(base_url: str) -> Config:
    return replace(Config(), console=ConsoleConfig(enabled=True, base_url=base_url))


def test_without_the_library_the_reason_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = console_at("https://console.example.org")
    assert why_none(config) == ""

    monkeypatch.setitem(sys.modules, "webauthn", None)  # which makes its import fail

    assert "pip install 'fhirpub[console]'" in why_none(config)


def test_a_service_without_the_console_has_no_passkeys() -> None:
    assert "set [console] enabled" in why_none(Config())


@pytest.mark.parametrize(
    ("base_url", "reason"),
    [
        ("https://console.example.org", ""),
        ("https://localhost:8080", ""),
        ("http://localhost:8080", ""),
        ("http://console.localhost", ""),
        ("http://console.example.org", "https only"),
        ("http://localhost.example.org", "https only"),
        ("http://127.0.0.1:8080", "only an address"),
        ("https://192.0.2.1", "only an address"),
        ("https://[2001:db8::1]", "only an address"),
    ],
)
def test_passkeys_need_https_and_the_name_of_a_host(base_url: str, reason: str) -> None:
    said = why_none(console_at(base_url))

    assert reason in said
    assert bool(said) is bool(reason)


def test_the_reason_names_the_url_and_the_setting() -> None:
    said = why_none(console_at("http://console.example.org"))

    assert "http://console.example.org has none: set [console] base_url" in said


async def test_the_other_passkeys_of_a_person_are_kept(world: World) -> None:
    person = await a_person(world)
    for number in range(3):
        await add_passkey(world.access, person.id, a_passkey(f"passkey:{number}"))

    changed = await remove_passkey(world.access, person.id, "passkey:1")

    assert ids_of_passkeys(changed) == ["0", "2"]
    assert is_person(changed)


async def test_a_passkey_that_is_not_there_cannot_be_removed(world: World) -> None:
    person = await a_person(world)
    kept = await add_passkey(world.access, person.id, a_passkey("passkey:1"))

    with pytest.raises(NotPossible, match=rf"{person.id} has no passkey passkey:2"):
        await remove_passkey(world.access, person.id, "passkey:2")

    assert await world.access.client(person.id) == kept


async def test_a_passkey_replaces_the_one_of_its_name_only(world: World) -> None:
    person = await a_person(world)
    for kid in ("passkey:1", "passkey:2"):
        await add_passkey(world.access, person.id, a_passkey(kid))
    other = a_passkey("passkey:1")

    changed = await add_passkey(world.access, person.id, other)

    assert ids_of_passkeys(changed) == ["2", "1"]
    found = passkey(changed, "passkey:1")
    assert found is not None
    assert found.jwk["x"] == other["x"]


async def test_an_application_cannot_get_a_passkey(world: World) -> None:
    with pytest.raises(NotPossible, match="has a secret or keys of an application"):
        await add_passkey(world.access, world.client.id, a_passkey("passkey:1"))

    assert await world.access.client(world.client.id) == world.client


async def test_a_disabled_person_cannot_get_a_passkey(world: World) -> None:
    person = await a_person(world)

    with pytest.raises(NotPossible, match="disabled for good"):
        check_invitable(replace(person, disabled=True))


async def test_a_person_below_the_limit_can_get_a_passkey(world: World) -> None:
    person = await a_person(world)
    for number in range(MAX_PASSKEYS - 1):
        person = await add_passkey(world.access, person.id, a_passkey(f"passkey:{number}"))

    check_invitable(person)


async def test_a_person_whose_last_passkey_is_removed_is_as_one_without(world: World) -> None:
    person = await a_person(world)
    await add_passkey(world.access, person.id, a_passkey("passkey:1"))

    changed = await remove_passkey(world.access, person.id, "passkey:1")

    assert changed == person
    check_invitable(changed)
