"""Opens the configured store, with the keys that encrypt the secrets in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
)
from functools import partial
from pathlib import Path

from fhirpub.config.settings import Config
from fhirpub.encryption.cipher import SecretCipher
from fhirpub.encryption.keys import KeySource
from fhirpub.plugin_host.loader import load_key_provider
from fhirpub.storage.sqlite import store as sqlite
from fhirpub.storage.store import Store

OpenStore = Callable[[Config], AbstractAsyncContextManager[Store]]

_MONGODB_SCHEMES = ("mongodb://", "mongodb+srv://")


@asynccontextmanager
async def open_store(
    config: Config, *, create: bool = True, upgrade: bool = True
) -> AsyncGenerator[Store, None]:
    """Open the configured store until the block ends.

    ``create`` a missing SQLite file, and the file of its key if nothing is encrypted yet;
    otherwise a missing store file is StoreUnavailable. ``upgrade`` a store of an older release;
    otherwise it is UpgradeNeeded.

    Raises ConfigurationError, PluginError, SecretsUnavailable, StoreUnavailable.
    """
    source = key_source(config)
    cipher = SecretCipher(await asyncio.to_thread(source.read), read=source.read)
    async with open_with(config, cipher, create=create, upgrade=upgrade) as store:
        if create and not cipher:
            await _create_key(store, source)
        yield store


@asynccontextmanager
async def open_with(
    config: Config, cipher: SecretCipher, *, create: bool = True, upgrade: bool = True
) -> AsyncGenerator[Store, None]:
    """Open the configured store with a cipher until the block ends; no key is created.

    Raises ConfigurationError, StoreUnavailable.
    """
    url, seconds = config.storage.url, config.storage.deadline_seconds
    store: Store
    if uses_mongodb(config):
        production = config.auth.environment == "production"
        from fhirpub.storage.mongodb import store as mongodb  # noqa: PLC0415 - a sixth of a second

        store = mongodb.from_url(
            url, deadline_seconds=seconds, production=production, cipher=cipher
        )
    else:
        store = sqlite.from_url(url, deadline_seconds=seconds, make=create, cipher=cipher)
    store.upgrades = upgrade
    await store.start()
    try:
        yield store
    finally:
        await store.stop()


async def _create_key(store: Store, source: KeySource) -> None:
    """Create the key file of a new SQLite store, from which the cipher gets its key.

    Where something is encrypted already, no key is created: it could not decrypt that.
    """
    secrets = await store.stored_secrets()
    states = {
        store.cipher.state(one.value, owner=one.owner, purpose=one.purpose) for one in secrets
    }
    if states <= {"clear"} and not await store.all_endpoints():
        store.cipher.use(await asyncio.to_thread(source.create))
    else:  # another process may have created it since
        await asyncio.to_thread(store.cipher.reload)


def key_source(config: Config) -> KeySource:
    """Return the place of the keys that encrypt the secrets in the configured store."""
    provider = partial(load_key_provider, config.plugins.enabled)
    return KeySource(config, beside=key_file(config), provider=provider)


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
