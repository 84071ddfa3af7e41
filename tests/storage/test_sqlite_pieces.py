"""What is large is committed in pieces, between which the writes of others are committed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import threading
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from fhirpub.storage.contract import MAX_CHUNK_BYTES, Blob, Version
from fhirpub.storage.sqlite.blobs import Piece, pieces_of, sweep
from fhirpub.storage.sqlite.database import _BATCH_BOUNDS, Database, _owner_of
from fhirpub.storage.sqlite.rows import CHUNK_BYTES, PIECE_BYTES
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.store_contract import (
    FOREVER,
    LAB,
    OTHER,
    Reopen,
    a_blob,
    a_version,
    reopening,
    whole_blobs,
)
from tests.storage.test_sqlite import process

LARGE = a_blob(os.urandom(4 * PIECE_BYTES + 1))
LARGE_VERSION = a_version(body=os.urandom(3 * PIECE_BYTES), response=os.urandom(PIECE_BYTES + 1))

ADDING_LARGE_VERSIONS_WITHOUT_END = """
    async def add():
        while True:
            version = a_version(body=os.urandom(1_000_000) + b"b", response=os.urandom(1_000_000))
            if await store.add(LAB, version):
                os.write(1, f"{version.id}\\n".encode())
    await asyncio.gather(*(add() for _ in range(4)))
"""

ADDING_LARGE_DOCUMENTS_WITHOUT_END = """
    from fhirpub.testing.store_contract import a_blob
    async def add():
        while True:
            blob = a_blob(os.urandom(2_000_000))
            version = a_version(documents=(blob.sha256,))
            if await store.add(LAB, version, [blob]):
                os.write(1, f"{version.id} {blob.sha256}\\n".encode())
    await asyncio.gather(*(add() for _ in range(4)))
"""


@pytest.fixture
async def reopen(path: Path) -> AsyncGenerator[Reopen]:
    async with reopening(lambda: SqliteStore(path, deadline_seconds=30)) as reopen:
        yield reopen


@pytest.fixture
async def store(path: Path) -> AsyncGenerator[SqliteStore]:
    store = SqliteStore(path, deadline_seconds=30)
    await store.start()
    yield store
    await store.stop()


def database_of(store: SqliteStore) -> Database:
    assert store._file is not None
    return store._file


async def write_pieces(store: SqliteStore, blob: Blob, *, how_many: int) -> None:
    """Write the first pieces of a document, as a process does that is then killed."""
    for piece, _ in zip(pieces_of(LAB, blob, now=1), range(how_many), strict=False):
        await database_of(store).write(piece)


def count_of(path: Path, table: str) -> int:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        count: int = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        return count


@pytest.mark.parametrize(
    ("version", "blobs"),
    [(a_version(documents=(LARGE.sha256,)), (LARGE,)), (LARGE_VERSION, ())],
    ids=["document", "version"],
)
async def test_a_write_of_another_tenant_waits_for_one_piece_only(
    store: SqliteStore, path: Path, version: Version, blobs: tuple[Blob, ...]
) -> None:
    may_end = threading.Event()
    in_progress = asyncio.ensure_future(database_of(store).write(lambda _: may_end.wait(30)))
    await asyncio.sleep(0.1)
    large = asyncio.create_task(store.add(LAB, version, blobs), name="large")
    await asyncio.sleep(0.1)
    small = asyncio.create_task(store.add(OTHER, a_version()))
    await asyncio.sleep(0)

    may_end.set()
    await small
    is_stored = large.done()

    assert all(await asyncio.gather(in_progress, large))
    assert not is_stored
    assert count_of(path, "blob_piece") == 5


def test_a_piece_is_committed_alone() -> None:
    assert Piece.cost > _BATCH_BOUNDS.size


def test_pieces_take_turns_as_writes_of_their_tenant() -> None:
    assert {_owner_of(piece) for piece in pieces_of(LAB, LARGE, now=1)} == {LAB}


async def test_a_document_of_one_piece_is_stored_with_its_version(
    store: SqliteStore, path: Path
) -> None:
    blob = a_blob(os.urandom(PIECE_BYTES))

    await store.add(LAB, a_version(documents=(blob.sha256,)), [blob])

    assert count_of(path, "blob_piece") == 0
    assert await whole_blobs(store, LAB, [blob.sha256]) == {blob.sha256: blob}


async def test_a_document_that_is_stored_is_not_written_again(
    store: SqliteStore, path: Path
) -> None:
    await store.add(LAB, a_version(documents=(LARGE.sha256,)), [LARGE])
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TRIGGER no_piece BEFORE INSERT ON blob_piece "
            "BEGIN SELECT RAISE(ABORT, 'written again'); END"
        )

    assert await store.add(LAB, a_version(documents=(LARGE.sha256,)), [LARGE])


async def test_a_document_of_which_pieces_are_missing_is_not_found(store: SqliteStore) -> None:
    await write_pieces(store, LARGE, how_many=5)

    assert await store.blobs(LAB, [LARGE.sha256]) == {}


@pytest.mark.parametrize("how_many", range(6))
async def test_a_document_is_completed_whichever_pieces_are_there(
    store: SqliteStore, path: Path, how_many: int
) -> None:
    await write_pieces(store, LARGE, how_many=how_many)
    if how_many > 2:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("DELETE FROM blob_piece WHERE number % 2 = 1")
            connection.commit()

    await store.add(LAB, a_version(documents=(LARGE.sha256,)), [LARGE])

    assert await whole_blobs(store, LAB, [LARGE.sha256]) == {LARGE.sha256: LARGE}


async def test_the_commit_of_a_version_adds_pieces_that_a_sweep_has_deleted(
    store: SqliteStore,
) -> None:
    adding = asyncio.create_task(store.add(LAB, a_version(documents=(LARGE.sha256,)), [LARGE]))
    while not adding.done():
        await store.sweep_blobs(LAB, before=FOREVER)

    assert await whole_blobs(store, LAB, [LARGE.sha256]) == {LARGE.sha256: LARGE}


async def test_pieces_without_a_version_are_swept(store: SqliteStore, path: Path) -> None:
    await write_pieces(store, LARGE, how_many=3)

    assert await store.sweep_blobs(LAB, before=1) == 0
    assert await store.sweep_blobs(LAB, before=FOREVER) == 1
    assert count_of(path, "blob_piece") == count_of(path, "blob") == 0
    assert await store.stored_bytes([LAB]) == {}


async def test_a_sweep_deletes_a_large_document_in_several_commits(
    store: SqliteStore, path: Path
) -> None:
    blob = a_blob(bytes(20 * PIECE_BYTES))
    await write_pieces(store, blob, how_many=20)

    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        first = sweep(connection, tenant=LAB, before=FOREVER)
        left = count_of(path, "blob_piece")
        following = sweep(connection, tenant=LAB, before=FOREVER)

    assert (first, left, following) == ((1, 0), 4, (1, 1))


async def test_documents_with_pieces_are_swept_apart_from_those_beside_them(
    store: SqliteStore,
) -> None:
    others = [a_blob(os.urandom(PIECE_BYTES + number)) for number in (1, 2)]
    for blob in (others[0], LARGE, others[1]):
        await store.add(LAB, a_version(documents=() if blob is LARGE else (blob.sha256,)), [blob])

    assert await store.sweep_blobs(LAB, before=FOREVER) == 1

    kept = {blob.sha256: blob for blob in others}
    assert await whole_blobs(store, LAB, [LARGE.sha256, *kept]) == kept


@pytest.mark.slow
async def test_a_version_survives_a_kill_of_the_writer_with_its_whole_document_or_not_at_all(
    path: Path, reopen: Reopen
) -> None:
    acknowledged: list[str] = []
    abandoned = 0
    for number in range(30):  # until a document was being written
        with process(ADDING_LARGE_DOCUMENTS_WITHOUT_END, str(path)) as writer:
            assert writer.stdout is not None
            acknowledged.append(writer.stdout.readline().strip())
            await asyncio.sleep(0.02 + number % 6 * 0.02)
            writer.send_signal(signal.SIGKILL)
            acknowledged += writer.stdout.read().split("\n")[:-1]

        store = await reopen()
        stored = {version.id: version for _tenant, version in await store.scan(limit=10_000)}
        names = [name for version in stored.values() for name in version.documents]
        documents = await whole_blobs(store, LAB, names)
        abandoned += await store.sweep_blobs(LAB, before=FOREVER)
        await store.stop()

        assert {line.split()[0] for line in acknowledged} <= set(stored)
        assert set(documents) == set(names)
        assert all(a_blob(blob.data).sha256 == name for name, blob in documents.items())
        with contextlib.closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert count_of(path, "blob") == len(names)
        assert count_of(path, "blob_piece") == 2 * len(names)
        if abandoned and number >= 5:
            break
    assert abandoned, "the kills came when nothing was being written"


async def test_a_version_that_is_refused_leaves_pieces_that_are_swept(
    store: SqliteStore, path: Path
) -> None:
    await store.add(LAB, replace(LARGE_VERSION, body=b"{}", response=b""))

    assert not await store.add(LAB, LARGE_VERSION)
    assert await store.sweep_blobs(LAB, before=FOREVER) == 1
    assert count_of(path, "blob_piece") == 0


async def test_no_sweep_takes_the_pieces_of_a_version(store: SqliteStore) -> None:
    await store.add(LAB, LARGE_VERSION)

    assert await store.sweep_blobs(LAB, before=FOREVER) == 0
    assert await store.latest(LAB, LARGE_VERSION.id) == LARGE_VERSION


@pytest.mark.slow
async def test_a_large_version_survives_a_kill_of_the_writer_whole_or_not_at_all(
    path: Path, reopen: Reopen
) -> None:
    abandoned = 0
    for number in range(30):  # until a version was being written
        with process(ADDING_LARGE_VERSIONS_WITHOUT_END, str(path)) as writer:
            assert writer.stdout is not None
            acknowledged = [writer.stdout.readline().strip()]
            await asyncio.sleep(0.02 + number % 6 * 0.02)
            writer.send_signal(signal.SIGKILL)
            acknowledged += writer.stdout.read().split("\n")[:-1]

        store = await reopen()
        versions = [await store.latest(LAB, one) for one in acknowledged]
        abandoned += await store.sweep_blobs(LAB, before=FOREVER)
        everything = await store.scan(limit=10_000)
        await store.stop()

        assert all(one and one.body.endswith(b"b") for one in versions)
        assert all(len(one.body + one.response) == 2_000_001 for _tenant, one in everything)
        if abandoned and number >= 5:
            break
    assert abandoned, "the kills came when nothing was being written"


def test_a_chunk_is_as_the_contract_allows_and_base64_needs() -> None:
    assert CHUNK_BYTES <= MAX_CHUNK_BYTES
    assert CHUNK_BYTES % 3 == PIECE_BYTES % CHUNK_BYTES == 0
