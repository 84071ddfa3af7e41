"""Versions whose events wait for the relay."""

from __future__ import annotations

from dataclasses import replace

from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.samples import a_version

CREATED = b'[{"id":"%s.1.1","type":"diagnosticreport.created","data":{}}]'


async def stored(store: SqliteStore, tenant: str, events: bytes = CREATED) -> str:
    """Store a version with an event, and return its id."""
    version = a_version()
    filled = events % version.id.encode() if b"%s" in events else events
    await store.add(tenant, replace(version, events=filled))
    return version.id
