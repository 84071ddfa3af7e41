"""Endpoints that are read by their clients: when they were read, and how they end (ADR 47)."""

from __future__ import annotations

from dataclasses import replace

from fhirpub.fhir.strict_json import dumps, loads_stored
from fhirpub.runtime.clock import HOUR_MS
from fhirpub.runtime.logging import logger
from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import DeliveryQueueStore, Endpoint
from fhirpub.webhooks.management import endpoint_states as states
from fhirpub.webhooks.transport.pull_url import is_pull
from fhirpub.webhooks.transport.url_policy import refuse_url

_READ = "read"

_log = logger()


def refuse_other_transport(endpoint: Endpoint, url: str) -> None:
    """Raise InvalidContent for a new URL that makes an endpoint read, or one that is read."""
    if url != endpoint.url and (is_pull(url) or is_pull(endpoint.url)):
        raise refuse_url("cannot be changed from or to pull:NAME; add another endpoint")


async def note_read(store: DeliveryQueueStore, endpoint: Endpoint, *, now: int) -> None:
    """Note that an endpoint is being read, at most once an hour. Raises StoreUnavailable."""
    if is_pull(endpoint.url) and now - _last_read(endpoint) >= HOUR_MS:
        await store.save_health(endpoint.id, dumps({_READ: now}))


async def remove_unread(store: Store, *, before: int) -> int:
    """Remove the endpoints that were not read since then; return how many.

    Raises StoreUnavailable.
    """
    removed = 0
    for endpoint in await store.all_endpoints():
        if is_pull(endpoint.url) and _last_read(endpoint) < before:
            gone = replace(states.deleted(endpoint), revision=endpoint.revision + 1)
            if await store.put_endpoint(endpoint.tenant, gone):
                _log.info("endpoint removed: not read", endpoint=gone.id, tenant=gone.tenant)
                removed += 1
    return removed


def _last_read(endpoint: Endpoint) -> int:
    """Return when an endpoint was last read, at the earliest when it was created."""
    return max(endpoint.created, int(loads_stored(endpoint.condition).get(_READ, 0)))
