"""Tenants, clients and signing keys as rows of the file, and back."""

from __future__ import annotations

import json
from typing import Any

from fhirpub.encryption.cipher import SecretCipher
from fhirpub.storage.contract import Client, ClientSecret, SigningKey
from fhirpub.storage.secret_contract import (
    StoredSecret,
    seal_key,
    seal_salt,
    unseal_key,
    unseal_salt,
)
from fhirpub.tenant import Tenant

Row = tuple[Any, ...]


def tenant_row(tenant: Tenant, cipher: SecretCipher) -> Row:
    """Return the row of a tenant."""
    return (tenant.id, tenant.name, seal_salt(tenant, cipher), tenant.created, tenant.disabled)


def tenant_of(row: Row, cipher: SecretCipher) -> Tenant:
    """Return the tenant in a row."""
    return Tenant(row[0], row[1], unseal_salt(row[0], row[2], cipher), row[3], bool(row[4]))


def client_row(client: Client) -> Row:
    """Return the row of a client."""
    secrets = json.dumps([[secret.digest.hex(), secret.expires] for secret in client.secrets])
    row = (client.id, client.tenant, client.name, client.environment, client.created)
    rest = (json.dumps(client.scopes), client.disabled, json.dumps(client.networks))
    return (*row, secrets, *rest, client.jwks, client.jwks_url)


def client_of(row: Row) -> Client:
    """Return the client in a row."""
    secrets = tuple(ClientSecret(bytes.fromhex(load[0]), load[1]) for load in json.loads(row[5]))
    return Client(
        id=row[0],
        tenant=row[1],
        name=row[2],
        environment=row[3],
        created=row[4],
        secrets=secrets,
        scopes=tuple(json.loads(row[6])),
        disabled=bool(row[7]),
        networks=tuple(json.loads(row[8])),
        jwks=row[9],
        jwks_url=row[10],
    )


def key_row(key: SigningKey, cipher: SecretCipher) -> Row:
    """Return the row of a signing key."""
    return (
        key.kid,
        key.algorithm,
        key.environment,
        key.created,
        seal_key(key, cipher),
        key.retired,
    )


def key_of(row: Row, cipher: SecretCipher) -> SigningKey:
    """Return the signing key in a row."""
    return SigningKey(
        kid=row[0],
        algorithm=row[1],
        environment=row[2],
        created=row[3],
        private_pem=unseal_key(row[2], row[0], row[4], cipher),
        retired=row[5],
    )


def secret_of(row: Row) -> StoredSecret:
    """Return the secret in a row of its purpose, its owner, its bytes and whether it is used."""
    return StoredSecret(purpose=row[0], owner=row[1], value=row[2], in_use=bool(row[3]))
