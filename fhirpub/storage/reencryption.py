"""Salts and private keys under the key that encrypts now: safe to interrupt and to repeat.

Each one is replaced on its own, and only if it is still the one that was read. So the work may end
anywhere, and other processes may do the same, or disable a tenant, at the same time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from fhirpub.encryption.cipher import NO_KEY, Purpose, State, key_name_in
from fhirpub.errors import ConfigurationError, SecretsUnavailable
from fhirpub.storage.secret_contract import StoredSecret
from fhirpub.storage.store import Store

_ROUNDS = 5
"""More than one is needed only if another process changes what was read."""
_SIDE_BY_SIDE = 16
_OUTDATED: tuple[State, ...] = ("clear", "older")


def state_of(store: Store, secret: StoredSecret) -> State:
    """Return what can be done with a stored secret."""
    return store.cipher.state(secret.value, owner=secret.owner, purpose=secret.purpose)


async def outdated_secrets(store: Store) -> list[StoredSecret]:
    """Return the secrets that are in clear, or encrypted under an older key that is here."""
    return [one for one in await store.stored_secrets() if state_of(store, one) in _OUTDATED]


async def reencrypt(store: Store) -> Counter[Purpose]:
    """Encrypt all salts and private keys under the first key; return how many of each.

    What cannot be decrypted stays as it is. Raises SecretsUnavailable without a key,
    StoreUnavailable.
    """
    if not store.cipher:
        raise SecretsUnavailable(NO_KEY)
    changed: Counter[Purpose] = Counter()
    for _round in range(_ROUNDS):
        outdated = await outdated_secrets(store)
        if not outdated:
            break
        for start in range(0, len(outdated), _SIDE_BY_SIDE):
            several = outdated[start : start + _SIDE_BY_SIDE]
            changed.update(await _replace_some(store, several))
    return changed


async def _replace_some(store: Store, several: Sequence[StoredSecret]) -> list[Purpose]:
    """Return the purposes of those that were replaced."""
    replaced = await asyncio.gather(*(_replace(store, one) for one in several))
    pairs = zip(several, replaced, strict=True)
    return [one.purpose for one, is_new in pairs if is_new]


async def _replace(store: Store, secret: StoredSecret) -> bool:
    owner, purpose = secret.owner, secret.purpose
    clear = store.cipher.unseal(secret.value, owner=owner, purpose=purpose)
    value = store.cipher.seal(clear, owner=owner, purpose=purpose)
    return await store.replace_stored_secret(secret, value)


def in_words(secrets: Sequence[StoredSecret]) -> str:
    """Return what secrets are, such as: the salt of 2 tenants and 1 signing key."""
    counts = Counter(one.purpose for one in secrets)
    found = []
    if counts["salt"]:
        found.append(f"the salt of {_number(counts['salt'], 'tenant')}")
    if counts["private key"]:
        found.append(_number(counts["private key"], "signing key"))
    return " and ".join(found)


def key_names(secrets: Sequence[StoredSecret]) -> str:
    """Return the names of the keys under which secrets are encrypted."""
    return ", ".join(sorted({key_name_in(one.value) for one in secrets}))


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count > 1 else ''}"


FIND_KEY = (
    "put the file that has it back, or name its copy in [storage] keys_file; where other keys are "
    "named, add its line below theirs; a new key cannot decrypt them"
)


def missing_key(secrets: Sequence[StoredSecret]) -> ConfigurationError:
    """Return an error about secrets whose key is not here, with what to do."""
    return ConfigurationError(
        f"{in_words(secrets)} in the store cannot be decrypted: the key {key_names(secrets)} "
        f"is not here; {FIND_KEY}"
    )
