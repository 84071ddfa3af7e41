"""Tenants, clients and signing keys as documents of the database, and back."""

from __future__ import annotations

from typing import Any

from fhirpub.encryption.cipher import SecretCipher
from fhirpub.storage.contract import Client, ClientSecret, SigningKey
from fhirpub.storage.mongodb.documents import Document
from fhirpub.storage.secret_contract import seal_salt, unseal_salt
from fhirpub.tenant import Tenant


def tenant_document(tenant: Tenant, cipher: SecretCipher) -> dict[str, Any]:
    """Return the document of a tenant."""
    return {
        "_id": tenant.id,
        "name": tenant.name,
        "salt": seal_salt(tenant, cipher),
        "created": tenant.created,
        "disabled": tenant.disabled,
    }


def tenant_of(document: Document, cipher: SecretCipher) -> Tenant:
    """Return the tenant of a document."""
    d = document
    salt = unseal_salt(d["_id"], d["salt"], cipher)
    return Tenant(d["_id"], d["name"], salt, d["created"], d["disabled"])


def client_document(client: Client) -> dict[str, Any]:
    """Return the document of a client; without networks it is as it was before there were any.

    So it is without keys.
    """
    rest = {"networks": [*client.networks], "jwks": client.jwks, "jwks_url": client.jwks_url}
    return {name: value for name, value in rest.items() if value} | {
        "_id": client.id,
        "tenant": client.tenant,
        "name": client.name,
        "environment": client.environment,
        "created": client.created,
        "secrets": [{"digest": s.digest, "expires": s.expires} for s in client.secrets],
        "scopes": list(client.scopes),
        "disabled": client.disabled,
    }


def client_filter(client: Client) -> dict[str, Any]:
    """Return what finds a client only as it is; None also stands for a field that is missing."""
    return {"networks": None, "jwks": None, "jwks_url": None, **client_document(client)}


def client_of(document: Document) -> Client:
    """Return the client of a document."""
    d = document
    return Client(
        id=d["_id"],
        tenant=d["tenant"],
        name=d["name"],
        environment=d["environment"],
        created=d["created"],
        secrets=tuple(
            ClientSecret(secret["digest"], secret["expires"]) for secret in d["secrets"]
        ),
        scopes=tuple(d["scopes"]),
        disabled=d["disabled"],
        networks=tuple(d.get("networks", ())),
        jwks=d.get("jwks", ""),
        jwks_url=d.get("jwks_url", ""),
    )


def key_document(key: SigningKey) -> dict[str, Any]:
    """Return a signing key as it stands in the list of all."""
    return {
        "kid": key.kid,
        "algorithm": key.algorithm,
        "environment": key.environment,
        "created": key.created,
        "private_pem": key.private_pem,
        "retired": key.retired,
    }


def key_of(document: Document) -> SigningKey:
    """Return the signing key of an entry of that list."""
    return SigningKey(**document)
