"""The secrets of endpoints at rest: encrypted under a key that the store does not hold.

A stored secret consists of a format version, the key's name, a nonce, and AES-256-GCM ciphertext.
It is bound to its endpoint and its purpose, so that it is of no use in another place (D-206).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fhirpub.config.loader import variable
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.errors import ConfigurationError, SecretsUnavailable
from fhirpub.runtime.logging import logger
from fhirpub.storage.webhook_contract import Endpoint

KEYS_VARIABLE = "FHIRPUB_WEBHOOK_KEYS"
KEY_BYTES = 32

Purpose = Literal["secret", "token"]

_FORM = b"\x01"
_NAME_BYTES, _NONCE_BYTES = 4, 12
NO_KEY = (
    "there is no key for the secrets of endpoints: put what `openssl rand -base64 32` prints into "
    f"a file and name it in [webhooks] keys_file, or set {KEYS_VARIABLE}; every process needs it"
)
LOST_KEY = (
    "the key of the endpoints' secrets is not here: name the file that has it (beside the former "
    "store, or its copy) in [webhooks] keys_file; a new key cannot decrypt them"
)

_log = logger()


class SecretCipher:
    """Encrypts and decrypts the secrets of endpoints. The first key encrypts, all decrypt.

    It also exists without a key; then every use raises SecretsUnavailable.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        """Take keys of 32 bytes, the one that encrypts first."""
        self._ciphers = {_name(key): AESGCM(key) for key in keys}
        self._first = _name(keys[0]) if keys else b""

    def __bool__(self) -> bool:
        """Return whether there is a key."""
        return bool(self._ciphers)

    def encrypt(self, text: str, *, endpoint: str, purpose: Purpose) -> bytes:
        """Return a secret of an endpoint, encrypted. Raises SecretsUnavailable."""
        if not self._ciphers:
            raise SecretsUnavailable(NO_KEY)
        nonce = secrets.token_bytes(_NONCE_BYTES)
        cipher = self._ciphers[self._first]
        encrypted = cipher.encrypt(nonce, text.encode(), _bound_to(endpoint, purpose))
        return _FORM + self._first + nonce + encrypted

    def decrypt(self, sealed: bytes, *, endpoint: str, purpose: Purpose) -> str:
        """Return what was sealed for this endpoint and purpose.

        Raises SecretsUnavailable: its key is not here, or it was changed or moved.
        """
        if not self._ciphers:
            raise SecretsUnavailable(LOST_KEY)
        form, rest = sealed[:1], sealed[1:]
        name, rest = rest[:_NAME_BYTES], rest[_NAME_BYTES:]
        nonce, encrypted = rest[:_NONCE_BYTES], rest[_NONCE_BYTES:]
        cipher = self._ciphers.get(name) if form == _FORM else None
        if cipher is None:
            raise SecretsUnavailable(
                f"the {purpose} of endpoint {endpoint} is encrypted under a key that is not here: "
                f"add the one it was made with to [webhooks] keys_file or {KEYS_VARIABLE}"
            )
        try:
            return cipher.decrypt(nonce, encrypted, _bound_to(endpoint, purpose)).decode()
        except (InvalidTag, ValueError):
            raise SecretsUnavailable(
                f"the {purpose} of endpoint {endpoint} was damaged in the store: rotate it"
            ) from None

    def is_of_first(self, sealed: bytes) -> bool:
        """Return whether the current key encrypted this."""
        return sealed.startswith(_FORM + self._first)


def live_secrets(endpoint: Endpoint, seal: SecretCipher, *, now: int) -> tuple[str, ...]:
    """Return the secrets that sign for an endpoint, newest first. Raises SecretsUnavailable."""
    return tuple(
        seal.decrypt(secret.sealed, endpoint=endpoint.id, purpose="secret")
        for secret in endpoint.secrets
        if secret.expires is None or now < secret.expires
    )


def token_of(endpoint: Endpoint, seal: SecretCipher) -> str:
    """Return the token by which an endpoint knows us. Raises SecretsUnavailable."""
    return seal.decrypt(endpoint.token, endpoint=endpoint.id, purpose="token")


def load_cipher(settings: WebhooksConfig, *, beside: Path | None = None) -> SecretCipher:
    """Return the seal of the environment's keys, or of those in the file that is configured.

    With neither, the keys of the file ``beside``, if it exists. Raises ConfigurationError.
    """
    text = variable(KEYS_VARIABLE)
    if text.strip():
        return SecretCipher(_keys(text, source=KEYS_VARIABLE))
    if settings.keys_file:
        return SecretCipher(_read(Path(settings.keys_file), setting="[webhooks] keys_file: "))
    return (
        SecretCipher(_read(beside)) if beside is not None and beside.exists() else SecretCipher(())
    )


def create_key_file(beside: Path) -> SecretCipher:
    """Return the seal of a key that is made here and kept in a file, for its owner's eyes only.

    Of racing calls one makes it, and the others take that one. Raises ConfigurationError.
    """
    key = base64.b64encode(secrets.token_bytes(KEY_BYTES))
    draft = beside.with_name(f"{beside.name}.{secrets.token_hex(8)}")
    try:
        beside.parent.mkdir(parents=True, exist_ok=True)
        _write_durably(draft, key + b"\n")
        with suppress(FileExistsError):
            os.link(draft, beside)
            _log.info("made the key of webhooks' secrets, keep a copy", file=str(beside))
        _sync(beside.parent)
    except OSError as problem:
        raise ConfigurationError(f"{beside}: cannot be written: {problem.strerror}") from None
    finally:
        with suppress(OSError):
            draft.unlink()
    return SecretCipher(_read(beside))


def _write_durably(path: Path, content: bytes) -> None:
    """Write a file that survives a crash: what is sealed with a lost key is lost."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _sync(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _read(path: Path, *, setting: str = "") -> list[bytes]:
    source = f"{setting}{path}"
    try:
        text = path.read_text(encoding="ascii")
    except OSError as problem:
        raise ConfigurationError(f"{source}: cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{source}: {_WRONG}") from None
    return _keys(text, source=source)


_WRONG = "each line must be a key, 32 bytes in base64 as `openssl rand -base64 32` prints them"


def _keys(text: str, *, source: str) -> list[bytes]:
    """Read keys apart by blanks or line ends; what follows a ``#`` is a remark."""
    words = [word for line in text.splitlines() for word in line.partition("#")[0].split()]
    try:
        keys = [base64.b64decode(word, validate=True) for word in words]
    except (binascii.Error, ValueError):
        keys = []
    if not keys or any(len(key) != KEY_BYTES for key in keys):
        raise ConfigurationError(f"{source}: {_WRONG}")
    return keys


def _name(key: bytes) -> bytes:
    return hashlib.sha256(b"fhirpub key of webhooks" + key).digest()[:_NAME_BYTES]


def _bound_to(endpoint: str, purpose: Purpose) -> bytes:
    return f"{purpose}:{endpoint}".encode()
