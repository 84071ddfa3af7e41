"""Tenants, clients and keys, as a server keeps them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from fhirpub.encryption.cipher import SecretCipher
from fhirpub.sealed import is_sealed
from fhirpub.storage.mongodb.store import MongoStore
from fhirpub.tenant import Tenant
from fhirpub.testing.contracts.store.records import a_client, a_key
from fhirpub.testing.samples import new_id

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def store(shared: MongoStore) -> Iterator[MongoStore]:
    """A store with a key."""
    before, shared.cipher = shared.cipher, SecretCipher([b"k" * 32])
    yield shared
    shared.cipher = before


async def test_a_tenant_is_read_as_it_was_put_and_its_salt_is_sealed(store: MongoStore) -> None:
    tenant = Tenant.new("Lab", created=1)

    await store.put_tenant(tenant)

    assert await store.tenant(tenant.id) == tenant
    assert tenant in await store.tenants()
    (stored,) = await store._list("tenant", {"_id": tenant.id})
    assert is_sealed(stored["salt"])
    assert await store.tenant(new_id()) is None


async def test_a_tenant_is_disabled_and_enabled(store: MongoStore) -> None:
    tenant = Tenant.new("Lab", created=1)
    await store.put_tenant(tenant)

    await store.change_tenant(tenant.id, disabled=True)
    assert await store.tenant(tenant.id) == replace(tenant, disabled=True)

    await store.change_tenant(tenant.id, disabled=False)
    assert await store.tenant(tenant.id) == tenant

    await store.change_tenant(tenant.id, name="Clinic")
    assert await store.tenant(tenant.id) == replace(tenant, name="Clinic")


async def test_tenants_are_listed_oldest_first(store: MongoStore) -> None:
    tenants = [Tenant.new("Lab", created=created) for created in (3, 1, 2)]
    for tenant in tenants:
        await store.put_tenant(tenant)

    found = [tenant for tenant in await store.tenants() if tenant in tenants]

    assert [tenant.created for tenant in found] == [1, 2, 3]


async def test_clients_are_those_of_a_tenant_oldest_first(store: MongoStore) -> None:
    tenant = new_id()
    second, first = (a_client(tenant=tenant, created=created) for created in (2, 1))
    other = a_client()
    for client in (second, first, other):
        assert await store.add_client(client)
    assert not await store.add_client(replace(first, name="again"))

    assert await store.clients(tenant=tenant) == [first, second]
    assert {first.id, second.id, other.id} <= {client.id for client in await store.clients()}
    assert await store.client(first.id) == first
    assert await store.client(new_id()) is None


async def test_a_client_is_replaced_over_the_one_that_was_read_alone(store: MongoStore) -> None:
    client = a_client()
    await store.add_client(client)
    changed = replace(client, name="Clinic")

    assert not await store.replace_client(changed, over=changed)
    assert await store.replace_client(changed, over=client)
    assert not await store.replace_client(changed, over=client)
    assert await store.client(client.id) == changed


async def test_keys_are_those_of_an_environment_oldest_first_and_sealed(
    store: MongoStore,
) -> None:
    kid = new_id()
    second, first = a_key(f"{kid}2", created=2), a_key(f"{kid}1", created=1)
    theirs = a_key(f"{kid}3", environment="production")
    for key in (second, first, theirs):
        await store.put_signing_key(key)

    found = [key for key in await store.signing_keys("sandbox") if key.kid.startswith(kid)]
    assert found == [first, second]
    assert theirs in await store.signing_keys("production")
    await store.put_signing_key(replace(first, retired=9))
    found = [key for key in await store.signing_keys("sandbox") if key.kid.startswith(kid)]
    assert found == [replace(first, retired=9), second]
    stored = {key.kid: key.private_pem for key in await store._stored_keys()}
    assert all(is_sealed(stored[key.kid]) for key in (first, second, theirs))


async def test_keys_that_are_put_at_the_same_time_are_all_kept(store: MongoStore) -> None:
    environment = new_id()
    keys = [a_key(str(number), environment=environment, created=number) for number in range(8)]

    await asyncio.gather(*map(store.put_signing_key, keys))

    assert await store.signing_keys(environment) == keys


async def test_a_key_that_was_retired_keeps_its_time_when_another_is(store: MongoStore) -> None:
    environment = new_id()
    first, second, third = (
        a_key(kid, environment=environment, created=created)
        for kid, created in (("1", 10), ("2", 20), ("3", 30))
    )
    for new, expected in ((first, []), (second, ["1"]), (third, ["2"])):
        assert await store.rotate_signing_key(new, expected=expected)

    assert [key.retired for key in await store.signing_keys(environment)] == [20, 30, None]


async def test_a_rotation_retires_the_keys_of_its_environment_that_are_expected(
    store: MongoStore,
) -> None:
    await store._change_keys(lambda _keys: [])
    old, theirs = a_key("old"), a_key("theirs", environment="production")
    for key in (old, theirs):
        await store.put_signing_key(key)
    new = a_key("new", created=5)

    assert not await store.rotate_signing_key(new, expected=[])
    assert not await store.rotate_signing_key(new, expected=["old", "theirs"])
    assert await store.rotate_signing_key(new, expected=["old"])
    assert not await store.rotate_signing_key(a_key("newer"), expected=["old"])

    assert await store.signing_keys("sandbox") == [replace(old, retired=5), new]
    assert await store.signing_keys("production") == [theirs]


async def test_a_secret_is_replaced_if_it_is_still_the_one_that_was_read(
    store: MongoStore,
) -> None:
    tenant, key = Tenant.new("Lab", created=1), a_key(new_id(), retired=3)
    await store.put_tenant(tenant)
    await store.put_signing_key(key)
    await store.put_signing_key(a_key(f"{key.kid}2"))
    await store.change_tenant(tenant.id, disabled=True)
    secrets = {one.owner: one for one in await store.stored_secrets()}
    salt = secrets[tenant.id]
    (pem,) = [one for owner, one in secrets.items() if owner.endswith(key.kid)]
    (kept,) = [one for owner, one in secrets.items() if owner.endswith(f"{key.kid}2")]
    assert (salt.purpose, salt.in_use) == ("salt", False)
    assert (pem.purpose, pem.in_use) == ("private key", False)

    for secret in (salt, pem):
        assert await store.replace_stored_secret(secret, secret.value + b"1")
        assert not await store.replace_stored_secret(secret, secret.value + b"2")

    after = {one.owner: one.value for one in await store.stored_secrets()}
    assert (after[salt.owner], after[pem.owner]) == (salt.value + b"1", pem.value + b"1")
    assert after[kept.owner] == kept.value
    await store._collection("tenant").delete_one({"_id": tenant.id})
    await store._change_keys(lambda _keys: [])
