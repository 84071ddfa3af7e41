"""A file of schema version 10 gets an audit trail, in which nothing is recorded yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.sqlite.tables import audit
from fhirpub.testing.contracts.audit.sealing import seal_all
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.samples import LAB, OTHER, a_version, successor
from fhirpub.testing.store_contract import Reopen, a_blob, reopening
from tests.storage.older_sqlite_files import kill_amid_upgrade, to_version_10
from tests.storage.test_sqlite_upgrade import new_file, schema_of

DOCUMENT = a_blob(b"small")
FIRST = a_version(
    documents=(DOCUMENT.sha256,), attached=(DOCUMENT,), members=(a_result(), a_result())
)
SECOND = successor(FIRST, members=())
STEPS = len(audit.TABLES) + 1
"""The tables, and the column of versions."""


@pytest.fixture
async def older(tmp_path: Path) -> Path:
    path = tmp_path / "fhirpub.db"
    store = SqliteStore(path, deadline_seconds=10)
    await store.start()
    await store.add(LAB, FIRST)
    await store.add(LAB, SECOND)
    await store.add(OTHER, a_version())
    await store.stop()
    to_version_10(path)
    return path


@pytest.fixture
async def reopen(older: Path) -> AsyncGenerator[Reopen]:
    async with reopening(lambda: SqliteStore(older, deadline_seconds=30)) as reopen:
        yield reopen


async def test_a_file_of_version_10_gets_what_a_new_one_has(
    older: Path, tmp_path: Path, reopen: Reopen
) -> None:
    await reopen()

    assert schema_of(older) == schema_of(await new_file(tmp_path))


async def test_versions_of_an_older_file_are_read_and_have_no_records(reopen: Reopen) -> None:
    store = await reopen()

    assert await store.latest(LAB, SECOND.id) == SECOND
    assert await store.version(LAB, FIRST.id, 1) == replace(FIRST, members=())
    assert await seal_all(store) == []


async def test_what_is_written_to_an_older_file_afterwards_is_recorded(reopen: Reopen) -> None:
    store = await reopen()
    added = successor(SECOND, audit=b'{"action":"update"}')
    await store.add(LAB, added)

    (block,) = await seal_all(await reopen())

    assert block.tenant == LAB
    assert await store.latest(LAB, added.id) == added


@pytest.mark.parametrize("steps", range(1, STEPS + 1))
async def test_an_upgrade_that_was_killed_is_made_again(
    older: Path, reopen: Reopen, steps: int
) -> None:
    await asyncio.to_thread(kill_amid_upgrade, older, 10, steps=steps)

    store = await reopen()

    assert await store.latest(LAB, SECOND.id) == SECOND
    assert await seal_all(store) == []
