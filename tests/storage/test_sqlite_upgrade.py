"""A file of an older release is upgraded to the current tables, and keeps all its contents."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import Version
from fhirpub.storage.sqlite import schema as sql
from fhirpub.storage.sqlite.rows import Addition
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.webhook_contract import OutboxEntry
from fhirpub.testing.samples import LAB, OTHER, a_version, successor
from fhirpub.testing.store_contract import Reopen, a_blob, reopening, whole_blobs
from fhirpub.testing.webhook_contract import EVENTS
from tests.storage.older_sqlite_files import INDEXES_OF_6, TRIGGER_OF_7

TABLES_OF_1 = (
    """
    CREATE TABLE version (
        id TEXT NOT NULL,
        version INTEGER NOT NULL,
        tenant TEXT NOT NULL,
        type TEXT NOT NULL,
        system TEXT NOT NULL,
        value TEXT NOT NULL,
        status TEXT NOT NULL,
        created INTEGER NOT NULL,
        updated INTEGER NOT NULL,
        documents TEXT NOT NULL,
        size INTEGER NOT NULL,
        events BLOB NOT NULL,
        body BLOB NOT NULL,
        response BLOB NOT NULL,
        parts BLOB NOT NULL
    ) STRICT
    """,
    "CREATE UNIQUE INDEX version_key ON version (id, version)",
    *INDEXES_OF_6,
    "CREATE INDEX version_by_time ON version (tenant, type, updated DESC, id, version)",
    """
    CREATE TABLE document (
        tenant TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        id TEXT NOT NULL,
        version INTEGER NOT NULL,
        PRIMARY KEY (tenant, sha256, id, version)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE blob (
        number INTEGER PRIMARY KEY,
        tenant TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        content_type TEXT NOT NULL,
        size INTEGER NOT NULL,
        added INTEGER NOT NULL,
        named INTEGER NOT NULL,
        UNIQUE (tenant, sha256)
    ) STRICT
    """,
    "CREATE INDEX blob_unnamed ON blob (tenant, added) WHERE named = 0",
    TRIGGER_OF_7,
    "CREATE TABLE blob_bytes (number INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT",
    """
    CREATE TABLE tenant (
        id TEXT NOT NULL PRIMARY KEY,
        name TEXT NOT NULL,
        salt BLOB NOT NULL,
        created INTEGER NOT NULL,
        disabled INTEGER NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE client (
        id TEXT NOT NULL PRIMARY KEY,
        tenant TEXT NOT NULL,
        name TEXT NOT NULL,
        environment TEXT NOT NULL,
        created INTEGER NOT NULL,
        secrets TEXT NOT NULL,
        scopes TEXT NOT NULL,
        disabled INTEGER NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE signing_key (
        kid TEXT NOT NULL PRIMARY KEY,
        algorithm TEXT NOT NULL,
        environment TEXT NOT NULL,
        created INTEGER NOT NULL,
        private_pem BLOB NOT NULL,
        retired INTEGER
    ) STRICT
    """,
    "CREATE TABLE probe (number INTEGER PRIMARY KEY, moment INTEGER NOT NULL) STRICT",
)


BLOB = a_blob()
FIRST = a_version(events=EVENTS, body=b"{}", documents=(BLOB.sha256,), response=b"r", parts=b"p")
AGAIN = successor(FIRST, body=b"[]")
SILENT = a_version()
THEIRS = a_version(events=EVENTS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file as release 0.1.0 left it."""
    path = tmp_path / "fhirpub.db"
    with contextlib.closing(sqlite3.connect(path)) as old:
        old.execute("PRAGMA journal_mode = WAL")
        for statement in TABLES_OF_1:
            old.execute(statement)
        for tenant, version in ((LAB, FIRST), (LAB, AGAIN), (LAB, SILENT), (OTHER, THEIRS)):
            add(old, tenant, version)
        old.execute("INSERT INTO tenant VALUES (?, 'Lab', x'00', 5, 0)", (LAB,))
        row = (LAB, BLOB.sha256, BLOB.content_type, len(BLOB.data))
        old.execute("INSERT INTO blob VALUES (1, ?, ?, ?, ?, 5, 1)", row)
        old.execute("INSERT INTO blob_bytes VALUES (1, ?)", (BLOB.data,))
        old.execute(f"PRAGMA application_id = {sql.APPLICATION_ID}")
        old.execute("PRAGMA user_version = 1")
        old.commit()
    return path


def add(connection: sqlite3.Connection, tenant: str, version: Version) -> None:
    """Add a version as release 0.1.0 does."""
    *row, _found_by, _members = Addition(tenant, version, (), now=0).rows[-1]
    known = dict(zip(sql.VERSION_COLUMNS.split(", "), row, strict=True))
    del known["search"], known["digest"], known["attached"], known["audit"]
    places = ", ".join("?" * len(known))
    statement = f"INSERT INTO version ({', '.join(known)}) VALUES ({places})"
    connection.execute(statement, tuple(known.values()))


def schema_of(path: Path) -> set[tuple[str, ...]]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
        others = {
            (*row[:3], " ".join((row[3] or "").split())) for row in rows if row[0] != "table"
        }
        # An added column comes last, wherever a new file has it.
        columns = "SELECT name, type FROM pragma_table_info(?)"
        tables = {name for kind, name, *_ in rows if kind == "table"}
        return others | {
            (name, *item) for name in tables for item in connection.execute(columns, (name,))
        }


async def new_file(folder: Path) -> Path:
    """Return an empty store of this release."""
    path = folder / "new.db"
    new = SqliteStore(path, deadline_seconds=10)
    await new.start()
    await new.stop()
    return path


async def schema_of_upgraded_file(folder: Path) -> set[tuple[str, ...]]:
    """Return that of a new file, but for two indexes that an older file keeps as they are."""
    path = await new_file(folder)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for statement in INDEXES_OF_6:
            _create, _index, name, *_rest = statement.split()
            connection.execute(f"DROP INDEX {name}")
            connection.execute(statement)
        connection.commit()
    return schema_of(path)


@pytest.fixture
async def reopen(path: Path) -> AsyncGenerator[Reopen]:
    async with reopening(lambda: SqliteStore(path, deadline_seconds=10)) as reopen:
        yield reopen


async def test_an_older_file_gets_what_a_new_one_has(
    path: Path, tmp_path: Path, reopen: Reopen
) -> None:
    await reopen()

    assert schema_of(path) == await schema_of_upgraded_file(tmp_path)


async def test_an_older_file_keeps_everything(reopen: Reopen) -> None:
    store = await reopen()

    assert await store.history(LAB, FIRST.id) == [AGAIN, FIRST]
    assert await store.latest(LAB, SILENT.id) == SILENT
    assert await whole_blobs(store, LAB, [BLOB.sha256]) == {BLOB.sha256: BLOB}
    assert [tenant.name for tenant in await store.tenants()] == ["Lab"]


async def test_every_version_with_events_in_an_older_file_is_still_pending(reopen: Reopen) -> None:
    store = await reopen()

    found = await store.pending_outbox(limit=10)

    assert {(tenant, entry.id, entry.version) for tenant, entry in found} == {
        (LAB, FIRST.id, 1),
        (LAB, AGAIN.id, 2),
        (OTHER, THEIRS.id, 1),
    }


async def test_a_file_is_brought_up_to_date_once(reopen: Reopen) -> None:
    store = await reopen()
    await store.mark_published([(FIRST.id, 1), (AGAIN.id, 2)])

    again = await reopen()

    assert [version for _tenant, version in await again.pending_outbox(limit=10)] == [
        OutboxEntry.of(THEIRS)
    ]


async def test_stores_that_start_at_once_on_an_older_file_all_start(reopen: Reopen) -> None:
    stores = await asyncio.gather(*(reopen() for _ in range(8)))

    assert {len(await store.pending_outbox(limit=10)) for store in stores} == {3}


async def test_a_start_waits_for_another_that_takes_longer_than_its_deadline(
    path: Path, reopen: Reopen
) -> None:
    hasty = SqliteStore(path, deadline_seconds=0.1)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        starting = asyncio.create_task(hasty.start())
        await asyncio.sleep(0.4)
        other.execute("ROLLBACK")
        await starting
    await hasty.stop()

    assert len(await (await reopen()).pending_outbox(limit=10)) == 3


async def test_events_that_an_older_release_still_adds_afterwards_are_pending(
    path: Path, reopen: Reopen
) -> None:
    version = a_version(events=EVENTS)
    with contextlib.closing(sqlite3.connect(path)) as old:
        store = await reopen()
        add(old, LAB, version)
        old.commit()

        assert (LAB, OutboxEntry.of(version)) in await store.pending_outbox(limit=10)


async def test_a_file_that_cannot_be_brought_up_to_date_stays_as_it_is(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE relay_mark (x)")  # it conflicts with the last steps
    before = schema_of(path)

    with pytest.raises(StoreUnavailable):
        await SqliteStore(path, deadline_seconds=1).start()

    assert schema_of(path) == before
