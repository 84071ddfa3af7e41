"""The part of the store in MongoDB that keeps tenants, clients and signing keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fhirpub.runtime.turns import in_turns
from fhirpub.storage.contract import Client, CredentialStore, SigningKey
from fhirpub.storage.mongodb import schema
from fhirpub.storage.mongodb.collections import OnDatabase
from fhirpub.storage.mongodb.credentials.documents import (
    client_document,
    client_filter,
    client_of,
    key_document,
    key_of,
    tenant_document,
    tenant_of,
)
from fhirpub.storage.mongodb.errors import within
from fhirpub.storage.secret_contract import (
    SecretStore,
    StoredSecret,
    owner_of_key,
    seal_key,
    unseal_key,
)
from fhirpub.tenant import Tenant


class MongoCredentials(OnDatabase, CredentialStore, SecretStore):
    """Tenants, clients and signing keys in the database."""

    async def put_tenant(self, tenant: Tenant) -> None:
        await self._put(schema.TENANT, tenant_document(tenant, self.cipher))

    async def add_tenant(self, tenant: Tenant) -> bool:
        return await self._add(schema.TENANT, tenant_document(tenant, self.cipher))

    async def change_tenant(
        self, tenant_id: str, *, name: str | None = None, disabled: bool | None = None
    ) -> None:
        given = {"name": name, "disabled": disabled}
        change = {key: value for key, value in given.items() if value is not None}
        if change:
            tenants = self._collection(schema.TENANT)
            async with within(self._deadline):
                await tenants.update_one({"_id": tenant_id}, {"$set": change})

    async def tenant(self, tenant_id: str) -> Tenant | None:
        found = await self._list(schema.TENANT, {"_id": tenant_id})
        return tenant_of(found[0], self.cipher) if found else None

    async def tenants(self) -> Sequence[Tenant]:
        documents = await self._list(schema.TENANT, {})
        found = await in_turns(lambda document: tenant_of(document, self.cipher), documents)
        return sorted(found, key=lambda each: (each.created, each.id))

    async def put_client(self, client: Client) -> None:
        await self._put(schema.CLIENT, client_document(client))

    async def add_client(self, client: Client) -> bool:
        return await self._add(schema.CLIENT, client_document(client))

    async def replace_client(self, client: Client, *, over: Client) -> bool:
        before, after = client_filter(over), client_document(client)
        async with within(self._deadline):
            clients = self._collection(schema.CLIENT)
            return bool((await clients.replace_one(before, after)).matched_count)

    async def client(self, client_id: str) -> Client | None:
        found = await self._list(schema.CLIENT, {"_id": client_id})
        return client_of(found[0]) if found else None

    async def clients(self, *, tenant: str | None = None) -> Sequence[Client]:
        wanted = {} if tenant is None else {"tenant": tenant}
        found = await in_turns(client_of, await self._list(schema.CLIENT, wanted))
        return sorted(found, key=lambda each: (each.created, each.id))

    async def put_signing_key(self, key: SigningKey) -> None:
        stored = self._as_stored(key)
        await self._change_keys(
            lambda keys: [*(item for item in keys if item.kid != key.kid), stored]
        )

    async def signing_keys(self, environment: str) -> Sequence[SigningKey]:
        keys = [key for key in await self._stored_keys() if key.environment == environment]
        chosen = [self._in_clear(key) for key in keys]
        return sorted(chosen, key=lambda each: (each.created, each.kid))

    async def rotate_signing_key(self, new: SigningKey, *, expected: Sequence[str]) -> bool:
        stored = self._as_stored(new)

        def change(keys: Sequence[SigningKey]) -> list[SigningKey] | None:
            ours = [key for key in keys if key.environment == new.environment]
            unretired = {our.kid for our in ours if our.retired is None}
            if unretired != set(expected):
                return None
            retired = [
                replace(key, retired=new.created) if key.kid in unretired else key for key in keys
            ]
            return [*retired, stored]

        return await self._change_keys(change)

    async def _change_keys(
        self, change: Callable[[Sequence[SigningKey]], Sequence[SigningKey] | None]
    ) -> bool:
        """Replace the list of all keys, which is one document, unless ``change`` gives None.

        Keys are as they are stored: to retire one, it need not be decrypted.

        It is written only over the list that was read; if another was quicker, it is read again.
        """
        store = self._collection(schema.STORE)
        async with within(self._deadline):
            while True:
                (read,) = await self._list(schema.STORE, {"_id": schema.KEYS})
                changed = change([key_of(key) for key in read["keys"]])
                if changed is None:
                    return False
                keys = [key_document(key) for key in changed]
                over = {"_id": schema.KEYS, "keys": read["keys"]}
                if (await store.update_one(over, {"$set": {"keys": keys}})).matched_count:
                    return True

    async def _stored_keys(self) -> list[SigningKey]:
        (everything,) = await self._list(schema.STORE, {"_id": schema.KEYS})
        return [key_of(key) for key in everything["keys"]]

    def _as_stored(self, key: SigningKey) -> SigningKey:
        return replace(key, private_pem=seal_key(key, self.cipher))

    def _in_clear(self, key: SigningKey) -> SigningKey:
        pem = unseal_key(key.environment, key.kid, key.private_pem, self.cipher)
        return replace(key, private_pem=pem)

    async def stored_secrets(self) -> Sequence[StoredSecret]:
        salts = [
            StoredSecret(purpose="salt", owner=d["_id"], value=d["salt"], in_use=not d["disabled"])
            for d in await self._list(schema.TENANT, {})
        ]
        return [*salts, *(_secret_of(key) for key in await self._stored_keys())]

    async def replace_stored_secret(self, secret: StoredSecret, value: bytes) -> bool:
        if secret.purpose == "salt":
            return await self._replace_salt(secret, value)

        def is_it(key: SigningKey) -> bool:
            stored = _secret_of(key)
            return (stored.owner, stored.value) == (secret.owner, secret.value)

        def change(keys: Sequence[SigningKey]) -> list[SigningKey] | None:
            if not any(map(is_it, keys)):
                return None
            return [replace(key, private_pem=value) if is_it(key) else key for key in keys]

        return await self._change_keys(change)

    async def _replace_salt(self, secret: StoredSecret, value: bytes) -> bool:
        over = {"_id": secret.owner, "salt": secret.value}
        async with within(self._deadline):
            tenants = self._collection(schema.TENANT)
            return bool((await tenants.update_one(over, {"$set": {"salt": value}})).matched_count)


def _secret_of(key: SigningKey) -> StoredSecret:
    return StoredSecret(
        purpose="private key",
        owner=owner_of_key(key.environment, key.kid),
        value=key.private_pem,
        in_use=key.retired is None,
    )
