"""The secrets of a store at rest: encrypted under keys that the store does not hold (ADR 33).

An encrypted value consists of a format version, the key's name, a nonce, and AES-256-GCM
ciphertext. It is bound to its owner and its purpose, so that it is of no use in another place
(D-206). Salts and private keys, which may also be stored in clear, have a mark before it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fhirpub.errors import SecretsUnavailable
from fhirpub.sealed import MARK, is_sealed

KEYS_VARIABLE = "FHIRPUB_STORE_KEYS"
KEY_BYTES = 32

Purpose = Literal["secret", "token", "salt", "private key"]
State = Literal["clear", "first", "older", "missing", "damaged"]
"""Of a stored value: in clear; under the key that encrypts, or another one that is here; under a
key that is not here; or not what was encrypted for its owner and purpose."""

OWNERS: Mapping[Purpose, str] = {
    "secret": "endpoint",
    "token": "endpoint",
    "salt": "tenant",
    "private key": "signing key",
}
"""The kind of record that has each secret."""

_FORM = b"\x01"
_NAME_BYTES, _NONCE_BYTES = 4, 12
NO_KEY = (
    "there is no key for the secrets in the store: put what `fhirpub secrets new-key` or `openssl "
    "rand -base64 32` prints into a file and name it in [storage] keys_file, or set "
    f"{KEYS_VARIABLE}; every process needs it"
)
LOST_KEY = (
    "the key of the endpoints' secrets is not here: name the file that has it (beside the former "
    "store, or its copy) in [storage] keys_file; a new key cannot decrypt them"
)


class SecretCipher:
    """Encrypts and decrypts the secrets in a store. The first key encrypts, all decrypt.

    It also exists without a key. Then `seal` leaves values in clear, and `encrypt` raises
    SecretsUnavailable. Its keys may be replaced while threads use it.
    """

    def __init__(
        self, keys: Sequence[bytes] = (), *, read: Callable[[], Sequence[bytes]] | None = None
    ) -> None:
        """Take keys of 32 bytes, the one that encrypts first; ``read`` returns the latest ones."""
        self._ring = _Ring(keys)
        self._read = read

    def __bool__(self) -> bool:
        """Return whether there is a key."""
        return bool(self._ring.keys)

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The keys, the one that encrypts first."""
        return self._ring.keys

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the keys: the beginning of a digest of each."""
        return tuple(name_of(key) for key in self._ring.keys)

    def use(self, keys: Sequence[bytes]) -> None:
        """Replace the keys."""
        self._ring = _Ring(keys)

    def reload(self) -> bool:
        """Read the keys again where they came from; return whether they have changed.

        If none are found, the earlier ones stay. Raises ConfigurationError, SecretsUnavailable.
        """
        keys = tuple(self._read()) if self._read else ()
        if not keys or keys == self._ring.keys:
            return False
        self.use(keys)
        return True

    def encrypt(self, text: str, *, endpoint: str, purpose: Purpose) -> bytes:
        """Return a secret of an endpoint, encrypted. Raises SecretsUnavailable."""
        ring = self._ring
        if not ring.keys:
            raise SecretsUnavailable(NO_KEY)
        return ring.encrypt(text.encode(), _bound_to(endpoint, purpose))

    def decrypt(self, sealed: bytes, *, endpoint: str, purpose: Purpose) -> str:
        """Return what was encrypted for this endpoint and purpose.

        Raises SecretsUnavailable: its key is not here, or it was changed or moved.
        """
        ring = self._ring
        if not ring.keys:
            raise SecretsUnavailable(LOST_KEY)
        try:
            return ring.decrypt(sealed, _bound_to(endpoint, purpose)).decode()
        except KeyError:
            raise SecretsUnavailable(
                f"the {purpose} of endpoint {endpoint} is encrypted under a key that is not here: "
                f"add the one it was made with to [storage] keys_file or {KEYS_VARIABLE}"
            ) from None
        except (InvalidTag, ValueError):
            raise SecretsUnavailable(
                f"the {purpose} of endpoint {endpoint} was damaged in the store: rotate it"
            ) from None

    def is_of_first(self, sealed: bytes) -> bool:
        """Return whether the current key encrypted this secret of an endpoint."""
        return self._ring.is_of_first(sealed)

    def seal(self, value: bytes, *, owner: str, purpose: Purpose) -> bytes:
        """Return a value as it is stored: encrypted, or in clear if there is no key.

        A value that could not be decrypted when it was read stays as it is.
        """
        ring = self._ring
        if not ring.keys or is_sealed(value):
            return value
        return MARK + ring.encrypt(value, _bound_to(owner, purpose))

    def unseal(self, stored: bytes, *, owner: str, purpose: Purpose) -> bytes:
        """Return a stored value in clear; one that cannot be decrypted is returned as stored.

        Then `is_sealed` is true of it, and what would use it raises SecretsUnavailable.
        """
        if not is_sealed(stored):
            return stored
        try:
            return self._ring.decrypt(stored.removeprefix(MARK), _bound_to(owner, purpose))
        except (KeyError, InvalidTag, ValueError):
            return stored

    def state(self, stored: bytes, *, owner: str, purpose: Purpose) -> State:
        """Return what can be done with a stored value."""
        if not is_sealed(stored):
            return "clear"
        ring, sealed = self._ring, stored.removeprefix(MARK)
        try:
            ring.decrypt(sealed, _bound_to(owner, purpose))
        except KeyError:
            return "missing"
        except (InvalidTag, ValueError):
            return "damaged"
        return "first" if ring.is_of_first(sealed) else "older"


class _Ring:
    """Keys that do not change, by name."""

    __slots__ = ("_ciphers", "_first", "keys")

    def __init__(self, keys: Sequence[bytes]) -> None:
        self.keys = tuple(keys)
        self._ciphers = {_name(key): AESGCM(key) for key in keys}
        self._first = _name(keys[0]) if keys else b""

    def encrypt(self, value: bytes, bound: bytes) -> bytes:
        """Return a value encrypted under the first key."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        encrypted = self._ciphers[self._first].encrypt(nonce, value, bound)
        return _FORM + self._first + nonce + encrypted

    def decrypt(self, sealed: bytes, bound: bytes) -> bytes:
        """Return a value. Raises KeyError without its key; InvalidTag, ValueError if damaged."""
        form, rest = sealed[:1], sealed[1:]
        name, rest = rest[:_NAME_BYTES], rest[_NAME_BYTES:]
        if form != _FORM:
            raise KeyError(form)
        return self._ciphers[name].decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], bound)

    def is_of_first(self, sealed: bytes) -> bool:
        """Return whether the first key encrypted this."""
        return sealed.startswith(_FORM + self._first)


def name_of(key: bytes) -> str:
    """Return the name of a key, by which a value shows under which one it is encrypted."""
    return _name(key).hex()


def key_name_in(stored: bytes) -> str:
    """Return the name of the key under which a stored value is encrypted."""
    return stored.removeprefix(MARK)[1 : 1 + _NAME_BYTES].hex()


def _name(key: bytes) -> bytes:
    return hashlib.sha256(b"fhirpub key of webhooks" + key).digest()[:_NAME_BYTES]


def _bound_to(owner: str, purpose: Purpose) -> bytes:
    return f"{purpose}:{owner}".encode()
