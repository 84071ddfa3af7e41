"""Persons are added, invited, and lose a passkey."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from fhirpub.administration import clients, persons, tenants
from fhirpub.audit.record import BEGUN
from fhirpub.auth.keys import KeyRing
from fhirpub.auth.statements import OneTimeStatements
from fhirpub.errors import ConfigurationError, FhirpubError, InvalidContent, NotPossible
from fhirpub.fhir.times import instant
from fhirpub.runtime.clock import DAY_MS
from tests.unit.administration.declared import declared
from tests.unit.administration.office import Office

BASE_URL = "https://console.example.org"


@pytest.fixture
def people(office: Office) -> Office:
    """An office where persons sign in by passkeys."""
    console = replace(office.administration.config.console, enabled=True, base_url=BASE_URL)
    return office.with_config(console=console)


async def claims_of(office: Office, url: str, *, forward: float = 0) -> dict[str, object]:
    (code,) = parse_qs(urlsplit(url).query)["code"]
    office.clock.forward(seconds=forward)
    auth = office.administration.config.auth
    ring = KeyRing(office.store, auth, clock=office.clock)
    once = OneTimeStatements(ring, office.store, clock=office.clock)
    return dict(await once.read("invitation", code))


async def test_a_person_is_added_with_a_link(people: Office, lab: str) -> None:
    added = await people.run(persons.ADD, tenant="Lab", name="Ana")

    assert added["name"] == "Ana"
    assert added["url"].startswith(f"{BASE_URL}/console/invitation?code=")
    assert added["valid_until"] == instant(people.clock() + 7 * DAY_MS)
    claims = await claims_of(people, added["url"])
    assert (claims["sub"], claims["name"]) == (added["client_id"], "Ana")


async def test_a_person_has_no_secret(people: Office, lab: str) -> None:
    added = await people.run(
        persons.ADD, tenant=lab, name="Ana", scopes=["system/*.rs"], networks=["192.0.2.0/24"]
    )

    client = await people.administration.client(added["client_id"])
    assert (client.secrets, client.jwks, client.tenant) == ((), "", lab)
    assert (client.scopes, client.networks) == (("system/*.rs",), ("192.0.2.0/24",))
    assert client.environment == "sandbox"


async def test_a_link_is_valid_for_seven_days(people: Office, lab: str) -> None:
    added = await people.run(persons.ADD, tenant=lab, name="Ana")

    assert await claims_of(people, added["url"], forward=7 * 86_400 - 1)
    with pytest.raises(FhirpubError):
        await claims_of(people, added["url"], forward=1)


async def test_a_person_is_recorded_and_then_the_invitation(people: Office, lab: str) -> None:
    before = await people.records()

    id_ = (await people.run(persons.ADD, tenant=lab, name="Ana"))["client_id"]

    name = f"Client/{id_}"
    assert (await people.records())[len(before) :] == [
        (lab, "client.add", BEGUN, []),
        (lab, "client.add", 200, [name]),
        (lab, "client.invite", BEGUN, [name]),
        (lab, "client.invite", 200, [name]),
    ]


async def test_a_person_needs_a_name(people: Office, lab: str) -> None:
    with pytest.raises(InvalidContent, match="name: is required"):
        await people.run(persons.ADD, tenant=lab)


async def test_without_a_console_no_person_is_added(office: Office, lab: str) -> None:
    with pytest.raises(NotPossible, match=r"the console is not served"):
        await office.run(persons.ADD, tenant=lab, name="Ana")

    assert await office.store.clients() == []


async def test_those_who_sign_in_elsewhere_get_no_link(people: Office, lab: str) -> None:
    console = replace(
        people.administration.config.console, enabled=False, oidc_issuer="https://op.example.org"
    )

    added = await people.with_config(console=console).run(persons.ADD, tenant=lab, name="Ana")

    assert added == {"client_id": added["client_id"], "name": "Ana"}


async def test_a_disabled_tenant_gets_no_person(people: Office, lab: str) -> None:
    await people.run(tenants.DISABLE, tenant=lab)

    with pytest.raises(ConfigurationError):
        await people.run(persons.ADD, tenant=lab, name="Ana")


async def test_a_person_is_invited_again_by_another_link(people: Office, lab: str) -> None:
    first = await people.run(persons.ADD, tenant=lab, name="Ana")

    again = await people.run(persons.INVITE, client="Ana")

    assert again["client_id"] == first["client_id"]
    assert again["url"] != first["url"]
    assert (await claims_of(people, again["url"]))["sub"] == first["client_id"]


async def test_an_application_is_not_invited(people: Office, lab: str) -> None:
    id_ = (await people.run(clients.ADD, tenant=lab))["client_id"]

    with pytest.raises(NotPossible, match="has a secret or keys of an application"):
        await people.run(persons.INVITE, client=id_)

    last = (await people.records())[-1]
    assert last == (lab, "client.invite", 400, [f"Client/{id_}"])


async def test_a_disabled_person_is_not_invited(people: Office, lab: str) -> None:
    id_ = (await people.run(persons.ADD, tenant=lab, name="Ana"))["client_id"]
    await people.run(clients.DISABLE, client=id_)

    with pytest.raises(NotPossible, match="is disabled for good"):
        await people.run(persons.INVITE, client=id_)


async def test_a_person_of_the_other_environment_is_invited_there(
    people: Office, lab: str
) -> None:
    id_ = (await people.run(persons.ADD, tenant=lab, name="Ana"))["client_id"]
    auth = replace(people.administration.config.auth, environment="production")

    with pytest.raises(NotPossible, match=f"the client {id_} is of sandbox: invite it there"):
        await people.with_config(auth=auth).run(persons.INVITE, client=id_)


async def test_without_a_console_no_person_is_invited(
    people: Office, office: Office, lab: str
) -> None:
    id_ = (await people.run(persons.ADD, tenant=lab, name="Ana"))["client_id"]
    before = await office.records()

    with pytest.raises(NotPossible):
        await office.run(persons.INVITE, client=id_)

    assert await office.records() == before


async def test_a_passkey_that_a_person_has_not_cannot_be_removed(people: Office, lab: str) -> None:
    id_ = (await people.run(persons.ADD, tenant=lab, name="Ana"))["client_id"]

    with pytest.raises(FhirpubError):
        await people.run(persons.REMOVE_PASSKEY, client=id_, kid="x")

    assert {one[:2] for one in (await people.records())[-2:]} >= {(lab, "client.passkey.remove")}


@pytest.mark.parametrize("kid", ["", "x" * 256])
async def test_the_name_of_a_passkey_has_up_to_255_characters(
    people: Office, lab: str, kid: str
) -> None:
    id_ = (await people.run(persons.ADD, tenant=lab, name="Ana"))["client_id"]

    with pytest.raises(InvalidContent, match="kid: "):
        await people.run(persons.REMOVE_PASSKEY, client=id_, kid=kid)


def test_the_operations_are_those_that_clients_know() -> None:
    assert declared(persons.OPERATIONS) == {
        "client add-person": [
            "POST /tenants/{tenant}/persons 201",
            "creates a store, as client.add",
            "path tenant! string",
            "body name! string 200 characters",
            "body scopes strings",
            "body networks strings 100 characters",
        ],
        "client invite": [
            "POST /clients/{client}/invitation 201",
            "creates a store",
            "path client! string",
        ],
        "client remove-passkey": [
            "DELETE /clients/{client}/passkeys/{kid} 200",
            "final, creates a store, as client.passkey.remove",
            "path client! string",
            "path kid! string 255 characters",
        ],
    }
