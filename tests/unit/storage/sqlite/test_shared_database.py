"""A file on a second event loop shares the threads of the first, and closes none of them."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from fhirpub.errors import SearchTooCostly, StoreUnavailable
from fhirpub.storage.sqlite.database import Database
from fhirpub.storage.sqlite.shared_database import SharedDatabase
from fhirpub.testing.samples import LAB
from tests.unit.storage.sqlite.probe import many


@pytest.fixture
async def owner(tmp_path: Path) -> AsyncGenerator[Database]:
    owner = Database(tmp_path / "fhirpub.db", 10)
    yield owner
    await owner.close()


@pytest.fixture
async def shared(owner: Database) -> AsyncGenerator[SharedDatabase]:
    shared = SharedDatabase(owner)
    yield shared
    await shared.close()


def put(connection: sqlite3.Connection) -> str:
    """Write, and return the name of the thread."""
    connection.execute("INSERT OR REPLACE INTO probe (number, moment) VALUES (1, 5)")
    return threading.current_thread().name


async def test_writes_of_both_loops_are_made_by_one_thread(
    owner: Database, shared: SharedDatabase
) -> None:
    assert await shared.write(put) == await owner.write(put) == "sqlite-writer_0"


async def test_each_loop_collects_its_own_writes(owner: Database, shared: SharedDatabase) -> None:
    assert shared._group is not owner._group


async def test_each_loop_reads_at_once_through_its_own_connection(
    owner: Database, shared: SharedDatabase
) -> None:
    assert shared._at_once is not owner._at_once
    assert shared.at_once("PRAGMA busy_timeout", ()) == [(0,)]
    assert shared.at_once("PRAGMA query_only", ()) == [(1,)]


async def test_what_one_loop_has_written_the_other_reads(
    owner: Database, shared: SharedDatabase
) -> None:
    await shared.write(put)

    assert owner.at_once("SELECT moment FROM probe", ()) == [(5,)]


async def test_reads_of_tenants_are_made_in_the_threads_that_belong_to_no_loop(
    shared: SharedDatabase,
) -> None:
    name = await shared.read_for(LAB, lambda _connection: threading.current_thread().name)

    assert name.startswith("sqlite-reader")


async def test_a_search_beyond_its_time_is_too_costly(shared: SharedDatabase) -> None:
    with pytest.raises(SearchTooCostly):
        await shared.read_for(LAB, many, max_seconds=0.001)


async def test_a_read_that_fails_is_unavailable(shared: SharedDatabase) -> None:
    with pytest.raises(StoreUnavailable) as failed:
        await shared.read_for(LAB, lambda connection: connection.execute("SELECT nothing"))

    assert failed.value.reason == "SQLITE_ERROR"


async def test_the_end_of_the_second_finishes_its_writes_and_leaves_the_first_open(
    owner: Database,
) -> None:
    shared = SharedDatabase(owner)
    writing = asyncio.ensure_future(shared.write(put))
    await asyncio.sleep(0)

    await shared.close()

    assert writing.done()
    assert await owner.write(put) == "sqlite-writer_0"
    assert owner.at_once("SELECT moment FROM probe", ()) == [(5,)]


async def test_the_connection_of_the_second_is_closed_with_the_first(tmp_path: Path) -> None:
    owner = Database(tmp_path / "fhirpub.db", 10)
    shared = SharedDatabase(owner)
    await shared.close()

    await owner.close()

    with pytest.raises(StoreUnavailable):
        shared.at_once("SELECT 1", ())
