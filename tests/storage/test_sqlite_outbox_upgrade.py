"""A file of schema version 8, with a row for each pending version, publishes the same ones."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.sqlite.tables.webhooks import OUTBOX_SINCE_8
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.samples import LAB, OTHER, a_version, successor
from fhirpub.testing.store_contract import Reopen, reopening
from fhirpub.testing.webhook_contract import EVENTS, pending_keys
from tests.storage.older_sqlite_files import kill_amid_upgrade, to_version_8
from tests.storage.test_sqlite_upgrade import new_file, schema_of

PUBLISHED = [a_version(events=EVENTS) for _ in range(5)]
FIRST = a_version(events=EVENTS, members=(a_result(), a_result()))
SECOND = successor(FIRST, members=())
LATER = a_version(events=EVENTS)
PENDING = [(FIRST.id, 1), (SECOND.id, 2), (LATER.id, 1)]
STEPS = len(OUTBOX_SINCE_8)


def keys(connection: sqlite3.Connection) -> set[tuple[str, int]]:
    return {*connection.execute("SELECT id, version FROM unrelayed")}


@pytest.fixture
async def older(tmp_path: Path) -> Path:
    """A file of schema version 8 with published and pending versions, and some without events."""
    path = tmp_path / "fhirpub.db"
    store = SqliteStore(path, deadline_seconds=10)
    await store.start()
    for version in (*PUBLISHED[:3], FIRST, a_version(), *PUBLISHED[3:]):
        await store.add(LAB, version)
    await store.mark_published([(version.id, 1) for version in PUBLISHED])
    for tenant, version in ((LAB, SECOND), (OTHER, LATER), (LAB, a_version())):
        await store.add(tenant, version)
    await store.stop()
    to_version_8(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert keys(connection) == set(PENDING)
    return path


@pytest.fixture
async def reopen(older: Path) -> AsyncGenerator[Reopen]:
    async with reopening(lambda: SqliteStore(older, deadline_seconds=30)) as reopen:
        yield reopen


async def test_a_file_of_version_8_gets_what_a_new_one_has(
    older: Path, tmp_path: Path, reopen: Reopen
) -> None:
    await reopen()

    assert schema_of(older) == schema_of(await new_file(tmp_path))


async def test_what_was_pending_in_an_older_file_is_published_once_and_nothing_else(
    reopen: Reopen,
) -> None:
    store = await reopen()
    found = await pending_keys(store)
    assert found == PENDING

    await store.mark_published(found[:2])

    again = await reopen()
    assert await pending_keys(again) == PENDING[2:]
    await again.mark_published(PENDING[2:])
    assert await pending_keys(again) == []


async def test_versions_that_are_added_to_an_older_file_afterwards_are_pending(
    reopen: Reopen,
) -> None:
    store, added = await reopen(), a_version(events=EVENTS)
    await store.add(LAB, added)

    assert await pending_keys(store) == [*PENDING, (added.id, 1)]
    await store.mark_published([(added.id, 1), PENDING[0]])
    assert await pending_keys(await reopen()) == PENDING[1:]


async def test_an_older_file_without_versions_publishes_what_is_added(tmp_path: Path) -> None:
    path, added = tmp_path / "empty.db", a_version(events=EVENTS)
    store = SqliteStore(path, deadline_seconds=10)
    for _start in range(2):
        await store.start()
        await store.stop()
        to_version_8(path)
    await store.start()
    await store.add(LAB, added)

    assert await pending_keys(store) == [(added.id, 1)]
    await store.stop()


@pytest.mark.parametrize("steps", [*range(1, STEPS + 1)])
async def test_a_process_that_is_killed_amid_the_upgrade_leaves_the_older_file(
    older: Path, reopen: Reopen, steps: int
) -> None:
    await asyncio.to_thread(kill_amid_upgrade, older, 8, steps=steps)
    with contextlib.closing(sqlite3.connect(older)) as connection:
        assert keys(connection) == set(PENDING)

    assert await pending_keys(await reopen()) == PENDING


async def test_stores_that_start_at_once_on_an_older_file_all_start(reopen: Reopen) -> None:
    stores = await asyncio.gather(*(reopen() for _ in range(4)))

    assert [await pending_keys(store) for store in stores] == [PENDING] * 4


async def test_an_upgrade_that_cannot_be_completed_changes_nothing(older: Path) -> None:
    with contextlib.closing(sqlite3.connect(older)) as connection:
        connection.execute("DROP TRIGGER version_has_events")
    before = schema_of(older)

    with pytest.raises(StoreUnavailable):
        await SqliteStore(older, deadline_seconds=1).start()

    assert schema_of(older) == before
