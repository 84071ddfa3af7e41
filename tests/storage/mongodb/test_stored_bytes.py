"""Stored bytes are counted beside the writes, and once for what an older release stored."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.mongodb import schema, stored_bytes
from fhirpub.storage.mongodb.store import MongoStore
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.store_contract import (
    FOREVER,
    LAB,
    OTHER,
    Reopen,
    a_blob,
    a_version,
    add_all,
    new_id,
    successor,
    wait_for_stored_bytes,
)
from tests.storage.mongodb.helpers import COMMANDS, Admin, Database, failing, store_of

BLOBS = [a_blob(), a_blob(os.urandom(300_000))]
SMALL = a_blob(os.urandom(5_000))
VERSIONS = [
    *(a_version(body=b"b" * number, response=b"r") for number in range(29)),
    a_version(members=(a_result(body=b"m" * 1_000), a_result())),
    a_version(documents=(SMALL.sha256,), attached=(SMALL,)),
]
EXPECTED = {
    LAB: sum(version.size for version in VERSIONS) + 300_100,
    OTHER: successor(VERSIONS[0]).size,
}


@pytest.fixture
async def old(url: str, database: Database) -> Database:
    """A database of schema version 3 with versions of two tenants."""
    store = store_of(url)
    await store.start()
    await add_all(store, VERSIONS[1:])
    assert await store.add(LAB, VERSIONS[0], BLOBS)
    assert await store.add(OTHER, successor(VERSIONS[0]))
    await store.stop()
    for name in (schema.QUOTA_OVERRIDE, schema.QUOTA_COUNT, schema.STORED_BYTES):
        database[name].drop()
    database[schema.STORE].delete_one({"_id": schema.STORED_BYTES})
    database[schema.STORE].update_one({"_id": schema.SCHEMA}, {"$set": {"version": 3}})
    return database


async def test_what_an_older_database_stores_is_counted(old: Database, reopen: Reopen) -> None:
    store = await reopen()

    assert await store.stored_bytes([LAB, OTHER]) == EXPECTED
    found = old[schema.STORE].find_one({"_id": schema.SCHEMA})
    assert found == {"_id": schema.SCHEMA, "version": schema.SCHEMA_VERSION}


async def test_an_older_database_is_counted_in_small_steps(
    old: Database, reopen: Reopen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_bytes, "_CHUNK", 4)

    store = await reopen()

    assert await store.stored_bytes([LAB, OTHER]) == EXPECTED


async def test_stores_that_start_at_once_on_an_older_database_count_once(
    old: Database, reopen: Reopen
) -> None:
    stores = await asyncio.gather(*(reopen() for _ in range(6)))

    assert [await store.stored_bytes([LAB, OTHER]) for store in stores] == [EXPECTED] * 6


@pytest.mark.parametrize("done", [{}, {LAB: EXPECTED[LAB]}, EXPECTED])
async def test_a_count_that_a_kill_interrupted_is_completed_by_the_next_start(
    old: Database, url: str, reopen: Reopen, done: dict[str, int]
) -> None:
    await (await reopen()).stop()
    # The state that a process leaves that is killed after some tenants.
    old[schema.STORED_BYTES].delete_many({"_id": {"$nin": [*done]}})
    unfinished = {"$set": {"counted": False}}
    old[schema.STORE].update_one({"_id": schema.STORED_BYTES}, unfinished)

    store = await reopen()

    assert await store.stored_bytes([LAB, OTHER]) == EXPECTED


async def test_a_process_that_is_late_with_its_count_changes_nothing(
    old: Database, reopen: Reopen
) -> None:
    store = await reopen()
    added = [a_version() for _ in range(3)]
    await add_all(store, added)
    size = sum(version.size for version in added)
    await wait_for_stored_bytes(store, LAB, EXPECTED[LAB] + size)
    unfinished = {"$set": {"counted": False}}
    old[schema.STORE].update_one({"_id": schema.STORED_BYTES}, unfinished)

    late = await reopen()

    await wait_for_stored_bytes(late, LAB, EXPECTED[LAB] + size)


async def test_the_counters_are_written_once_a_second_however_much_is_added(
    store: Store, reopen: Reopen
) -> None:
    begun = time.monotonic()
    with COMMANDS.recorded(stored_bytes=True) as sent:
        for _ in range(20):
            await store.add(LAB, a_version())
        await wait_for_stored_bytes(await reopen(), LAB, 20 * a_version().size)

    writes = [c for c in sent if c["command"] == "update" and c["update"] == "stored_bytes"]
    assert 1 <= len(writes) <= 3 + time.monotonic() - begun


async def test_a_process_knows_at_once_what_it_adds_and_deletes(store: Store) -> None:
    version, blob = a_version(), a_blob(os.urandom(500))
    await store.add(LAB, version, [blob])
    assert await store.stored_bytes([LAB]) == {LAB: version.size + 500}

    await store.sweep_blobs(LAB, before=FOREVER)

    assert await store.stored_bytes([LAB]) == {LAB: version.size}


async def test_nothing_is_written_when_nothing_was_added(store: Store) -> None:
    with COMMANDS.recorded(stored_bytes=True) as sent:
        await store.latest(LAB, new_id())
        await asyncio.sleep(1.5)

    assert [command["command"] for command in sent if command["command"] == "update"] == []


async def test_what_could_not_be_written_is_counted_later(
    admin: Admin, tried: MongoStore, database: Database
) -> None:
    version = a_version()
    refused: dict[str, Any] = {"errorCode": 10107, "closeConnection": False}
    with failing(admin, "update", errorLabels=["NoWritesPerformed"], **refused):
        assert await tried.add(LAB, version)
        with pytest.raises(StoreUnavailable):
            await tried.check()
        await asyncio.sleep(1.5)
        assert database[schema.STORED_BYTES].find_one({"_id": LAB}) is None

    await wait_for_stored_bytes(tried, LAB, version.size)
    await tried.stop()
    found = database[schema.STORED_BYTES].find_one({"_id": LAB}) or {}
    assert found["added"] == version.size
