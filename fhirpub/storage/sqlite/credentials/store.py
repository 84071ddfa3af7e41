"""The part of the embedded store that keeps tenants, clients and signing keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fhirpub.runtime.turns import in_turns
from fhirpub.storage.contract import Client, CredentialStore, SigningKey
from fhirpub.storage.secret_contract import SecretStore, StoredSecret
from fhirpub.storage.sqlite import schema as sql
from fhirpub.storage.sqlite.credentials.rows import (
    client_of,
    client_row,
    key_of,
    key_row,
    secret_of,
    tenant_of,
    tenant_row,
)
from fhirpub.storage.sqlite.database import DatabaseMixin
from fhirpub.storage.sqlite.tables import clients
from fhirpub.tenant import Tenant


class SqliteCredentials(DatabaseMixin, CredentialStore, SecretStore):
    """Tenants, clients and signing keys in the file."""

    async def put_tenant(self, tenant: Tenant) -> None:
        await self._execute(sql.PUT_TENANT, tenant_row(tenant, self.cipher))

    async def add_tenant(self, tenant: Tenant) -> bool:
        return await self._execute(sql.ADD_TENANT, tenant_row(tenant, self.cipher)) > 0

    async def change_tenant(
        self, tenant_id: str, *, name: str | None = None, disabled: bool | None = None
    ) -> None:
        await self._execute(sql.CHANGE_TENANT, (name, disabled, tenant_id))

    async def tenant(self, tenant_id: str) -> Tenant | None:
        rows = await self._fetch_inline(sql.TENANT, (tenant_id,))
        return tenant_of(rows[0], self.cipher) if rows else None

    async def tenants(self) -> Sequence[Tenant]:
        rows = await self._fetch_in_thread(sql.TENANTS, ())
        return await in_turns(lambda row: tenant_of(row, self.cipher), rows)

    async def put_client(self, client: Client) -> None:
        await self._execute(clients.PUT, client_row(client))

    async def add_client(self, client: Client) -> bool:
        return await self._execute(clients.ADD, client_row(client)) > 0

    async def replace_client(self, client: Client, *, over: Client) -> bool:
        def work(connection: Any) -> bool:
            kept = connection.execute(clients.CLIENT, (client.id,)).fetchall()
            if [client_of(row) for row in kept] != [over]:
                return False
            connection.execute(clients.PUT, client_row(client))
            return True

        replaced: bool = await self._open.write(work)
        return replaced

    async def client(self, client_id: str) -> Client | None:
        rows = await self._fetch_inline(clients.CLIENT, (client_id,))
        return client_of(rows[0]) if rows else None

    async def clients(self, *, tenant: str | None = None) -> Sequence[Client]:
        rows = await self._fetch_in_thread(clients.CLIENTS, (tenant,))
        return await in_turns(client_of, rows)

    async def put_signing_key(self, key: SigningKey) -> None:
        await self._execute(sql.PUT_KEY, key_row(key, self.cipher))

    async def signing_keys(self, environment: str) -> Sequence[SigningKey]:
        rows = await self._fetch_in_thread(sql.KEYS, (environment,))
        return [key_of(row, self.cipher) for row in rows]

    async def rotate_signing_key(self, new: SigningKey, *, expected: Sequence[str]) -> bool:
        row = key_row(new, self.cipher)

        def work(connection: Any) -> bool:
            unretired = {kid for (kid,) in connection.execute(sql.UNRETIRED, (new.environment,))}
            if unretired != set(expected):
                return False
            connection.execute(sql.RETIRE, (new.created, new.environment))
            connection.execute(sql.PUT_KEY, row)
            return True

        rotated: bool = await self._open.write(work)
        return rotated

    async def stored_secrets(self) -> Sequence[StoredSecret]:
        return [secret_of(row) for row in await self._fetch_in_thread(sql.SECRETS, ())]

    async def replace_stored_secret(self, secret: StoredSecret, value: bytes) -> bool:
        statement = sql.REPLACE_SALT if secret.purpose == "salt" else sql.REPLACE_PRIVATE_KEY
        return bool(await self._execute(statement, (value, secret.owner, secret.value)))
