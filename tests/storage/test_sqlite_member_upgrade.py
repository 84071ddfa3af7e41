"""A file of schema version 5 gets a place for members, and none of its versions becomes one."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.sqlite.rows import Addition
from fhirpub.storage.sqlite.schema import VERSION_COLUMNS
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.samples import new_member_id
from fhirpub.testing.store_contract import LAB, Reopen, a_version, reopening, successor
from tests.storage.older_sqlite_files import kill_amid_upgrade, to_version_5
from tests.storage.test_sqlite_upgrade import schema_of, schema_of_upgraded_file

FIRST = a_version()
OTHERS = [a_version(type="Observation", system="", value="") for _ in range(3)]


@pytest.fixture
async def older(tmp_path: Path) -> Path:
    """A file of schema version 5 with versions of several resources."""
    path = tmp_path / "fhirpub.db"
    store = SqliteStore(path, deadline_seconds=10)
    await store.start()
    for version in (FIRST, successor(FIRST), *OTHERS):
        await store.add(LAB, version)
    await store.stop()
    to_version_5(path)
    return path


@pytest.fixture
async def reopen(older: Path) -> AsyncGenerator[Reopen]:
    async with reopening(lambda: SqliteStore(older, deadline_seconds=30)) as reopen:
        yield reopen


async def test_a_file_of_version_5_gets_what_a_new_one_has(
    older: Path, tmp_path: Path, reopen: Reopen
) -> None:
    await reopen()

    assert schema_of(older) == await schema_of_upgraded_file(tmp_path)


async def test_every_version_of_an_older_file_is_counted_and_scanned(reopen: Reopen) -> None:
    store = await reopen()

    assert await store.count() == 5
    scanned = [version for _tenant, version in await store.scan()]
    expected = [FIRST, successor(FIRST), *OTHERS]
    assert scanned == sorted(expected, key=lambda each: (each.id, each.version))


async def test_an_older_file_takes_members_after_the_upgrade(reopen: Reopen) -> None:
    store = await reopen()
    members = tuple(a_version(id=new_member_id(), type="Observation") for _ in range(3))
    third = successor(successor(FIRST), members=members)

    await store.add(LAB, third)

    assert await store.count() == 6
    assert (LAB, third) in await store.scan()
    assert await store.latest(LAB, members[0].id) == members[0]


async def test_versions_that_an_older_release_still_adds_afterwards_are_no_members(
    older: Path, reopen: Reopen
) -> None:
    version = a_version()
    *row, _found_by, _members = Addition(LAB, version, (), now=0).rows[-1]
    with contextlib.closing(sqlite3.connect(older)) as old:
        store = await reopen()
        places = ", ".join("?" * len(row))
        old.execute(f"INSERT INTO version ({VERSION_COLUMNS}) VALUES ({places})", row)
        old.commit()

    assert await store.count() == 6
    assert (LAB, version) in await store.scan()


async def test_a_process_that_is_killed_amid_the_upgrade_leaves_the_older_file(
    older: Path, reopen: Reopen
) -> None:
    await asyncio.to_thread(kill_amid_upgrade, older, 5)

    store = await reopen()

    assert await store.history(LAB, FIRST.id) == [successor(FIRST), FIRST]


async def test_stores_that_start_at_once_on_an_older_file_all_start(reopen: Reopen) -> None:
    stores = await asyncio.gather(*(reopen() for _ in range(4)))

    assert [await store.count() for store in stores] == [5] * 4


async def test_an_upgrade_that_cannot_be_completed_changes_nothing(older: Path) -> None:
    with contextlib.closing(sqlite3.connect(older)) as connection:
        connection.execute("CREATE INDEX members ON version (created)")

    with pytest.raises(StoreUnavailable):
        await SqliteStore(older, deadline_seconds=1).start()

    with contextlib.closing(sqlite3.connect(older)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (5,)
        kinds = connection.execute("SELECT type FROM sqlite_master WHERE name = 'members'")
        assert kinds.fetchall() == [("index",)]
