"""What is refused of a client's keys, and with them, changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration import clients
from fhirpub.auth.assertions.signing import new_key_pair
from fhirpub.errors import ConfigurationError, InvalidContent
from fhirpub.fhir.strict_json import loads
from tests.unit.administration.declared import declared
from tests.unit.administration.office import Office

URL = "https://lab.example.org/jwks"


def key_set() -> dict[str, Any]:
    _private, public = new_key_pair()
    return dict(public)


async def test_no_keys_are_replaced_if_the_networks_beside_them_are_wrong(
    office: Office, lab: str
) -> None:
    id_ = (await office.run(clients.ADD, tenant=lab))["client_id"]
    before = await office.store.client(id_)

    with pytest.raises(ConfigurationError, match="is no network"):
        await office.run(clients.EDIT, client=id_, jwks=key_set(), networks=["ward"])

    assert await office.store.client(id_) == before
    assert (await office.records())[-1] == (lab, "client.edit", 400, [f"Client/{id_}"])


@pytest.mark.parametrize("operation", ["ADD", "PUT", "EDIT"])
async def test_keys_are_given_as_a_set_or_by_their_url(
    office: Office, lab: str, operation: str
) -> None:
    id_ = (await office.run(clients.ADD, tenant=lab, name="ward"))["client_id"]
    before = await office.store.clients()
    meant = {"ADD": {"tenant": lab}, "PUT": {"tenant": lab, "key": "x"}, "EDIT": {"client": id_}}

    with pytest.raises(InvalidContent) as refused:
        await office.run(
            getattr(clients, operation), **meant[operation], jwks=key_set(), jwks_url=URL
        )

    assert [str(issue.expression) for issue in refused.value.issues] == ["jwks_url"]
    assert await office.store.clients() == before


async def test_keys_of_a_client_with_a_key_of_the_caller_are_replaced_by_those_that_are_sent(
    office: Office, lab: str
) -> None:
    first, second = key_set(), key_set()
    added = await office.run(clients.PUT, tenant=lab, key="ward", jwks=first)

    await office.run(clients.PUT, tenant=lab, key="ward", jwks=second)

    found = await office.store.client(added["client_id"])
    assert found is not None
    (kept,), (sent,) = loads(found.jwks.encode())["keys"], second["keys"]
    assert (kept["x"], kept["y"]) == (sent["x"], sent["y"])


async def test_an_address_of_keys_replaces_the_keys_that_were_sent(
    office: Office, lab: str
) -> None:
    added = await office.run(clients.PUT, tenant=lab, key="ward", jwks=key_set())

    await office.run(clients.PUT, tenant=lab, key="ward", jwks_url="https://93.184.216.34/jwks")

    found = await office.store.client(added["client_id"])
    assert found is not None
    assert (found.jwks, found.jwks_url) == ("", "https://93.184.216.34/jwks")


def test_the_operations_are_those_that_clients_know() -> None:
    assert declared(clients.OPERATIONS) == {
        "client add": [
            "POST /tenants/{tenant}/clients 201",
            "creates a store",
            "path tenant! string",
            "body name string 200 characters",
            "body scopes strings",
            "body networks strings 100 characters",
            "body valid_days integer >=0 <=36500",
            "body jwks object",
            "body jwks_url string",
        ],
        "client add --key": [
            "PUT /tenants/{tenant}/clients/{key} 200",
            "creates a store",
            "path tenant! string",
            "path key! string",
            "body name string 200 characters",
            "body scopes strings",
            "body networks strings 100 characters",
            "body valid_days integer >=0 <=36500",
            "body jwks object",
            "body jwks_url string",
        ],
        "client list": [
            "GET /clients 200",
            "creates a store",
            "query tenant string",
        ],
        "client show": [
            "GET /clients/{client} 200",
            "creates a store",
            "path client! string",
        ],
        "client rotate": [
            "POST /clients/{client}/rotate 200",
            "creates a store",
            "path client! string",
            "body grace_seconds integer >=0 <=9007199254740992",
            "body valid_days integer >=0 <=36500",
        ],
        "client scopes": [
            "PUT /clients/{client}/scopes 200",
            "creates a store",
            "path client! string",
            "body scopes! strings",
        ],
        "client edit": [
            "PATCH /clients/{client} 200",
            "creates a store",
            "path client! string",
            "body name string 200 characters",
            "body networks strings 100 characters",
            "body jwks object",
            "body jwks_url string",
        ],
        "client disable": [
            "POST /clients/{client}/disable 200",
            "final, creates a store",
            "path client! string",
        ],
    }
