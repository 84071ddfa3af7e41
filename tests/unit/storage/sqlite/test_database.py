"""An open file: how its connections are set up, what its reads and writes return, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fhirpub.errors import SearchTooCostly, StoreUnavailable
from fhirpub.storage.contract import Blob
from fhirpub.storage.sqlite import database as module
from fhirpub.storage.sqlite.blobs import Piece
from fhirpub.storage.sqlite.database import Database, DatabaseMixin
from fhirpub.storage.sqlite.rows import PIECE_BYTES, Addition, OtherWrite
from fhirpub.testing.samples import LAB, OTHER, a_version
from tests.unit.storage.sqlite.probe import MOMENT, PUT, many, put


class Opened(DatabaseMixin):
    """What works on a file."""

    def __init__(self, file: Database | None) -> None:
        self._file = file


def pragma(name: str) -> Any:
    """Return a read of a setting of the connection."""
    return lambda connection: connection.execute(f"PRAGMA {name}").fetchone()[0]


async def moment_of(database: Database) -> int | None:
    """Return what was written."""
    rows = await database.read(lambda connection: connection.execute(MOMENT).fetchall())
    return rows[0][0] if rows else None


def an_addition(**changes: Any) -> Addition:
    return Addition(LAB, a_version(**changes), (), now=1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("synchronous", 2),
        ("fullfsync", 1),
        ("temp_store", 2),
        ("wal_autocheckpoint", 0),
        ("cache_size", -8_192),
        ("secure_delete", 1),
        ("query_only", 0),
        ("busy_timeout", 10_000),
        ("journal_mode", "wal"),
    ],
)
async def test_the_writer_is_set_up_to_lose_and_to_leave_nothing(
    database: Database, name: str, value: object
) -> None:
    assert await database.write(pragma(name)) == value


async def test_what_the_writer_deletes_is_overwritten_whatever_the_library_does_by_itself(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements: list[str] = []
    connect = module._connect

    def traced(*given: Any, **named: Any) -> sqlite3.Connection:
        connection = connect(*given, **named)
        connection.set_trace_callback(statements.append)
        return connection

    monkeypatch.setattr(module, "_connect", traced)

    await Database(path, 10).close()

    assert "PRAGMA secure_delete = ON" in statements


@pytest.mark.parametrize(("name", "value"), [("query_only", 1), ("busy_timeout", 10_000)])
async def test_readers_write_nothing_and_wait_for_the_deadline(
    database: Database, name: str, value: object
) -> None:
    assert await database.read(pragma(name)) == value
    assert await database.read_for(LAB, pragma(name)) == value


@pytest.mark.parametrize(("name", "value"), [("query_only", 1), ("busy_timeout", 0)])
async def test_reads_on_the_thread_of_the_loop_write_nothing_and_never_wait(
    database: Database, name: str, value: int
) -> None:
    assert database.at_once(f"PRAGMA {name}", ()) == [(value,)]


async def test_a_read_at_once_returns_all_rows(database: Database) -> None:
    assert database.at_once("VALUES (?), (?)", (1, 2)) == [(1,), (2,)]
    assert database.at_once("SELECT 1 WHERE :no", {"no": 0}) == []


class _Failing:
    """A connection whose statements fail."""

    def __init__(self, code: int) -> None:
        self._code = code

    def execute(self, *_arguments: object) -> None:
        error = sqlite3.OperationalError("patient Ana")
        error.sqlite_errorcode = self._code
        error.sqlite_errorname = "SQLITE_OF_THE_TEST"
        raise error


@pytest.mark.parametrize(
    "code", [sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_SNAPSHOT, sqlite3.SQLITE_BUSY_RECOVERY]
)
async def test_a_read_at_once_of_a_busy_file_returns_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(database, "_at_once", _Failing(code))

    assert database.at_once("SELECT 1", ()) is None


async def test_a_read_that_finds_the_file_busy_is_made_in_a_thread(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_at_once", _Failing(sqlite3.SQLITE_BUSY))

    assert await Opened(database)._fetch_inline("SELECT ?", (7,)) == [(7,)]


async def test_a_read_at_once_that_fails_otherwise_is_unavailable_without_its_words(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_at_once", _Failing(sqlite3.SQLITE_IOERR))

    with pytest.raises(StoreUnavailable) as failed:
        database.at_once("SELECT 1", ())

    assert failed.value.reason == "SQLITE_OF_THE_TEST"
    assert failed.value.__cause__ is None


async def test_rows_that_are_there_at_once_are_fetched_without_a_thread(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read(_work: object) -> None:
        raise AssertionError

    monkeypatch.setattr(database, "read", read)

    assert await Opened(database)._fetch_inline("SELECT 7 WHERE ?", (0,)) == []


async def test_rows_of_a_tenant_are_fetched_in_its_threads(database: Database) -> None:
    names = []

    def work(connection: sqlite3.Connection) -> int:
        names.append(threading.current_thread().name)
        return int(connection.execute("SELECT 5").fetchone()[0])

    assert await database.read_for(LAB, work) == 5
    assert await database.read(work) == 5
    assert await Opened(database)._fetch_for(LAB, "SELECT ?", (7,)) == [(7,)]
    assert names[0].startswith("sqlite-tenant")
    assert names[1].startswith("sqlite-reader")


async def test_a_search_of_a_tenant_ends_after_its_time(database: Database) -> None:
    with pytest.raises(SearchTooCostly):
        await database.read_for(LAB, many, max_seconds=0.001)


async def test_a_statement_returns_how_many_rows_it_changed(database: Database) -> None:
    opened = Opened(database)

    assert await opened._execute(PUT, (1,)) == 1
    assert await opened._execute("DELETE FROM probe WHERE moment = ?", (2,)) == 0


def test_what_is_not_open_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable) as failed:
        _ = Opened(None)._open

    assert failed.value.reason == "not started, or stopped"


async def test_a_write_returns_what_its_work_returns_once_it_is_committed(
    database: Database, path: Path
) -> None:
    assert await database.write(put(5)) == 1

    with contextlib.closing(sqlite3.connect(path)) as other:
        assert other.execute(MOMENT).fetchall() == [(5,)]


async def test_writes_are_made_by_one_thread_of_the_writer(database: Database) -> None:
    name = await database.write(lambda _connection: threading.current_thread().name)

    assert name == "sqlite-writer_0"


async def test_a_write_that_fails_leaves_nothing_and_harms_no_other(database: Database) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        connection.execute(PUT, (13,))
        raise ValueError("of this one")

    results: Any = await asyncio.gather(
        database.write(fail),
        database.write(lambda _connection: 7),
        database.write(an_addition()),
        return_exceptions=True,
    )

    assert str(results[0]) == "of this one"
    assert [*results[1:]] == [7, True]
    assert await moment_of(database) is None


async def test_one_of_several_writes_that_sqlite_refuses_is_unavailable_alone(
    database: Database,
) -> None:
    def refused(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO probe (number, moment) VALUES (1, NULL)")

    results: Any = await asyncio.gather(
        database.write(refused), database.write(put(7)), return_exceptions=True
    )

    assert isinstance(results[0], StoreUnavailable)
    assert results[0].reason == "SQLITE_CONSTRAINT_NOTNULL"
    assert results[1] == 1
    assert await moment_of(database) == 7


async def test_a_write_alone_raises_what_its_work_raises(database: Database) -> None:
    def fail(_connection: sqlite3.Connection) -> None:
        raise ValueError("of this one")

    with pytest.raises(ValueError, match="of this one"):
        await database.write(fail)


async def test_versions_beside_other_writes_are_added_once_each(database: Database) -> None:
    taken, free = a_version(), a_version()
    again = Addition(LAB, replace(taken, body=b"other"), (), now=1)
    first = Addition(LAB, taken, (), now=1)
    assert await database.write(first) is True

    third = Addition(LAB, free, (), now=1)
    found: list[Any] = await asyncio.gather(*map(database.write, (again, put(3), third)))

    assert found == [False, 1, True]
    assert await moment_of(database) == 3


async def test_many_rows_are_added_in_several_statements(database: Database) -> None:
    additions = [an_addition() for _ in range(521)]

    assert all(await asyncio.gather(*map(database.write, additions)))
    assert database.at_once("SELECT count(*) FROM version", ()) == [(521,)]


async def test_versions_of_tenants_take_turns_by_their_tenants(database: Database) -> None:
    ours, theirs = an_addition(), Addition(OTHER, a_version(), (), now=1)
    owner_of = database._group._owner_of

    assert [owner_of(each) for each in (ours, theirs)] == [LAB, OTHER]


async def test_the_pages_of_all_that_is_committed_are_counted(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []
    monkeypatch.setattr(database._checkpoints, "count", lambda pages, _: counted.append(pages))

    await database.write(put(1), size=400_000)

    assert counted == [(20 + 1_000) // 10]


async def test_a_piece_counts_as_its_pages_and_not_as_what_it_costs(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []
    monkeypatch.setattr(database._checkpoints, "count", lambda pages, _: counted.append(pages))
    blob = Blob("ab" * 32, "image/png", bytes(PIECE_BYTES + 1))

    await database.write(Piece(LAB, blob, 0, now=1))

    assert counted == [Piece.pages]


async def test_the_pages_of_writes_that_are_made_one_by_one_are_counted(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []
    monkeypatch.setattr(database._checkpoints, "count", lambda pages, _: counted.append(pages))

    def fail(_connection: sqlite3.Connection) -> None:
        raise ValueError("of this one")

    batch = [OtherWrite(work, cost=1_000) for work in (fail, put(1), put(2))]
    results = database._commit_now(batch)

    assert results[1:] == [1, 1]
    assert sum(counted) >= 200
