"""Tests of the encryption of salts and signing keys in a store."""

from __future__ import annotations

from dataclasses import replace

from fhirpub.sealed import is_sealed
from fhirpub.storage.store import Store
from fhirpub.tenant import Tenant
from fhirpub.testing.contracts.store.records import (
    a_key,
)

KEY = b"k" * 32
PEM = b"-----BEGIN PRIVATE KEY-----"


class EncryptionContract:
    """Salts and private keys are encrypted at rest, and nothing else of their records changes."""

    async def test_salts_and_private_keys_are_stored_encrypted(
        self, store: Store, other_store: Store
    ) -> None:
        _use(KEY, store, other_store)
        tenant, key = Tenant.new("Lab", created=5), a_key("a", private_pem=PEM)
        await store.put_tenant(tenant)
        await store.put_signing_key(key)
        new = a_key("b", created=9, private_pem=PEM)
        await store.rotate_signing_key(new, expected=["a"])

        values = [secret.value for secret in await store.stored_secrets()]
        clear = [tenant.salt, key.private_pem]
        assert len(values) == 3
        assert all(map(is_sealed, values))
        assert not [value for value in values if any(one in value for one in clear)]
        assert await other_store.tenant(tenant.id) == tenant
        assert await other_store.tenants() == [tenant]
        assert await other_store.signing_keys("sandbox") == [replace(key, retired=9), new]

    async def test_without_a_key_they_are_stored_in_clear(self, store: Store) -> None:
        tenant = Tenant.new("Lab", created=5)
        await store.put_tenant(tenant)

        (secret,) = await store.stored_secrets()
        assert (secret.purpose, secret.owner) == ("salt", tenant.id)
        assert secret.value == tenant.salt

    async def test_with_a_key_those_in_clear_are_read_as_before(self, store: Store) -> None:
        tenant, key = Tenant.new("Lab", created=5), a_key("a")
        await store.put_tenant(tenant)
        await store.put_signing_key(key)

        _use(KEY, store)

        assert await store.tenant(tenant.id) == tenant
        assert await store.signing_keys("sandbox") == [key]

    async def test_without_their_key_they_are_returned_and_written_back_as_stored(
        self, store: Store, other_store: Store
    ) -> None:
        _use(KEY, store)
        tenant, key = Tenant.new("Lab", created=5), a_key("a")
        await store.put_tenant(tenant)
        await store.put_signing_key(key)

        unread = await other_store.tenant(tenant.id)
        (unread_key,) = await other_store.signing_keys("sandbox")
        assert unread is not None
        assert is_sealed(unread.salt)
        assert is_sealed(unread_key.private_pem)
        await other_store.put_tenant(replace(unread, disabled=True))
        await other_store.put_signing_key(replace(unread_key, retired=7))

        assert await store.tenant(tenant.id) == replace(tenant, disabled=True)
        assert await store.signing_keys("sandbox") == [replace(key, retired=7)]

    async def test_a_salt_that_was_moved_to_another_tenant_is_not_decrypted(
        self, store: Store
    ) -> None:
        _use(KEY, store)
        one, other = (Tenant.new(name, created=5) for name in ("one", "other"))
        await store.put_tenant(one)
        await store.put_tenant(other)
        values = {secret.owner: secret for secret in await store.stored_secrets()}

        await store.replace_stored_secret(values[one.id], values[other.id].value)

        moved = await store.tenant(one.id)
        assert moved is not None
        assert is_sealed(moved.salt)

    async def test_a_key_that_was_moved_to_the_other_environment_is_not_decrypted(
        self, store: Store
    ) -> None:
        _use(KEY, store)
        await store.put_signing_key(a_key("a"))
        (stored,) = await store.stored_secrets()
        moved = replace(a_key("a"), environment="production", private_pem=stored.value)

        await store.put_signing_key(moved)

        (found,) = await store.signing_keys("production")
        assert is_sealed(found.private_pem)

    async def test_a_stored_secret_is_replaced_as_it_was_read(self, store: Store) -> None:
        tenant, key = replace(Tenant.new("Lab", created=5), disabled=True), a_key("a", retired=9)
        await store.put_tenant(tenant)
        await store.put_signing_key(key)

        for secret in await store.stored_secrets():
            assert not secret.in_use
            assert await store.replace_stored_secret(secret, b"new")

        assert await store.tenant(tenant.id) == replace(tenant, salt=b"new")
        assert await store.signing_keys("sandbox") == [replace(key, private_pem=b"new")]

    async def test_a_stored_secret_that_has_changed_is_not_replaced(self, store: Store) -> None:
        tenant, key = Tenant.new("Lab", created=5), a_key("a")
        await store.put_tenant(tenant)
        await store.put_signing_key(key)
        secrets = await store.stored_secrets()
        await store.put_tenant(replace(tenant, salt=b"newer"))
        await store.put_signing_key(replace(key, private_pem=b"newer"))

        for secret in secrets:
            assert secret.in_use
            assert not await store.replace_stored_secret(secret, b"new")

        assert await store.tenant(tenant.id) == replace(tenant, salt=b"newer")
        assert await store.signing_keys("sandbox") == [replace(key, private_pem=b"newer")]

    async def test_a_stored_secret_is_replaced_at_its_owner_alone(self, store: Store) -> None:
        one, other = (Tenant.new(name, created=5) for name in ("one", "other"))
        other = replace(other, salt=one.salt)
        keys = [a_key("a"), a_key("b"), replace(a_key("c"), environment="production")]
        for tenant in (one, other):
            await store.put_tenant(tenant)
        for key in keys:
            await store.put_signing_key(key)
        secrets = {secret.owner: secret for secret in await store.stored_secrets()}

        for owner in (one.id, "sandbox/a"):
            assert await store.replace_stored_secret(secrets[owner], b"new")

        assert await store.tenant(one.id) == replace(one, salt=b"new")
        assert await store.tenant(other.id) == other
        expected = [replace(keys[0], private_pem=b"new"), keys[1]]
        assert await store.signing_keys("sandbox") == expected
        assert await store.signing_keys("production") == keys[2:]

    async def test_a_secret_of_an_owner_that_is_not_there_is_not_replaced(
        self, store: Store
    ) -> None:
        tenant = Tenant.new("Lab", created=5)
        await store.put_tenant(tenant)
        await store.put_signing_key(a_key("a"))

        for secret in await store.stored_secrets():
            moved = replace(secret, owner=f"{secret.owner}2")
            assert not await store.replace_stored_secret(moved, b"new")

        assert await store.tenant(tenant.id) == tenant
        assert await store.signing_keys("sandbox") == [a_key("a")]

    async def test_a_key_that_cannot_be_decrypted_is_retired_as_it_is_stored(
        self, store: Store, other_store: Store
    ) -> None:
        _use(KEY, store)
        key = a_key("a", private_pem=PEM)
        await store.put_signing_key(key)
        new = a_key("b", created=9, private_pem=PEM)

        assert await other_store.rotate_signing_key(new, expected=["a"])

        assert await store.signing_keys("sandbox") == [replace(key, retired=9), new]

    async def test_the_secrets_of_all_environments_are_listed(self, store: Store) -> None:
        await store.put_signing_key(a_key("a"))
        await store.put_signing_key(replace(a_key("b"), environment="production"))

        owners = {secret.owner for secret in await store.stored_secrets()}
        assert owners == {"sandbox/a", "production/b"}


def _use(key: bytes, *stores: Store) -> None:
    for store in stores:
        store.cipher.use([key])
