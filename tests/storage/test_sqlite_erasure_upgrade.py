"""A file of schema version 11 can be erased from."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from fhirpub.storage.erasure.tombstones import is_erased
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.sqlite.tables import erasure
from fhirpub.testing.contracts.erasure.content import an_erasure, erase
from fhirpub.testing.samples import LAB, a_version
from fhirpub.testing.store_contract import Reopen, reopening
from tests.storage.older_sqlite_files import kill_amid_upgrade, to_version_11
from tests.storage.test_sqlite_upgrade import new_file, schema_of

FIRST = a_version(response=b"first")


@pytest.fixture
async def older(tmp_path: Path) -> Path:
    path = tmp_path / "fhirpub.db"
    store = SqliteStore(path, deadline_seconds=10)
    await store.start()
    await store.add(LAB, FIRST)
    await store.stop()
    to_version_11(path)
    return path


@pytest.fixture
async def reopen(older: Path) -> AsyncGenerator[Reopen]:
    async with reopening(lambda: SqliteStore(older, deadline_seconds=30)) as reopen:
        yield reopen


async def test_a_file_of_version_11_gets_what_a_new_one_has(
    older: Path, tmp_path: Path, reopen: Reopen
) -> None:
    await reopen()

    assert schema_of(older) == schema_of(await new_file(tmp_path))


@pytest.mark.parametrize("steps", range(1, len(erasure.TABLES) + 1))
async def test_a_version_of_an_older_file_is_erased_also_if_its_upgrade_was_killed(
    older: Path, reopen: Reopen, steps: int
) -> None:
    await asyncio.to_thread(kill_amid_upgrade, older, 11, steps=steps)
    store = await reopen()
    assert await store.latest(LAB, FIRST.id) == FIRST

    await store.put_erasure(an_erasure(id=FIRST.id))
    await erase(store, FIRST)

    husk = await store.version(LAB, FIRST.id, 1)
    assert husk is not None
    assert is_erased(husk)
    assert husk.response == b""
