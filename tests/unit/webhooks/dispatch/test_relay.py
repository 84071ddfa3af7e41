"""The relay marks what it has published as soon as that is safe."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from fhirpub.runtime.clock import now_ms
from fhirpub.storage.leases import Leases
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.samples import LAB, OTHER, a_version
from fhirpub.testing.webhook_contract import an_endpoint, events_added, pending_keys
from fhirpub.webhooks.dispatch.appender import Appender
from fhirpub.webhooks.dispatch.relay import Relay

CREATED = b'[{"id":"%s.1.1","type":"diagnosticreport.created","data":{}}]'


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SqliteStore]:
    """An empty store."""
    store = SqliteStore(tmp_path / "fhirpub.db", deadline_seconds=10)
    await store.start()
    yield store
    await store.stop()


@pytest.fixture
def relay(store: SqliteStore) -> Relay:
    """The relay of the store."""
    return Relay(
        store,
        appender=Appender(store, clock=now_ms),
        leases=Leases(store, owner="this", seconds=10, clock=now_ms),
        fhir_url="https://fhir.example/r4",
        enqueue=lambda _deliveries: None,
    )


async def test_versions_without_an_endpoint_are_marked_in_the_same_round(
    store: SqliteStore, relay: Relay
) -> None:
    await events_added(store, [a_version() for _ in range(3)])

    assert await relay.relay(most=2) == 2
    assert len(await pending_keys(store)) == 1
    assert await relay.relay() == 1
    assert await pending_keys(store) == []
    assert await relay.relay() == 0


async def test_versions_with_deliveries_are_marked_in_the_next_round(
    store: SqliteStore, relay: Relay
) -> None:
    endpoint = an_endpoint()
    await store.put_endpoint(LAB, endpoint)
    version = a_version()
    await store.add(LAB, replace(version, events=CREATED % version.id.encode()))

    assert await relay.relay() == 1
    assert [each.sequence for each in await store.waiting(endpoint.id)] == [1]
    assert await pending_keys(store) == [(version.id, 1)]
    assert await relay.relay() == 0
    assert await pending_keys(store) == []


async def test_the_lag_of_a_tenant_is_that_of_its_oldest_version_in_any_order(
    store: SqliteStore, relay: Relay
) -> None:
    await store.put_endpoint(LAB, an_endpoint())
    await events_added(store, [a_version(updated=moment) for moment in (3_000, 1_000, 2_000)])
    await events_added(store, [a_version(updated=500)], OTHER)

    await relay.relay()

    assert relay.oldest == 500
    assert relay.oldest_by_tenant == {LAB: 1_000}
