"""Salts and private keys are encrypted for their owners and purposes, and shown in no text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.encryption.cipher import SecretCipher
from fhirpub.storage.records import SigningKey
from fhirpub.storage.secret_contract import (
    StoredSecret,
    owner_of_key,
    seal_key,
    seal_salt,
    unseal_key,
    unseal_salt,
)
from fhirpub.tenant import Tenant

_CIPHER = SecretCipher([b"k" * 32])
_TENANT = replace(Tenant.new("Lab", created=1), salt=b"s" * 32)
_KEY = SigningKey(
    kid="a", algorithm="ES256", environment="sandbox", created=1, private_pem=b"-----BEGIN"
)


def test_a_stored_secret_is_in_use_unless_it_is_known_not_to_be() -> None:
    assert StoredSecret(purpose="salt", owner="t", value=b"v").in_use is True


def test_a_stored_secret_is_shown_without_its_value() -> None:
    shown = repr(StoredSecret(purpose="salt", owner="t", value=b"confidential"))

    assert "confidential" not in shown
    assert "owner='t'" in shown


def test_the_owner_of_a_private_key_is_its_environment_and_its_id() -> None:
    assert owner_of_key("sandbox", "a") == "sandbox/a"


def test_a_salt_is_stored_encrypted_and_read_in_clear() -> None:
    stored = seal_salt(_TENANT, _CIPHER)

    assert _TENANT.salt not in stored
    assert unseal_salt(_TENANT.id, stored, _CIPHER) == _TENANT.salt


def test_a_salt_is_of_no_use_to_another_tenant() -> None:
    stored = seal_salt(_TENANT, _CIPHER)

    assert unseal_salt("other", stored, _CIPHER) == stored


def test_a_salt_without_a_key_is_stored_in_clear() -> None:
    assert seal_salt(_TENANT, SecretCipher()) == _TENANT.salt


def test_a_private_key_is_stored_encrypted_and_read_in_clear() -> None:
    stored = seal_key(_KEY, _CIPHER)

    assert _KEY.private_pem not in stored
    assert unseal_key("sandbox", "a", stored, _CIPHER) == _KEY.private_pem


@pytest.mark.parametrize(("environment", "kid"), [("production", "a"), ("sandbox", "b")])
def test_a_private_key_is_of_no_use_in_another_place(environment: str, kid: str) -> None:
    stored = seal_key(_KEY, _CIPHER)

    assert unseal_key(environment, kid, stored, _CIPHER) == stored


def test_a_salt_is_no_private_key_of_the_same_owner() -> None:
    tenant = replace(_TENANT, id="sandbox/a")
    stored = seal_salt(tenant, _CIPHER)

    assert unseal_key("sandbox", "a", stored, _CIPHER) == stored


def test_a_private_key_is_no_salt_of_the_same_owner() -> None:
    stored = seal_key(_KEY, _CIPHER)

    assert unseal_salt("sandbox/a", stored, _CIPHER) == stored
