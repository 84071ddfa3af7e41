"""Tenants, clients and keys become documents, and those of earlier releases are read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.encryption.cipher import SecretCipher
from fhirpub.sealed import is_sealed
from fhirpub.storage.contract import Client, ClientSecret
from fhirpub.storage.mongodb.credentials.documents import (
    client_document,
    client_filter,
    client_of,
    key_document,
    key_of,
    tenant_document,
    tenant_of,
)
from fhirpub.tenant import Tenant
from fhirpub.testing.samples import LAB
from fhirpub.testing.store_contract import a_client, a_key

CLEAR, SEALING = SecretCipher(), SecretCipher([b"k" * 32])
TENANT = Tenant(LAB, "Lab", b"s" * 32, 5, disabled=True)
PLAIN = a_client(
    id="c",
    name="Ward",
    environment="production",
    created=7,
    secrets=(ClientSecret(b"a", 9), ClientSecret(b"b")),
    scopes=("system/*.rs", "x"),
    disabled=True,
)
FULL = replace(
    PLAIN,
    networks=("192.0.2.0/24", "2001:db8::/32"),
    jwks='{"keys":[]}',
    jwks_url="https://lab.example.org/jwks",
)
DOCUMENT = {
    "_id": "c",
    "tenant": LAB,
    "name": "Ward",
    "environment": "production",
    "created": 7,
    "secrets": [{"digest": b"a", "expires": 9}, {"digest": b"b", "expires": None}],
    "scopes": ["system/*.rs", "x"],
    "disabled": True,
}
REST = {
    "networks": ["192.0.2.0/24", "2001:db8::/32"],
    "jwks": '{"keys":[]}',
    "jwks_url": "https://lab.example.org/jwks",
}


def test_the_id_of_a_tenant_is_its_key() -> None:
    assert tenant_document(TENANT, CLEAR) == {
        "_id": LAB,
        "name": "Lab",
        "salt": b"s" * 32,
        "created": 5,
        "disabled": True,
    }


@pytest.mark.parametrize("cipher", [CLEAR, SEALING], ids=["clear", "sealed"])
@pytest.mark.parametrize("disabled", [False, True])
def test_a_tenant_comes_back_from_its_document(cipher: SecretCipher, *, disabled: bool) -> None:
    tenant = replace(TENANT, disabled=disabled)

    assert tenant_of(tenant_document(tenant, cipher), cipher) == tenant


def test_the_salt_of_a_tenant_is_bound_to_it() -> None:
    moved = {**tenant_document(TENANT, SEALING), "_id": "other"}

    assert is_sealed(moved["salt"])
    assert is_sealed(tenant_of(moved, SEALING).salt)


def test_a_client_without_networks_and_keys_is_as_it_was_before_there_were_any() -> None:
    assert client_document(PLAIN) == DOCUMENT


@pytest.mark.parametrize("name", REST)
def test_an_optional_field_of_a_client_is_stored_if_it_has_a_value(name: str) -> None:
    changes: dict[str, Any] = {name: getattr(FULL, name)}
    client = replace(PLAIN, **changes)

    assert client_document(client) == {**DOCUMENT, name: REST[name]}


def test_a_client_is_found_by_all_of_its_fields() -> None:
    assert client_filter(FULL) == {**DOCUMENT, **REST}


def test_a_client_without_a_field_is_found_where_it_is_missing() -> None:
    assert client_filter(PLAIN) == {**DOCUMENT, "networks": None, "jwks": None, "jwks_url": None}


@pytest.mark.parametrize("client", [PLAIN, FULL, replace(PLAIN, disabled=False, secrets=())])
def test_a_client_comes_back_from_its_document(client: Client) -> None:
    assert client_of(client_document(client)) == client


def test_what_a_document_lacks_is_empty() -> None:
    client = client_of(DOCUMENT)

    assert (client.networks, client.jwks, client.jwks_url) == ((), "", "")


def test_a_key_comes_back_from_its_document() -> None:
    key = a_key("a", created=2, algorithm="RS256", environment="production", retired=9)

    assert key_document(key) == {
        "kid": "a",
        "algorithm": "RS256",
        "environment": "production",
        "created": 2,
        "private_pem": b"pem",
        "retired": 9,
    }
    assert key_of(key_document(key)) == key
