"""The chains of the audit trail: all that waits is sealed before one is read."""

from __future__ import annotations

import asyncio
import secrets
from functools import partial

from fhirpub.administration.context import Administration
from fhirpub.audit.checkpoint import TYPE
from fhirpub.audit.sealer import Sealer
from fhirpub.audit.trail import SERVICE
from fhirpub.auth.keys import KeyRing
from fhirpub.auth.statements import sign_statement
from fhirpub.config.settings import Config
from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.audit_contract import UnsealedAudit
from fhirpub.storage.leases import Leases
from fhirpub.storage.store import Store

_LEASE_SECONDS, _PAUSE_SECONDS = 15.0, 0.2
_MANY = 10_000
SERVICE_NAME = "service"
"""How commands name the chain of records that belong to no tenant."""


async def seal_trail(config: Config, store: Store) -> None:
    """Seal what waits, or wait until a running service has done it.

    A process that was killed holds its lease for a while. Raises StoreUnavailable.
    """
    leases = Leases(store, owner=secrets.token_hex(8), seconds=_LEASE_SECONDS, clock=now_ms)
    ring = KeyRing(store, config.auth, clock=now_ms)
    sealer = Sealer(
        store,
        leases=leases,
        sign=partial(sign_statement, ring, type_=TYPE),
        config=config.audit,
        clock=now_ms,
    )
    waiting = _sources(await store.unsealed_audit(limit=_MANY))
    try:
        async with asyncio.timeout(2 * _LEASE_SECONDS):
            while True:
                while not await sealer.seal():
                    pass
                left = await store.unsealed_audit(limit=_MANY)
                if left.is_complete and not waiting & _sources(left):
                    break
                await asyncio.sleep(_PAUSE_SECONDS)
    except TimeoutError:
        raise StoreUnavailable(
            "another process is to seal the audit trail, and does not"
        ) from None
    await sealer.finish()


def _sources(unsealed: UnsealedAudit) -> set[object]:
    return {(entry.version is None, entry.source) for entry in unsealed.entries}


async def chain_meant(administration: Administration, named: str) -> str:
    """Return the chain of a tenant, or of what belongs to none. Raises NoSuchRecord."""
    if named == SERVICE_NAME:
        return SERVICE
    return (await administration.tenant(named)).id


def chain_name(tenant: str) -> str:
    """Return how a chain is printed."""
    return tenant or SERVICE_NAME
