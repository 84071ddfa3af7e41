"""Tenants, clients and keys become rows of the file, and come back from them as they were."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.encryption.cipher import SecretCipher
from fhirpub.sealed import is_sealed
from fhirpub.storage.contract import Client, ClientSecret
from fhirpub.storage.secret_contract import StoredSecret
from fhirpub.storage.sqlite.credentials.rows import (
    client_of,
    client_row,
    key_of,
    key_row,
    secret_of,
    tenant_of,
    tenant_row,
)
from fhirpub.tenant import Tenant
from fhirpub.testing.samples import LAB
from fhirpub.testing.store_contract import a_client, a_key

CLEAR, SEALING = SecretCipher(), SecretCipher([b"k" * 32])
TENANT = Tenant(LAB, "Lab", b"s" * 32, 5, disabled=True)
CLIENT = a_client(
    id="c",
    name="Ward",
    environment="production",
    created=7,
    secrets=(ClientSecret(b"\x00\xff", 9), ClientSecret(b"b")),
    scopes=("system/*.rs", "x"),
    disabled=True,
    networks=("192.0.2.0/24",),
    jwks='{"keys":[]}',
    jwks_url="https://lab.example.org/jwks",
)
KEY = a_key("a", created=2, algorithm="RS256", environment="production", retired=9)


def test_a_tenant_is_a_row_in_the_order_of_its_columns() -> None:
    assert tenant_row(TENANT, CLEAR) == (LAB, "Lab", b"s" * 32, 5, True)


@pytest.mark.parametrize("cipher", [CLEAR, SEALING], ids=["clear", "sealed"])
def test_a_tenant_comes_back_from_its_row(cipher: SecretCipher) -> None:
    assert tenant_of(tenant_row(TENANT, cipher), cipher) == TENANT


@pytest.mark.parametrize(("stored", "disabled"), [(0, False), (1, True)])
def test_whether_a_tenant_is_disabled_is_a_number_in_the_file(
    stored: int, *, disabled: bool
) -> None:
    assert tenant_of((LAB, "Lab", b"s", 5, stored), CLEAR).disabled is disabled


def test_the_salt_of_a_tenant_is_bound_to_it() -> None:
    row = ("other", *tenant_row(TENANT, SEALING)[1:])

    assert is_sealed(row[2])
    assert is_sealed(tenant_of(row, SEALING).salt)


def test_a_client_is_a_row_in_the_order_of_its_columns() -> None:
    assert client_row(CLIENT) == (
        "c",
        LAB,
        "Ward",
        "production",
        7,
        '[["00ff", 9], ["62", null]]',
        '["system/*.rs", "x"]',
        True,
        '["192.0.2.0/24"]',
        '{"keys":[]}',
        "https://lab.example.org/jwks",
    )


@pytest.mark.parametrize("client", [CLIENT, a_client(), replace(CLIENT, disabled=False)])
def test_a_client_comes_back_from_its_row(client: Client) -> None:
    assert client_of(client_row(client)) == client


@pytest.mark.parametrize(("stored", "disabled"), [(0, False), (1, True)])
def test_whether_a_client_is_disabled_is_a_number_in_the_file(
    stored: int, *, disabled: bool
) -> None:
    row = client_row(CLIENT)

    assert client_of((*row[:7], stored, *row[8:])).disabled is disabled


def test_a_key_is_a_row_in_the_order_of_its_columns() -> None:
    assert key_row(KEY, CLEAR) == ("a", "RS256", "production", 2, b"pem", 9)


@pytest.mark.parametrize("cipher", [CLEAR, SEALING], ids=["clear", "sealed"])
def test_a_key_comes_back_from_its_row(cipher: SecretCipher) -> None:
    assert key_of(key_row(KEY, cipher), cipher) == KEY


@pytest.mark.parametrize("place", [0, 2], ids=["name", "environment"])
def test_a_private_key_is_bound_to_its_name_and_its_environment(place: int) -> None:
    row = [*key_row(KEY, SEALING)]
    row[place] = "sandbox"

    assert is_sealed(key_of(tuple(row), SEALING).private_pem)


@pytest.mark.parametrize(("stored", "in_use"), [(0, False), (1, True)])
def test_a_stored_secret_is_read_with_its_owner(stored: int, *, in_use: bool) -> None:
    found = secret_of(("salt", LAB, b"s", stored))

    assert found == StoredSecret(purpose="salt", owner=LAB, value=b"s", in_use=in_use)
    assert found.in_use is in_use
