"""A store in a file: what it hands on to the parts of the engine."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fhirpub.encryption.cipher import SecretCipher
from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import SMALL_BYTES, Page
from fhirpub.storage.sqlite import schema as sql
from fhirpub.storage.sqlite import store as sqlite_store
from fhirpub.storage.sqlite.blobs import Piece
from fhirpub.storage.sqlite.files import identity_of
from fhirpub.storage.sqlite.rows import PIECE_BYTES
from fhirpub.storage.sqlite.shared_database import SharedDatabase
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.upgrades.versions import SchemaVersion
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.contracts.store.queries import query
from fhirpub.testing.contracts.store.records import a_blob
from fhirpub.testing.samples import LAB, OTHER, a_version, new_id, successor

_NOW = 1_700_000_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "fhirpub.db"


@pytest.fixture
async def store(path: Path) -> AsyncGenerator[SqliteStore]:
    store = SqliteStore(path, deadline_seconds=10, clock=lambda: _NOW)
    await store.start()
    yield store
    await store.stop()


async def rows_of(store: SqliteStore, statement: str) -> list[Any]:
    """Return what is in the file."""
    return await store._fetch_in_thread(statement, ())


async def test_a_store_that_was_started_keeps_its_file(store: SqliteStore) -> None:
    file = store._file

    await store.start()

    assert store._file is file


async def test_a_store_that_stops_forgets_its_file_and_its_page(store: SqliteStore) -> None:
    await store.pending_outbox(limit=1)
    before = store._page

    await store.stop()

    assert before is not None
    assert (store._file, store._page) == (None, None)


async def test_a_store_for_another_loop_has_all_that_this_one_has(path: Path) -> None:
    cipher = SecretCipher([b"k" * 32])
    store = SqliteStore(path, deadline_seconds=7, clock=lambda: _NOW, cipher=cipher)
    await store.start()

    other = store.for_other_loop()

    assert isinstance(other, SqliteStore)
    assert (other._path, other._deadline, other._clock) == (path, 7, store._clock)
    assert (other._shared, other.cipher) == (store._file, cipher)
    await other.start()
    assert isinstance(other._file, SharedDatabase)
    await other.stop()
    await store.stop()


async def test_a_check_writes_the_time(store: SqliteStore) -> None:
    await store.check()

    assert await rows_of(store, sql.PROBE) == [(_NOW,)]


async def test_a_check_finds_that_a_newer_release_has_upgraded_the_file(
    store: SqliteStore, path: Path
) -> None:
    await store._execute(f"PRAGMA user_version = {sql.SCHEMA_VERSION + 1}", ())

    with pytest.raises(StoreUnavailable):
        await store.check()


async def test_documents_are_added_at_the_time_of_the_clock(store: SqliteStore) -> None:
    await store.add(LAB, a_version(), [a_blob(), a_blob(bytes(PIECE_BYTES + 1))])

    assert await rows_of(store, "SELECT added FROM blob") == [(_NOW,), (_NOW,)]


@pytest.mark.parametrize(
    ("changes", "in_a_thread"),
    [
        ({}, False),
        ({"body": b"x" * 1_000}, False),
        ({"body": b"x" * (PIECE_BYTES + 1)}, True),
        ({"members": tuple(a_result() for _ in range(200))}, False),
        ({"members": tuple(a_result() for _ in range(201))}, True),
    ],
    ids=["small", "kilobyte", "large", "200 members", "201 members"],
)
async def test_the_rows_of_a_long_version_are_made_in_a_thread(
    store: SqliteStore,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    *,
    in_a_thread: bool,
) -> None:
    handed_over = []
    to_thread = asyncio.to_thread

    async def spy(work: Callable[..., Any]) -> Any:
        handed_over.append(work)
        return await to_thread(work)

    own = SimpleNamespace(**{**vars(asyncio), "to_thread": spy})
    monkeypatch.setattr(sqlite_store, "asyncio", own)

    assert await store.add(LAB, a_version(**changes))
    assert bool(handed_over) is in_a_thread


async def test_a_document_that_is_stored_is_not_sent_in_pieces_again(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    blob = a_blob(bytes(2 * PIECE_BYTES))
    await store.add(LAB, a_version(), [blob])
    written = []
    file = store._open
    write = file.write

    def spy(item: Any, **options: Any) -> Any:
        written.append(type(item).__name__)
        return write(item, **options)

    monkeypatch.setattr(file, "write", spy)
    await store.add(LAB, a_version(), [blob])
    await store.add(OTHER, a_version(), [blob])

    assert written == ["Addition", "Piece", "Piece", "Addition"]


async def test_the_pieces_of_a_document_are_sent_though_a_process_has_begun_with_them(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    blob = a_blob(bytes(2 * PIECE_BYTES))
    written = []
    file = store._open
    write = file.write
    await write(Piece(LAB, blob, 0, now=1))

    def spy(item: Any, **options: Any) -> Any:
        written.append(type(item).__name__)
        return write(item, **options)

    monkeypatch.setattr(file, "write", spy)
    await store.add(LAB, a_version(), [blob])

    assert written == ["Piece", "Piece", "Addition"]


async def test_what_is_large_is_read_in_the_threads_of_its_tenant(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = a_version(body=b"x" * 100_000, parts=b"p")
    await store.add(LAB, version)
    read: list[str] = []
    file = store._open
    read_for = file.read_for

    async def spy(tenant: str, work: Any, **options: Any) -> Any:
        read.append(tenant)
        return await read_for(tenant, work, **options)

    monkeypatch.setattr(file, "read_for", spy)

    assert await store.latest(LAB, version.id) == version
    assert await store.version(LAB, version.id, 1) == version
    assert await store.latest_public(LAB, version.id) == version.without_internal_fields()
    assert read == [LAB] * 3


@pytest.mark.parametrize(("size", "in_a_thread"), [(SMALL_BYTES, False), (SMALL_BYTES + 1, True)])
async def test_a_version_is_small_up_to_the_size_of_small_documents(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, size: int, *, in_a_thread: bool
) -> None:
    version = a_version()
    version = replace(version, body=b"x" * (size - version.size + len(version.body)))
    assert version.size == size
    await store.add(LAB, version)
    read: list[str] = []

    async def spy(tenant: str, _work: Any) -> list[Any]:
        read.append(tenant)
        return []

    monkeypatch.setattr(store._open, "read_for", spy)
    await store.latest(LAB, version.id)
    await store.latest_public(LAB, version.id)
    await store.version(LAB, version.id, 1)

    assert read == ([LAB] * 3 if in_a_thread else [])


async def test_what_is_small_is_read_at_once(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = a_version(parts=b"p")
    await store.add(LAB, version)

    async def spy(*_arguments: Any, **_options: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(store._open, "read_for", spy)

    assert await store.latest(LAB, version.id) == version
    assert await store.version(LAB, version.id, 1) == version
    assert await store.latest_public(LAB, version.id) == version.without_internal_fields()
    assert await store.latest(OTHER, version.id) is None


async def test_a_history_has_twenty_versions_unless_it_is_asked_otherwise(
    store: SqliteStore,
) -> None:
    version = a_version()
    for _ in range(22):
        await store.add(LAB, version)
        version = successor(version)

    found = await store.history(LAB, version.id)

    assert [one.version for one in found] == [*range(22, 2, -1)]
    assert len(await store.history(LAB, version.id, below=22, limit=99)) == 21


async def test_a_new_file_has_no_rules_and_keeps_the_last_ones(store: SqliteStore) -> None:
    assert await store.search_rules() == ""

    await store.put_search_rules("one")
    await store.put_search_rules("two")

    assert await store.search_rules() == "two"


async def test_a_new_file_has_the_version_of_this_release(store: SqliteStore) -> None:
    expected = SchemaVersion(sql.SCHEMA_VERSION, sql.USABLE_FROM)

    assert await store.schema_version() == expected


async def test_a_file_is_distinguished_from_all_others(store: SqliteStore, path: Path) -> None:
    device, number = identity_of(path) or (0, 0)

    assert await store.identity() == f"{device}/{number}"


async def test_an_erased_version_gets_no_search_values(store: SqliteStore) -> None:
    version = a_version()
    await store.add(LAB, version)
    await store._execute("UPDATE version SET type = '!' || type", ())

    await store.replace_search(LAB, version.id, 1, b'[["code","a",""]]')

    assert await rows_of(store, "SELECT search FROM version") == [("[]",)]
    assert await rows_of(store, "SELECT count(*) FROM search_value") == [(0,)]


async def test_search_values_of_another_tenant_or_version_are_not_replaced(
    store: SqliteStore,
) -> None:
    version = a_version()
    await store.add(LAB, version)

    await store.replace_search(OTHER, version.id, 1, b'[["code","a",""]]')
    await store.replace_search(LAB, version.id, 2, b'[["code","a",""]]')
    await store.replace_search(LAB, new_id(), 1, b'[["code","a",""]]')

    assert await rows_of(store, "SELECT search FROM version") == [("[]",)]


async def test_a_page_is_of_one_moment(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, page = [], Page((), 0, more=False)

    def find(connection: sqlite3.Connection, *_arguments: Any) -> Any:
        seen.append((connection.in_transaction, threading.current_thread().name))
        return page

    monkeypatch.setattr("fhirpub.storage.sqlite.store.find_page", find)

    assert await store.search(LAB, query()) is page
    assert seen[0][0] is True
    assert seen[0][1].startswith("sqlite-tenant")
