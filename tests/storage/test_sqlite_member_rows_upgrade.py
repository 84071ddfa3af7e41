"""A file of schema version 6, with a row for each member, keeps all members and finds the same."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import Version
from fhirpub.storage.criteria import TokenMatch, encode
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.contracts.store.members import a_result, results
from fhirpub.testing.contracts.store.queries import match, query
from fhirpub.testing.store_contract import LAB, Reopen, a_version, reopening, successor
from tests.storage.older_sqlite_files import kill_amid_upgrade, to_version_6
from tests.storage.test_sqlite_upgrade import schema_of, schema_of_upgraded_file

CODE = encode([("code", "a", "s")])


def a_panel(count: int) -> Version:
    return a_version(members=tuple(a_result(search=CODE) for _ in range(count)))


PANEL, LARGE = a_panel(3), a_panel(600)
SECOND = successor(PANEL, members=(successor(PANEL.members[1], search=CODE), a_result()))
ALONE = a_version()
VERSIONS = [ALONE, PANEL, LARGE, a_version(), SECOND]


@pytest.fixture
async def older(tmp_path: Path) -> Path:
    """A file of schema version 6 with members among other versions."""
    path = tmp_path / "fhirpub.db"
    store = SqliteStore(path, deadline_seconds=10)
    await store.start()
    for version in VERSIONS:
        await store.add(LAB, version)
    await store.stop()
    to_version_6(path)
    return path


@pytest.fixture
async def reopen(older: Path) -> AsyncGenerator[Reopen]:
    async with reopening(lambda: SqliteStore(older, deadline_seconds=30)) as reopen:
        yield reopen


async def test_a_file_of_version_6_gets_what_a_new_one_has(
    older: Path, tmp_path: Path, reopen: Reopen
) -> None:
    await reopen()

    assert schema_of(older) == await schema_of_upgraded_file(tmp_path)


async def test_members_of_an_older_file_stay_with_their_versions(reopen: Reopen) -> None:
    store = await reopen()

    scanned = [version for _tenant, version in await store.scan()]
    assert scanned == sorted(VERSIONS, key=lambda each: (each.id, each.version))
    assert await store.count() == len(VERSIONS)
    assert await store.latest(LAB, PANEL.members[1].id) == SECOND.members[0]


async def test_an_older_file_takes_members_after_the_upgrade(reopen: Reopen) -> None:
    store = await reopen()
    third = replace(successor(SECOND), members=(a_result(search=CODE),))

    await store.add(LAB, third)

    assert (LAB, third) in await store.scan()
    found = await store.search(LAB, results(limit=0))
    assert found.total == len(LARGE.members) + len(PANEL.members) + 1 + 1


async def test_an_older_file_finds_by_identifier_and_not_its_members(
    older: Path, reopen: Reopen
) -> None:
    store = await reopen()

    identified = match(ALONE.system, ALONE.value)
    assert (await store.search(LAB, query(identified))).versions == (ALONE,)
    nameless = replace(results(), identifiers=((TokenMatch("", None),),))
    assert (await store.search(LAB, nameless)).versions == ()


@pytest.mark.parametrize("steps", [1, 2, None])
async def test_a_process_that_is_killed_amid_the_upgrade_leaves_the_older_file(
    older: Path, reopen: Reopen, steps: int | None
) -> None:
    await asyncio.to_thread(kill_amid_upgrade, older, 6, steps=steps)

    store = await reopen()

    assert (LAB, SECOND) in await store.scan()


async def test_stores_that_start_at_once_on_an_older_file_all_start(reopen: Reopen) -> None:
    stores = await asyncio.gather(*(reopen() for _ in range(4)))

    assert [await store.count() for store in stores] == [len(VERSIONS)] * 4


async def test_an_upgrade_that_cannot_be_completed_changes_nothing(older: Path) -> None:
    with contextlib.closing(sqlite3.connect(older)) as connection:
        connection.execute("CREATE INDEX members ON version (created)")
    before = schema_of(older)

    with pytest.raises(StoreUnavailable):
        await SqliteStore(older, deadline_seconds=1).start()

    assert schema_of(older) == before


async def test_new_files_have_no_entries_of_members_in_the_indexes_by_identifier(
    tmp_path: Path,
) -> None:
    path = tmp_path / "new.db"
    store = SqliteStore(path, deadline_seconds=10)
    await store.start()
    await store.add(LAB, PANEL)
    await store.stop()

    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("ANALYZE version")
        counts = dict(connection.execute("SELECT idx, stat FROM sqlite_stat1"))
    entries = {name: int(stat.split()[0]) for name, stat in counts.items()}
    assert entries["version_by_value"] == entries["version_by_system"] == 1
    assert entries["version_key"] == entries["version_by_time"] == 1 + len(PANEL.members)
