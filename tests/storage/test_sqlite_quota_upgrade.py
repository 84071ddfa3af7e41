"""A file of schema version 2 gets quotas, and what it already stores is counted once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.quota_contract import QuotaOverride
from fhirpub.storage.sqlite import schema as sql
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.store_contract import (
    LAB,
    OTHER,
    Reopen,
    a_blob,
    a_version,
    reopening,
    successor,
)
from tests.storage.older_sqlite_files import kill_amid_upgrade, to_version_2

BLOB, LARGE = a_blob(), a_blob(os.urandom(200_000))
FIRST = a_version(body=b"b" * 300, response=b"r" * 20, documents=(BLOB.sha256, LARGE.sha256))
THEIRS = a_version(body=b"t" * 70)
EXPECTED = {
    LAB: FIRST.size + successor(FIRST).size + len(BLOB.data) + len(LARGE.data),
    OTHER: THEIRS.size,
}


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A file of schema version 2 with versions of two tenants."""
    path = tmp_path / "fhirpub.db"
    store = SqliteStore(path, deadline_seconds=10)
    await store.start()
    await store.add(LAB, FIRST, [BLOB, LARGE])
    await store.add(LAB, successor(FIRST))
    await store.add(OTHER, THEIRS)
    await store.stop()
    to_version_2(path)
    return path


@pytest.fixture
async def reopen(path: Path) -> AsyncGenerator[Reopen]:
    async with reopening(lambda: SqliteStore(path, deadline_seconds=10)) as reopen:
        yield reopen


async def test_what_an_older_file_stores_is_counted(reopen: Reopen) -> None:
    store = await reopen()

    assert await store.stored_bytes([LAB, OTHER]) == EXPECTED
    assert await store.quota_overrides() == []


async def test_an_upgraded_file_keeps_its_contents_and_counts_what_is_added(
    reopen: Reopen,
) -> None:
    store = await reopen()
    version = a_version(body=b"n" * 999)
    await store.add(OTHER, version)
    await store.put_quota_overrides([QuotaOverride(LAB, "tenant_stored_bytes", 5)])

    assert await store.history(LAB, FIRST.id) == [successor(FIRST), FIRST]
    assert await store.stored_bytes([LAB, OTHER]) == EXPECTED | {OTHER: THEIRS.size + version.size}
    assert len(await store.quota_overrides()) == 1


async def test_stores_that_start_at_once_count_once(reopen: Reopen) -> None:
    stores = await asyncio.gather(*(reopen() for _ in range(6)))

    assert [await store.stored_bytes([LAB, OTHER]) for store in stores] == [EXPECTED] * 6


async def test_a_process_that_is_killed_amid_the_upgrade_leaves_the_older_file(
    path: Path, reopen: Reopen
) -> None:
    await asyncio.to_thread(kill_amid_upgrade, path, 2, steps=-1)

    store = await reopen()

    assert await store.stored_bytes([LAB, OTHER]) == EXPECTED
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (sql.SCHEMA_VERSION,)


async def test_an_upgrade_that_cannot_be_completed_changes_nothing(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE stored_bytes (x)")

    with pytest.raises(StoreUnavailable):
        await SqliteStore(path, deadline_seconds=1).start()

    with contextlib.closing(sqlite3.connect(path)) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        assert "quota_count" not in names
