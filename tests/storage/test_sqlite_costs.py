"""What writes to the embedded store cost, by which they take turns with those of the tenants."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fhirpub.storage.quota_contract import QuotaOverride
from fhirpub.storage.sqlite.database import Database, R
from fhirpub.storage.sqlite.readers import Work
from fhirpub.storage.sqlite.rows import Addition, cost_of
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.webhook_contract import AttemptResult
from fhirpub.testing.contracts.erasure.content import a_tombstone
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.contracts.webhooks.records import (
    NOW,
    UNTIL,
    a_delivery,
    an_endpoint,
    begin,
    events_added,
    pending_keys,
    queue,
)
from fhirpub.testing.store_contract import LAB, a_version


class RecordingDatabase(Database):
    """A file that records what its writes cost."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, 10)
        self.costs: list[int] = []
        self.reads = 0

    async def read(self, work: Work[R]) -> R:
        self.reads += 1
        return await super().read(work)

    def write(
        self, item: Addition | Work[Any], *, size: int = 0, index_rows: int = 0
    ) -> Awaitable[Any]:
        self.costs.append(cost_of(size, index_rows))
        return super().write(item, size=size, index_rows=index_rows)


class RecordingStore(SqliteStore):
    """A store over such a file."""

    def _open_file(self) -> Database:
        return RecordingDatabase(self._path)

    @property
    def last_cost(self) -> int:
        """What the last write cost."""
        assert isinstance(self._file, RecordingDatabase)
        return self._file.costs[-1]

    @property
    def reads(self) -> int:
        """How many reads in threads there were, but for those of tenants."""
        assert isinstance(self._file, RecordingDatabase)
        return self._file.reads

    @property
    def writes(self) -> int:
        """How many writes there were."""
        assert isinstance(self._file, RecordingDatabase)
        return len(self._file.costs)


@pytest.fixture
async def store(path: Path) -> AsyncGenerator[RecordingStore]:
    store = RecordingStore(path, deadline_seconds=10)
    await store.start()
    yield store
    await store.stop()


async def test_deliveries_cost_their_bodies_and_a_row_each(store: RecordingStore) -> None:
    deliveries = [a_delivery("e", number, body=bytes(2_000)) for number in (1, 2, 3)]

    await store.append(deliveries)
    assert store.last_cost == cost_of(6_000, 3)

    await store.put_deliveries([a_delivery("f", 1, body=bytes(4_000))])
    assert store.last_cost == cost_of(4_000, 1)


async def test_outcomes_cost_a_row_each(store: RecordingStore) -> None:
    deliveries = await queue(store, 3)
    attempts = [await begin(store, delivery) for delivery in deliveries]

    await store.finish(
        [
            AttemptResult(key=delivery.key, attempt=attempt, state="delivered")
            for delivery, attempt in zip(deliveries, attempts, strict=True)
        ]
    )

    assert store.last_cost == cost_of(0, 3)


async def test_a_step_of_the_outbox_costs_its_exceptions_and_the_mark(
    store: RecordingStore,
) -> None:
    await events_added(store, [a_version() for _ in range(5)])
    keys = await pending_keys(store)

    await store.mark_published([keys[3]])  # the three before it become exceptions
    assert store.last_cost == cost_of(0, 1 + 3)

    await pending_keys(store)
    await store.mark_published([keys[4], keys[0], keys[2]])
    assert store.last_cost == cost_of(0, 1 + 2)


async def test_what_is_published_already_is_not_written_again(store: RecordingStore) -> None:
    await events_added(store, [a_version() for _ in range(2)])
    before = store.writes

    await store.mark_published([])
    await store.mark_published([("none", 1)])

    assert store.writes == before


@pytest.mark.parametrize("silent", [0, 450])
@pytest.mark.parametrize("published", [slice(0, 3), slice(1, 3)])
async def test_what_was_just_read_is_published_without_another_read(
    store: RecordingStore, silent: int, published: slice
) -> None:
    await events_added(store, [a_version() for _ in range(3)])
    members = tuple(a_result() for _ in range(silent))
    await store.add(LAB, a_version(members=members))
    keys = await pending_keys(store)
    reads, writes = store.reads, store.writes

    await store.mark_published(keys[published])

    assert (store.reads, store.writes) == (reads, writes + 1)
    assert await pending_keys(store) == [key for key in keys if key not in keys[published]]


async def test_a_step_of_an_erasure_costs_as_many_rows_as_it_may_change(
    store: RecordingStore,
) -> None:
    first = a_version()
    await store.add(LAB, first)
    tombstone = a_tombstone(first)
    await store.add(LAB, tombstone)

    await store.erase_versions(LAB, tombstone)

    assert store.last_cost == cost_of(0, 300)


async def test_erased_deliveries_cost_a_row_each_and_those_without_content_nothing(
    store: RecordingStore,
) -> None:
    endpoint = an_endpoint()
    await store.put_endpoint(LAB, endpoint)
    bodies = [b"secret", b"ids", b"secret"]
    await store.append(
        [a_delivery(endpoint.id, number, body=body) for number, body in enumerate(bodies, 1)]
    )

    await store.erase_deliveries(LAB, "evt_", lambda _body: b"ids")
    assert store.last_cost == cost_of(0, 2)

    before = store.writes
    await store.erase_deliveries(LAB, "evt_", lambda _body: b"ids")
    assert store.writes == before


async def test_quotas_are_put_and_removed_by_one_write(store: RecordingStore) -> None:
    await store.put_quota_overrides([QuotaOverride("a", "requests", 1)])
    before = store.writes

    await store.put_quota_overrides(
        [QuotaOverride("a", "requests", None), QuotaOverride("b", "requests", 2)]
    )

    assert store.writes == before + 1
    assert await store.quota_overrides() == [QuotaOverride("b", "requests", 2)]


async def test_an_endpoint_for_another_tenant_is_not_written(store: RecordingStore) -> None:
    before = store.writes

    assert not await store.put_endpoint(LAB, replace(an_endpoint(), tenant="other"))

    assert store.writes == before


async def test_a_delivery_whose_lease_has_not_run_out_is_reported_by_every_page(
    store: RecordingStore,
) -> None:
    endpoint = an_endpoint()
    await store.put_endpoint(LAB, endpoint)
    deliveries = await queue(store, 51, endpoint=endpoint.id)
    await store.begin([deliveries[0].key], now=NOW, until=UNTIL)

    erased = await store.erase_deliveries(LAB, "evt_", lambda body: body)

    assert (erased.changed, erased.leased) == (0, UNTIL)
