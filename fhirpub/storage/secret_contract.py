"""The promises of a store about the secrets in it: how they are stored, and how re-encrypted.

Salts of tenants and private keys of signing keys go through the cipher of the store: they are
encrypted when they are written, and decrypted when they are read. The methods here see them as
they are stored. Secrets of endpoints are encrypted by `fhirpub.webhooks.management` and are in
their records, encrypted, already.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from fhirpub.encryption.cipher import Purpose, SecretCipher
from fhirpub.storage.records import SigningKey
from fhirpub.tenant import Tenant


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSecret:
    """A salt or a private key as it is stored.

    Attributes:
        purpose: What it is: ``salt`` or ``private key``.
        owner: What it is bound to: the id of the tenant, or `owner_of_key` of the signing key.
        value: The stored bytes, encrypted or in clear.
        in_use: Whether the tenant is not disabled, or the signing key not retired.
    """

    purpose: Purpose
    owner: str
    value: bytes = field(repr=False)
    in_use: bool = True


class SecretStore(ABC):
    """Salts and private keys as they are stored.

    Attributes:
        cipher: Encrypts what is written and decrypts what is read. Without a key, values are
            written in clear. Stored values in clear can be read with any cipher. What cannot be
            decrypted is returned as stored, and written back as it is.
    """

    cipher: SecretCipher

    @abstractmethod
    async def stored_secrets(self) -> Sequence[StoredSecret]:
        """Return the salts of all tenants and the private keys of all environments.

        Raises:
            StoreUnavailable: The store cannot be reached.
        """

    @abstractmethod
    async def replace_stored_secret(self, secret: StoredSecret, value: bytes) -> bool:
        """Replace a stored value if it is still the one that was read (compare and set).

        Nothing else of the record changes, so that no concurrent change is lost.

        Args:
            secret: The secret as it was read.
            value: The bytes to store.

        Returns:
            Whether it was replaced. False means that another value is stored, or none. After
            StoreUnavailable a repeat may return False although the first call succeeded.

        Raises:
            StoreUnavailable: The store cannot be reached.
        """


def owner_of_key(environment: str, kid: str) -> str:
    """Return what the private key of a signing key is bound to.

    Args:
        environment: The environment whose tokens it signs: it must not sign those of the other.
        kid: The key id.

    Returns:
        Both as one text.
    """
    return f"{environment}/{kid}"


def seal_salt(tenant: Tenant, cipher: SecretCipher) -> bytes:
    """Return the salt of a tenant as it is stored.

    Args:
        tenant: The tenant.
        cipher: The cipher of the store.

    Returns:
        The salt, encrypted if there is a key.
    """
    return cipher.seal(tenant.salt, owner=tenant.id, purpose="salt")


def unseal_salt(tenant_id: str, stored: bytes, cipher: SecretCipher) -> bytes:
    """Return the salt of a tenant, or the stored value if it cannot be decrypted.

    Args:
        tenant_id: The id of the tenant.
        stored: The stored value.
        cipher: The cipher of the store.

    Returns:
        The value of `fhirpub.tenant.Tenant.salt`.
    """
    return cipher.unseal(stored, owner=tenant_id, purpose="salt")


def seal_key(key: SigningKey, cipher: SecretCipher) -> bytes:
    """Return the private key of a signing key as it is stored.

    Args:
        key: The signing key.
        cipher: The cipher of the store.

    Returns:
        The private key, encrypted if there is a key for it.
    """
    owner = owner_of_key(key.environment, key.kid)
    return cipher.seal(key.private_pem, owner=owner, purpose="private key")


def unseal_key(environment: str, kid: str, stored: bytes, cipher: SecretCipher) -> bytes:
    """Return the private key of a signing key, or the stored value if it cannot be decrypted.

    Args:
        environment: The environment whose tokens it signs.
        kid: The key id.
        stored: The stored value.
        cipher: The cipher of the store.

    Returns:
        The value of `SigningKey.private_pem`.
    """
    return cipher.unseal(stored, owner=owner_of_key(environment, kid), purpose="private key")
