"""The operation that encrypts the secrets in the store under a new key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from fhirpub.administration.context import Administration
from fhirpub.administration.operation import Operation, Parameter
from fhirpub.encryption.cipher import NO_KEY
from fhirpub.errors import SecretsUnavailable
from fhirpub.storage.reencryption import missing_key, outdated_secrets, reencrypt, state_of


async def reseal(administration: Administration, *, dry_run: bool = False) -> Mapping[str, Any]:
    """Count what is outdated, and encrypt it, unless it is a dry run.

    Raises SecretsUnavailable, ConfigurationError.
    """
    store = administration.store
    if not store.cipher:
        found = await store.stored_secrets()
        missing = [one for one in found if state_of(store, one) == "missing"]
        raise missing_key(missing) if missing else SecretsUnavailable(NO_KEY)
    counts = Counter(one.purpose for one in await outdated_secrets(store))
    if not dry_run:
        async with administration.recorded("secrets.reseal"):
            counts = await reencrypt(store)
    states = [state_of(store, one) for one in await store.stored_secrets()]
    unreadable = states.count("missing") + states.count("damaged")
    endpoints, refused = await _reseal_endpoints(administration, dry_run=dry_run)
    return {
        "key": store.cipher.names[0],
        "salts": counts["salt"],
        "signing_keys": counts["private key"],
        "endpoints": endpoints,
        "not_decrypted": unreadable + refused,
    }


async def _reseal_endpoints(administration: Administration, *, dry_run: bool) -> tuple[int, int]:
    """Return how many endpoints have outdated secrets, and how many tenants some of no key."""
    service = await administration.endpoints()
    if dry_run:
        outdated = filter(service.is_old, await administration.store.all_endpoints())
        return len([*outdated]), 0
    changed = refused = 0
    for tenant in await administration.store.tenants():
        try:
            changed += await service.reseal(tenant.id)
        except SecretsUnavailable:
            refused += 1
    return changed, refused


RESEAL = Operation(
    command="secrets reseal",
    method="POST",
    path="/secrets/reseal",
    summary="Encrypt signing keys, salts and secrets of endpoints under the first key",
    run=reseal,
    parameters=(
        Parameter(name="dry_run", type="boolean", text="Only count what would be encrypted."),
    ),
)
OPERATIONS = (RESEAL,)
