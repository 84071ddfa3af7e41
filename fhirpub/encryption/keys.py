"""Where the keys of a store come from: the environment, a file, and what a plugin unwraps.

A line is a key of 32 bytes in base64; or the name of a key provider, a colon, and what its `wrap`
returned for a key, in base64. What follows a ``#`` is a remark.
"""

from __future__ import annotations

import base64
import binascii
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fhirpub.config.loader import variable
from fhirpub.config.settings import Config
from fhirpub.encryption.cipher import KEY_BYTES, KEYS_VARIABLE, name_of
from fhirpub.errors import ConfigurationError, SecretsUnavailable
from fhirpub.plugin_api import KeyProvider
from fhirpub.runtime.logging import logger

OLDER_VARIABLE = "FHIRPUB_WEBHOOK_KEYS"
"""The name from when only secrets of endpoints were encrypted; it works as before."""

_log = logger()
_WRONG = (
    "each line must be a key, 32 bytes in base64 as `openssl rand -base64 32` prints them, or "
    "what `fhirpub secrets new-key` prints"
)


def no_provider() -> KeyProvider | None:
    """Return that no plugin wraps keys."""
    return None


class KeySource:
    """The place of a store's keys, which may be read again and again.

    The environment is read once, when the process starts; a file may change at any time. Each
    wrapped key is unwrapped once: the provider is not asked for each record or request.
    """

    def __init__(
        self,
        config: Config,
        *,
        beside: Path | None = None,
        provider: Callable[[], KeyProvider | None] = no_provider,
    ) -> None:
        """Take the settings; ``beside`` is the file that is used if they name none.

        ``provider`` is called when a wrapped key is met, or a key is created.
        """
        self._beside = beside
        self._provider = provider
        self._unwrapped: dict[str, bytes] = {}
        self._environment = _from_environment()
        self._setting, self._configured = _configured_file(config)

    @property
    def file(self) -> Path | None:
        """The file that the keys are read from; None if the environment has them."""
        if self._environment:
            return None
        return Path(self._configured) if self._configured else self._beside

    @property
    def is_configured(self) -> bool:
        """Whether the operator has chosen the place of the keys."""
        return bool(self._environment or self._configured)

    def has_clear_key(self) -> bool:
        """Return whether a key is there in clear. Raises as `read` does."""
        return any(key not in self._unwrapped.values() for key in self.read())

    def read(self) -> tuple[bytes, ...]:
        """Return the keys of the environment, or else of the file that is configured.

        With neither, the keys of the file ``beside``, if it exists. Raises ConfigurationError,
        and SecretsUnavailable if the provider cannot unwrap a key.
        """
        if self._environment:
            name, text = self._environment
            return self._keys(text, source=name)
        if self._configured:
            return self._read(Path(self._configured), setting=self._setting)
        if self._beside is not None and _exists(self._beside):
            return self._read(self._beside)
        return ()

    def unused_file_with(self, name: str) -> Path | None:
        """Return the file ``beside`` if the keys come from elsewhere, and it has a key of a name.

        It is left from when no other place was configured; None if it cannot be read.
        """
        if not self.is_configured or self._beside is None or self.file == self._beside:
            return None
        with suppress(ConfigurationError, SecretsUnavailable):
            if _exists(self._beside) and name in map(name_of, self._read(self._beside)):
                return self._beside
        return None

    def create(self) -> tuple[bytes, ...]:
        """Create the file ``beside`` with a new key, for its owner's eyes only; return its keys.

        Of racing calls one creates it, and the others use that one. Raises ConfigurationError.
        """
        beside = self._beside
        if beside is None:
            return ()
        draft = beside.with_name(f"{beside.name}.{secrets.token_hex(8)}")
        line = self.new_line()
        try:
            beside.parent.mkdir(parents=True, exist_ok=True)
            _write_durably(draft, line.encode() + b"\n")
            with suppress(FileExistsError):
                os.link(draft, beside)
                _log.info("made the key of the store's secrets, keep a copy", file=str(beside))
            _sync(beside.parent)
        except OSError as problem:
            raise ConfigurationError(f"{beside}: cannot be written: {problem.strerror}") from None
        finally:
            with suppress(OSError):
                draft.unlink()
        return self._read(beside)

    def new_line(self) -> str:
        """Return a line with a new key, wrapped if a plugin provides for that."""
        key = secrets.token_bytes(KEY_BYTES)
        provider = self._provider()
        if provider is None:
            return base64.b64encode(key).decode()
        try:
            wrapped = bytes(provider.wrap(key))
        except Exception as problem:  # noqa: BLE001 - of any kind, from another's code
            raise _refused(provider, "cannot wrap a key", problem) from None
        line = f"{provider.name}:{base64.b64encode(wrapped).decode()}"
        if self._unwrap(line) != key:
            raise ConfigurationError(f"key provider {provider.name}: unwraps another key")
        return line

    def _read(self, path: Path, *, setting: str = "") -> tuple[bytes, ...]:
        source = f"{setting}{path}"
        try:
            text = path.read_text(encoding="ascii")
        except OSError as problem:
            raise ConfigurationError(f"{source}: cannot be read: {problem.strerror}") from None
        except UnicodeDecodeError:
            raise ConfigurationError(f"{source}: {_WRONG}") from None
        return self._keys(text, source=source)

    def _keys(self, text: str, *, source: str) -> tuple[bytes, ...]:
        """Read keys apart by blanks or line ends."""
        words = [word for line in text.splitlines() for word in line.partition("#")[0].split()]
        try:
            keys = [self._key(word, source) for word in words]
        except (binascii.Error, ValueError):
            keys = []
        if not keys or any(len(key) != KEY_BYTES for key in keys):
            raise ConfigurationError(f"{source}: {_WRONG}")
        return tuple(keys)

    def _key(self, word: str, source: str) -> bytes:
        if ":" not in word:
            return base64.b64decode(word, validate=True)
        if word not in self._unwrapped:
            name = word.partition(":")[0]
            provider = self._provider()
            if provider is None or provider.name != name:
                raise ConfigurationError(
                    f"{source}: a key is wrapped by the key provider {name[:40]!r}, which no "
                    "enabled plugin is: add the plugin to [plugins] enabled"
                )
            self._unwrapped[word] = self._unwrap(word)
        return self._unwrapped[word]

    def _unwrap(self, word: str) -> bytes:
        wrapped = base64.b64decode(word.partition(":")[2], validate=True)
        provider = self._provider()
        if provider is None:
            raise ConfigurationError(_WRONG)
        try:
            return bytes(provider.unwrap(wrapped))
        except Exception as problem:  # noqa: BLE001 - of any kind, from another's code
            raise _refused(provider, "cannot unwrap the key", problem) from None


def _exists(path: Path) -> bool:
    """Return whether there is a file. Raises ConfigurationError if it may not be looked for."""
    try:
        return path.exists()
    except OSError as problem:
        raise ConfigurationError(f"{path}: cannot be read: {problem.strerror}") from None


def _refused(provider: KeyProvider, action: str, problem: Exception) -> SecretsUnavailable:
    """Return an error with the class of a provider's problem; its text might hold a key."""
    return SecretsUnavailable(f"key provider {provider.name}: {action} ({type(problem).__name__})")


def _configured_file(config: Config) -> tuple[str, str]:
    """Return the setting that names the file of the keys, and its value, which may be empty."""
    if config.storage.keys_file:
        return "[storage] keys_file: ", config.storage.keys_file
    return "[webhooks] keys_file: ", config.webhooks.keys_file


def _from_environment() -> tuple[str, str] | None:
    """Return the variable that has keys, and its value."""
    for name in (KEYS_VARIABLE, OLDER_VARIABLE):
        text = variable(name)
        if text.strip():
            return name, text
    return None


def _write_durably(path: Path, content: bytes) -> None:
    """Write a file that survives a crash: what is encrypted under a lost key is lost."""
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
