"""Opens the configured store and the key that encrypts the secrets in it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
)
from pathlib import Path

from fhirpub.config.settings import Config
from fhirpub.runtime.logging import logger
from fhirpub.storage.sqlite import store as sqlite
from fhirpub.storage.store import Store
from fhirpub.webhooks.management.secret_encryption import (
    LOST_KEY,
    SecretCipher,
    create_key_file,
    load_cipher,
)

OpenStore = Callable[[Config], AbstractAsyncContextManager[Store]]

_MONGODB_SCHEMES = ("mongodb://", "mongodb+srv://")

_log = logger()


@asynccontextmanager
async def open_store(config: Config, *, create: bool = True) -> AsyncGenerator[Store, None]:
    """Open the configured store until the block ends.

    ``create`` a missing SQLite file; otherwise a missing file is StoreUnavailable.

    Raises ConfigurationError, StoreUnavailable.
    """
    url, seconds = config.storage.url, config.storage.deadline_seconds
    store: Store
    if uses_mongodb(config):
        production = config.auth.environment == "production"
        from fhirpub.storage.mongodb import store as mongodb  # noqa: PLC0415 - a sixth of a second

        store = mongodb.from_url(url, deadline_seconds=seconds, production=production)
    else:
        store = sqlite.from_url(url, deadline_seconds=seconds, make=create)
    await store.start()
    try:
        yield store
    finally:
        await store.stop()


def key_file(config: Config) -> Path | None:
    """Return the key file next to an SQLite file; None for MongoDB and for a store in memory."""
    file = sqlite_file(config)
    return file and file.with_suffix(".webhook-keys")


def uses_mongodb(config: Config) -> bool:
    """Return whether the store is a MongoDB database."""
    return config.storage.url.startswith(_MONGODB_SCHEMES)


def sqlite_file(config: Config) -> Path | None:
    """Return the SQLite file; None for MongoDB and for a store in memory."""
    if uses_mongodb(config):
        return None
    file = Path(config.storage.url.removeprefix(sqlite.SCHEME))
    return file if file.name else None


async def prepare_cipher(config: Config, store: Store) -> SecretCipher:
    """Return the cipher that encrypts endpoints' secrets at rest.

    A new SQLite store gets a new key file. Where endpoints exist, no key is created: it could
    not decrypt their secrets. Raises ConfigurationError, StoreUnavailable.
    """
    beside = key_file(config)
    seal = load_cipher(config.webhooks, beside=beside)
    if seal:
        return seal
    if await store.all_endpoints():
        _log.error("no webhook can be signed", reason=LOST_KEY)
        return seal
    return seal if beside is None else create_key_file(beside)
