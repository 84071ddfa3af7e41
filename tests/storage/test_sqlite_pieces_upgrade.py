"""A file of schema version 4 gets a place for pieces, and keeps the documents it has whole."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.sqlite.rows import PIECE_BYTES
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.store_contract import LAB, Reopen, a_blob, a_version, reopening, whole_blobs
from tests.storage.older_sqlite_files import kill_amid_upgrade, to_version_4
from tests.storage.test_sqlite_upgrade import schema_of, schema_of_upgraded_file

LARGE = a_blob(os.urandom(4 * PIECE_BYTES + 1))


@pytest.fixture
async def older(tmp_path: Path) -> Path:
    """A file of schema version 4 with a large document."""
    path = tmp_path / "fhirpub.db"
    store = SqliteStore(path, deadline_seconds=10)
    await store.start()
    await store.add(LAB, a_version(documents=(LARGE.sha256,)), [LARGE])
    await store.stop()
    to_version_4(path)
    return path


def pieces_in(path: Path) -> int:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        count: int = connection.execute("SELECT count(*) FROM blob_piece").fetchone()[0]
        return count


@pytest.fixture
async def reopen(older: Path) -> AsyncGenerator[Reopen]:
    async with reopening(lambda: SqliteStore(older, deadline_seconds=30)) as reopen:
        yield reopen


async def test_a_file_of_version_4_gets_what_a_new_one_has(
    older: Path, tmp_path: Path, reopen: Reopen
) -> None:
    await reopen()

    assert schema_of(older) == await schema_of_upgraded_file(tmp_path)


async def test_a_large_document_of_an_older_file_is_read_as_a_whole_and_in_parts(
    older: Path, reopen: Reopen
) -> None:
    store = await reopen()
    known = (await store.blobs(LAB, [LARGE.sha256]))[LARGE.sha256]

    part = slice(PIECE_BYTES - 7, 3 * PIECE_BYTES + 11)
    pieces = [piece async for piece in store.blob_pieces(LAB, known, part)]

    assert b"".join(pieces) == LARGE.data[part]
    assert await whole_blobs(store, LAB, [LARGE.sha256]) == {LARGE.sha256: LARGE}


async def test_a_large_document_of_an_older_file_is_not_stored_again(
    older: Path, reopen: Reopen
) -> None:
    store = await reopen()

    assert await store.add(LAB, a_version(documents=(LARGE.sha256,)), [LARGE])
    assert pieces_in(older) == 0


async def test_an_older_file_takes_documents_in_pieces_after_the_upgrade(
    older: Path, reopen: Reopen
) -> None:
    store, blob = await reopen(), a_blob(os.urandom(2 * PIECE_BYTES))

    await store.add(LAB, a_version(documents=(blob.sha256,)), [blob])

    assert await whole_blobs(store, LAB, [blob.sha256]) == {blob.sha256: blob}
    assert pieces_in(older) == 2


async def test_a_process_that_is_killed_amid_the_upgrade_leaves_the_older_file(
    older: Path, reopen: Reopen
) -> None:
    await asyncio.to_thread(kill_amid_upgrade, older, 4)

    store = await reopen()

    assert await whole_blobs(store, LAB, [LARGE.sha256]) == {LARGE.sha256: LARGE}


async def test_stores_that_start_at_once_on_an_older_file_all_start(
    older: Path, reopen: Reopen
) -> None:
    stores = await asyncio.gather(*(reopen() for _ in range(4)))

    for store in stores:
        assert await whole_blobs(store, LAB, [LARGE.sha256]) == {LARGE.sha256: LARGE}


async def test_an_upgrade_that_cannot_be_completed_changes_nothing(older: Path) -> None:
    with contextlib.closing(sqlite3.connect(older)) as connection:
        connection.execute("CREATE TABLE blob_piece (x)")

    with pytest.raises(StoreUnavailable):
        await SqliteStore(older, deadline_seconds=1).start()

    with contextlib.closing(sqlite3.connect(older)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (4,)
