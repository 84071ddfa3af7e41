from __future__ import annotations

import sys
from dataclasses import replace

import orjson
import pytest

from fhirpub.auth.assertions.signing import new_key_pair
from fhirpub.auth.clients import NewClient, add_client, edit_client, is_person
from fhirpub.auth.passkeys import MAX_PASSKEYS, add_passkey, passkey, remove_passkey, why_none
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


def test_without_the_library_the_reason_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    console = ConsoleConfig(enabled=True, base_url="https://console.example.org")
    config = replace(Config(), console=console)
    assert why_none(config) == ""

    monkeypatch.setitem(sys.modules, "webauthn", None)  # which makes its import fail

    assert "pip install 'fhirpub[console]'" in why_none(config)


def test_a_service_without_the_console_has_no_passkeys() -> None:
    assert "set [console] enabled" in why_none(Config())
