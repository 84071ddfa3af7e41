"""An open file: its journal is emptied, and it is closed whatever becomes of it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import pytest

from fhirpub.errors import ConfigurationError, StoreUnavailable
from fhirpub.storage.sqlite import database as module
from fhirpub.storage.sqlite.database import Database
from fhirpub.storage.sqlite.files import make_file
from tests.unit.storage.sqlite.probe import MOMENT, put


def open_files(path: Path) -> list[str]:
    """Return which descriptors of this process lead to the file or to those beside it."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            target = str(descriptor.readlink())
            if target.startswith(str(path)):
                found.append(target)
    return found


async def test_a_journal_without_readers_is_emptied(database: Database, path: Path) -> None:
    await database.write(put(1))
    journal = path.with_name("fhirpub.db-wal")
    assert journal.stat().st_size > 0

    assert await database.empty_journal() is True
    assert journal.stat().st_size == 0


async def test_a_journal_that_is_read_beyond_the_deadline_is_not_emptied(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(path, 2)
    seconds, attempts = itertools.count(), []
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    empty = database._checkpoints.empty

    def counted() -> Future[bool]:
        attempts.append(1)
        return empty()

    monkeypatch.setattr(database._checkpoints, "empty", counted)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute(MOMENT).fetchall()
        await database.write(put(1))

        assert await database.empty_journal() is False
    await database.close()

    assert len(attempts) == 3


async def test_a_journal_is_emptied_once_its_last_reader_has_ended(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(path, 30)
    empty = database._checkpoints.empty
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute(MOMENT).fetchall()
    await database.write(put(1))
    attempts = []

    def counted() -> Future[bool]:
        attempts.append(1)
        if len(attempts) == 2:
            reader.close()
        return empty()

    monkeypatch.setattr(database._checkpoints, "empty", counted)

    assert await database.empty_journal() is True
    assert len(attempts) == 2
    await database.close()


async def test_a_file_that_is_closed_is_open_nowhere(path: Path) -> None:
    database = Database(path, 10)
    assert open_files(path)

    writing = asyncio.ensure_future(database.write(put(1)))
    await asyncio.sleep(0)
    await database.close()

    assert await writing == 1
    assert open_files(path) == []
    assert not any(thread.is_alive() for thread in database._writing._threads)


async def test_writes_that_wait_behind_one_in_progress_are_made_before_the_end(
    path: Path,
) -> None:
    database, may_end = Database(path, 30), threading.Event()
    begun = threading.Event()

    def slow(_connection: sqlite3.Connection) -> bool:
        begun.set()
        return may_end.wait(30)

    first = asyncio.ensure_future(database.write(slow))
    await asyncio.to_thread(begun.wait, 30)
    others = [asyncio.ensure_future(database.write(put(number))) for number in (1, 2)]
    closing = asyncio.ensure_future(database.close())
    for _ in range(5):
        await asyncio.sleep(0)

    may_end.set()
    await asyncio.wait_for(closing, 30)

    assert await asyncio.gather(first, *others) == [True, 1, 1]
    with contextlib.closing(sqlite3.connect(path)) as reader:
        assert reader.execute(MOMENT).fetchall() == [(2,)]


async def test_a_file_is_closed_after_the_reads_for_tenants(path: Path) -> None:
    database, ended = Database(path, 30), threading.Event()
    begun = threading.Event()

    def slow(connection: sqlite3.Connection) -> list[tuple[int]]:
        begun.set()
        assert ended.wait(30)
        return connection.execute("SELECT 7").fetchall()

    reading = asyncio.ensure_future(database.read_for("lab", slow))
    await asyncio.to_thread(begun.wait, 30)
    closing = asyncio.ensure_future(database.close())
    for _ in range(20):
        await asyncio.sleep(0.005)
    assert not closing.done()

    ended.set()
    await asyncio.wait_for(closing, 30)
    assert await reading == [(7,)]
    assert open_files(path) == []


async def test_a_file_that_cannot_be_used_is_open_nowhere(path: Path) -> None:
    make_file(path)
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE theirs (x)")

    with pytest.raises(ConfigurationError):
        Database(path, 10)

    assert open_files(path) == []


def test_a_file_whose_last_connection_fails_is_open_nowhere(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_path: object, _connect: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "Checkpoints", fail)

    with pytest.raises(KeyboardInterrupt):
        Database(path, 10)

    assert open_files(path) == []


@pytest.mark.parametrize(("deadline", "until"), [(5, 1_600), (700, 1_700)])
def test_a_start_waits_ten_minutes_for_another_that_brings_the_file_up_to_date(
    path: Path, monkeypatch: pytest.MonkeyPatch, deadline: int, until: int
) -> None:
    moments: list[float] = []

    def once(moment: float, work: Callable[[], None]) -> None:
        moments.append(moment)
        work()

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: 1_000))
    monkeypatch.setattr(module, "_retry", once)

    Database(path, deadline)._close()

    assert moments == [until] * 2


def test_a_file_that_is_no_database_is_refused_and_open_nowhere(path: Path) -> None:
    make_file(path)
    path.write_bytes(b"no database, and longer than the header of one" * 100)

    with pytest.raises(ConfigurationError, match="the file is not an SQLite database") as refused:
        Database(path, 10)

    assert refused.value.__cause__ is None
    assert open_files(path) == []


def test_a_file_that_is_gone_is_not_made_again_where_that_is_not_asked_for(path: Path) -> None:
    with pytest.raises(StoreUnavailable) as failed:
        Database(path, 10, make=False)

    assert failed.value.reason == ("the file was moved, deleted or replaced: restart the service")
    assert not path.exists()
