"""Secrets are encrypted under the first key, counted, and left alone in a dry run."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration import encryption, endpoints, keys
from fhirpub.audit.record import BEGUN
from fhirpub.errors import ConfigurationError, SecretsUnavailable
from tests.unit.administration.declared import declared
from tests.unit.administration.office import URL, Office

NEW, OTHER = bytes(range(32)), bytes(range(32, 64))


@pytest.fixture
async def filled(office: Office, lab: str) -> Office:
    """A store with secrets of a tenant, a key and an endpoint under an older key."""
    await office.run(keys.ROTATE)
    await office.run(endpoints.ADD, tenant=lab, url=URL)
    office.store.cipher.use([NEW, *office.store.cipher.keys])
    return office


async def reseal(office: Office, **given: Any) -> dict[str, Any]:
    found: dict[str, Any] = await office.run(encryption.RESEAL, **given)
    return found


async def test_everything_gets_under_the_first_key(filled: Office) -> None:
    first = filled.store.cipher.names[0]

    assert await reseal(filled) == {
        "key": first,
        "salts": 1,
        "signing_keys": 1,
        "endpoints": 1,
        "not_decrypted": 0,
    }
    filled.store.cipher.use([NEW])
    again = await reseal(filled)
    assert (again["salts"], again["endpoints"], again["not_decrypted"]) == (0, 0, 0)


async def test_a_dry_run_counts_changes_nothing_and_leaves_no_record(filled: Office) -> None:
    before = await filled.records()

    counted = await reseal(filled, dry_run=True)
    again = await reseal(filled, dry_run=True)

    assert (counted["salts"], counted["signing_keys"], counted["endpoints"]) == (1, 1, 1)
    assert again == counted
    assert await filled.records() == before


async def test_what_is_encrypted_again_is_recorded_for_the_service(filled: Office) -> None:
    before = len(await filled.records())

    await reseal(filled)

    assert (await filled.records())[before:] == [
        ("", "secrets.reseal", BEGUN, []),
        ("", "secrets.reseal", 200, []),
    ]


async def test_what_no_key_decrypts_is_counted_and_stays(filled: Office) -> None:
    filled.store.cipher.use([NEW])

    found = await reseal(filled)

    assert (found["salts"], found["signing_keys"], found["endpoints"]) == (0, 0, 0)
    assert found["not_decrypted"] == 3


async def test_each_tenant_whose_endpoints_no_key_decrypts_is_counted(
    office: Office, lab: str, other: str
) -> None:
    for tenant in (lab, other):
        await office.run(endpoints.ADD, tenant=tenant, url=URL)
    office.store.cipher.use([NEW])

    found = await reseal(office)

    assert (found["endpoints"], found["not_decrypted"]) == (0, 2 + 2)  # with their salts


async def test_what_is_damaged_is_counted_and_stays(filled: Office) -> None:
    (salt,) = [one for one in await filled.store.stored_secrets() if one.purpose == "salt"]
    damaged = salt.value[:-1] + bytes([salt.value[-1] ^ 1])
    await filled.store.replace_stored_secret(salt, damaged)

    found = await reseal(filled)

    assert (found["salts"], found["signing_keys"], found["not_decrypted"]) == (0, 1, 1)
    assert damaged in [one.value for one in await filled.store.stored_secrets()]


async def test_a_tenant_whose_key_is_missing_does_not_keep_those_behind_it(
    office: Office, lab: str, other: str
) -> None:
    first, second = [tenant.id for tenant in await office.store.tenants()]
    await office.run(endpoints.ADD, tenant=first, url=URL)
    office.store.cipher.use([OTHER])
    await office.run(endpoints.ADD, tenant=second, url=URL)
    office.store.cipher.use([NEW, OTHER])

    found = await reseal(office)

    assert found["endpoints"] == 1
    office.store.cipher.use([NEW])
    (theirs,) = await office.store.endpoints(second)
    assert all(office.store.cipher.is_of_first(one.sealed) for one in theirs.secrets)


async def test_without_a_key_the_missing_one_is_named(filled: Office) -> None:
    filled.store.cipher.use([])

    with pytest.raises(ConfigurationError, match="the salt of 1 tenant and 1 signing key"):
        await reseal(filled)


async def test_without_a_key_and_secrets_a_key_is_asked_for(office: Office) -> None:
    office.store.cipher.use([])

    with pytest.raises(SecretsUnavailable):
        await reseal(office)


async def test_a_dry_run_counts_no_endpoint_as_not_decrypted(filled: Office) -> None:
    assert (await reseal(filled, dry_run=True))["not_decrypted"] == 0


def test_the_operations_are_those_that_clients_know() -> None:
    assert declared(encryption.OPERATIONS) == {
        "secrets reseal": [
            "POST /secrets/reseal 200",
            "creates a store",
            "body dry_run boolean",
        ],
    }
