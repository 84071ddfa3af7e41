"""Whether the secrets in a store can be used: checked at the start, before anything is served."""

from __future__ import annotations

import asyncio

from fhirpub.encryption.cipher import LOST_KEY, NO_KEY, SecretCipher
from fhirpub.errors import ConfigurationError, SecretsUnavailable
from fhirpub.runtime.logging import logger
from fhirpub.storage.reencryption import in_words, missing_key, state_of
from fhirpub.storage.store import Store

RESEAL = "run `fhirpub secrets reseal`"
_RELOAD_SECONDS = 5.0

_log = logger()


async def require_readable_secrets(store: Store) -> None:
    """Check that salts and private keys that are in use can be decrypted.

    Raises ConfigurationError if a key is missing, since nothing could be served without it. What
    is damaged, or in clear, is logged: one tenant must not stop the others.
    """
    secrets = [(one, state_of(store, one)) for one in await store.stored_secrets() if one.in_use]
    missing = [one for one, state in secrets if state == "missing"]
    if missing:
        raise missing_key(missing)
    for one in (one for one, state in secrets if state == "damaged"):
        _log.error("secret damaged in the store", purpose=one.purpose, owner=one.owner)
    clear = [one for one, state in secrets if state == "clear"]
    if clear:
        action = RESEAL if store.cipher else NO_KEY
        _log.warning("secrets in the store are in clear", found=in_words(clear), action=action)
    await report_lost_key(store)


async def report_lost_key(store: Store) -> None:
    """Log an error if there is no key, but endpoints with secrets."""
    if not store.cipher and await store.all_endpoints():
        _log.error("no webhook can be signed", reason=LOST_KEY)


async def follow_keys(cipher: SecretCipher) -> None:
    """Read the keys again every few seconds, until cancelled: a new one needs no restart.

    A file that cannot be read, or is being written, changes nothing.
    """
    problem = ""
    while True:
        await asyncio.sleep(_RELOAD_SECONDS)
        try:
            changed = await asyncio.to_thread(cipher.reload)
        except (ConfigurationError, SecretsUnavailable) as refusal:
            reason = refusal.reason if isinstance(refusal, SecretsUnavailable) else str(refusal)
            if reason != problem:
                _log.warning("keys of the store's secrets not read again", reason=reason)
            problem = reason
            continue
        problem = ""
        if changed:
            _log.info("keys of the store's secrets read again", names=list(cipher.names))
