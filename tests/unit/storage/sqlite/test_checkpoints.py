"""The journal is moved into the file in a thread, one checkpoint at a time."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fhirpub.storage.sqlite import checkpoints as module
from fhirpub.storage.sqlite.checkpoints import (
    CheckpointLock,
    Checkpoints,
    committing_nothing,
    journal_bytes,
)
from tests.waiting import wait_until

_PAGES = 3_000
_WAIT_MS = 30_000
PASSIVE = "PRAGMA wal_checkpoint(PASSIVE)"
TRUNCATE = "PRAGMA wal_checkpoint(TRUNCATE)"


class Traced:
    """Connections of checkpoints, and what is executed on them; each may be held up."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.statements: list[str] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def connect(self) -> sqlite3.Connection:
        self.connection = sqlite3.connect(
            self.path,
            timeout=_WAIT_MS / 1000,
            isolation_level=None,
            check_same_thread=False,
        )
        self.connection.set_trace_callback(self._trace)
        return self.connection

    def _trace(self, statement: str) -> None:
        self.statements.append(statement)
        assert self.may_go_on.wait(20)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.db"


@pytest.fixture
def writer(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that has written into the journal."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute("CREATE TABLE t (x)")
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        yield writer


@pytest.fixture
def traced(path: Path, writer: sqlite3.Connection) -> Traced:
    return Traced(path)


@pytest.fixture
def checkpoints(traced: Traced) -> Iterator[Checkpoints]:
    checkpoints = Checkpoints(traced.path, traced.connect)
    yield checkpoints
    traced.may_go_on.set()
    checkpoints.close()


def moved(checkpoints: Checkpoints, traced: Traced) -> int:
    """Return how many checkpoints there were, once the last has ended."""
    checkpoints._thread.submit(lambda: None).result(20)
    return traced.statements.count(PASSIVE)


def journal_of(path: Path) -> int:
    return path.with_name("x.db-wal").stat().st_size


def test_few_pages_are_left_in_the_journal(
    checkpoints: Checkpoints, traced: Traced, writer: sqlite3.Connection
) -> None:
    checkpoints.count(_PAGES - 1, writer)

    assert moved(checkpoints, traced) == 0


def test_many_pages_are_moved(
    checkpoints: Checkpoints, traced: Traced, writer: sqlite3.Connection
) -> None:
    checkpoints.count(_PAGES, writer)

    assert moved(checkpoints, traced) == 1


def test_the_pages_of_several_commits_add_up(
    checkpoints: Checkpoints, traced: Traced, writer: sqlite3.Connection
) -> None:
    checkpoints.count(_PAGES - 1, writer)
    checkpoints.count(1, writer)

    assert moved(checkpoints, traced) == 1


def test_pages_are_moved_into_the_file(
    checkpoints: Checkpoints, traced: Traced, writer: sqlite3.Connection, path: Path
) -> None:
    writer.execute("INSERT INTO t VALUES (randomblob(100000))")
    before = path.stat().st_size

    checkpoints.count(_PAGES, writer)

    assert moved(checkpoints, traced) == 1
    assert path.stat().st_size > before + 90_000


def test_the_count_begins_again_with_each_checkpoint(
    checkpoints: Checkpoints, traced: Traced, writer: sqlite3.Connection
) -> None:
    checkpoints.count(_PAGES, writer)
    assert moved(checkpoints, traced) == 1

    checkpoints.count(_PAGES - 1, writer)
    assert moved(checkpoints, traced) == 1
    checkpoints.count(1, writer)
    assert moved(checkpoints, traced) == 2


def test_pages_of_one_large_commit_count_for_one_checkpoint(
    checkpoints: Checkpoints, traced: Traced, writer: sqlite3.Connection
) -> None:
    checkpoints.count(3 * _PAGES, writer)
    assert moved(checkpoints, traced) == 1

    checkpoints.count(_PAGES - 1, writer)

    assert moved(checkpoints, traced) == 1


def test_no_checkpoint_waits_behind_one_in_progress(
    checkpoints: Checkpoints, traced: Traced, writer: sqlite3.Connection
) -> None:
    traced.may_go_on.clear()
    for _ in range(3):
        checkpoints.count(_PAGES, writer)
    traced.may_go_on.set()

    assert moved(checkpoints, traced) == 1


def test_what_is_written_during_a_checkpoint_counts_for_the_next(
    checkpoints: Checkpoints, traced: Traced, writer: sqlite3.Connection
) -> None:
    traced.may_go_on.clear()
    checkpoints.count(_PAGES, writer)
    checkpoints.count(_PAGES - 1, writer)
    traced.may_go_on.set()
    assert moved(checkpoints, traced) == 1

    checkpoints.count(1, writer)

    assert moved(checkpoints, traced) == 2


def test_many_pages_that_are_written_during_a_checkpoint_are_moved_after_it(
    checkpoints: Checkpoints, traced: Traced, writer: sqlite3.Connection
) -> None:
    traced.may_go_on.clear()
    checkpoints.count(_PAGES, writer)
    checkpoints.count(_PAGES, writer)
    traced.may_go_on.set()
    assert moved(checkpoints, traced) == 1

    checkpoints.count(1, writer)

    assert moved(checkpoints, traced) == 2


def test_a_checkpoint_that_fails_is_followed_by_others(
    checkpoints: Checkpoints, traced: Traced, writer: sqlite3.Connection
) -> None:
    traced.connection.close()

    checkpoints.count(_PAGES, writer)

    assert checkpoints._running is not None
    assert checkpoints._running.exception(20) is None


def test_an_emptied_journal_has_no_bytes(
    checkpoints: Checkpoints, writer: sqlite3.Connection, path: Path
) -> None:
    writer.execute("INSERT INTO t VALUES (1)")
    assert journal_of(path) > 0

    assert checkpoints.empty().result(20) is True
    assert journal_of(path) == 0


def test_a_journal_that_is_being_read_is_not_emptied_and_not_waited_for(
    checkpoints: Checkpoints, writer: sqlite3.Connection, path: Path
) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM t").fetchall()
        writer.execute("INSERT INTO t VALUES (1)")

        # Well before the time for which the connection waits otherwise.
        assert checkpoints.empty().result(_WAIT_MS / 2_000) is False

    assert journal_of(path) > 0


@pytest.mark.parametrize("fails", [False, True])
def test_other_checkpoints_wait_as_before(
    checkpoints: Checkpoints, traced: Traced, *, fails: bool
) -> None:
    if fails:
        traced.connection.set_authorizer(
            lambda _action, _name, value, *_: (
                sqlite3.SQLITE_DENY if value == "TRUNCATE" else sqlite3.SQLITE_OK
            )
        )
        assert isinstance(checkpoints.empty().exception(20), sqlite3.DatabaseError)
    else:
        checkpoints.empty().result(20)

    traced.connection.set_authorizer(None)
    assert traced.connection.execute("PRAGMA busy_timeout").fetchone() == (_WAIT_MS,)


def test_the_journal_is_emptied_after_the_checkpoint_in_progress(
    checkpoints: Checkpoints, traced: Traced, writer: sqlite3.Connection
) -> None:
    traced.may_go_on.clear()
    checkpoints.count(_PAGES, writer)
    assert wait_until(lambda: traced.statements == [PASSIVE])
    emptied = checkpoints.empty()

    assert not emptied.done()
    assert traced.statements == [PASSIVE]
    traced.may_go_on.set()
    assert emptied.result(20) is True


def test_the_end_waits_for_a_checkpoint_in_progress(
    traced: Traced, writer: sqlite3.Connection
) -> None:
    checkpoints = Checkpoints(traced.path, traced.connect)
    traced.may_go_on.clear()
    checkpoints.count(_PAGES, writer)
    assert wait_until(lambda: traced.statements == [PASSIVE])
    closing = threading.Thread(target=checkpoints.close)
    closing.start()

    closing.join(0.01)
    assert closing.is_alive()
    traced.may_go_on.set()
    closing.join(20)
    assert not closing.is_alive()


def test_the_end_closes_the_connection(traced: Traced) -> None:
    Checkpoints(traced.path, traced.connect).close()

    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        traced.connection.execute("SELECT 1")


# What comes before a checkpoint


def lock_is_free(path: Path) -> bool:
    """Return whether another process could begin a checkpoint."""
    with contextlib.closing(CheckpointLock(path)) as lock:
        return lock.take()


@pytest.fixture
def both(traced: Traced, writer: sqlite3.Connection) -> list[str]:
    """What the writer and the connection of checkpoints execute, without their pragmas."""
    statements: list[str] = []

    def note(statement: str) -> None:
        if statement in {"COMMIT", PASSIVE, TRUNCATE}:
            statements.append(statement)

    writer.set_trace_callback(note)
    traced.connection.set_trace_callback(note)
    return statements


def test_the_writer_commits_before_a_checkpoint(
    checkpoints: Checkpoints, both: list[str], writer: sqlite3.Connection
) -> None:
    checkpoints.count(_PAGES, writer)
    assert checkpoints._running is not None
    checkpoints._running.result(20)

    assert both == ["COMMIT", PASSIVE]


def test_a_commit_comes_before_each_checkpoint_that_empties_the_journal(
    checkpoints: Checkpoints, both: list[str]
) -> None:
    assert checkpoints.empty().result(20) is True

    assert both == ["COMMIT", PASSIVE, "COMMIT", TRUNCATE]


def test_a_commit_of_nothing_has_a_page_to_move(
    checkpoints: Checkpoints, writer: sqlite3.Connection, path: Path
) -> None:
    writer.execute("PRAGMA user_version = 917517")
    assert checkpoints.empty().result(20) is True

    with committing_nothing(writer):
        assert writer.in_transaction

    ((_busy, pages, _moved),) = writer.execute(PASSIVE)
    assert pages == 1
    assert writer.execute("PRAGMA user_version").fetchone() == (917517,)


def test_what_fails_before_the_commit_of_nothing_leaves_no_transaction(
    writer: sqlite3.Connection,
) -> None:
    with pytest.raises(ValueError, match="before"), committing_nothing(writer):
        raise ValueError("before")

    assert not writer.in_transaction


@pytest.mark.parametrize("mode", ["PASSIVE", "TRUNCATE"])
def test_checkpoints_of_others_are_excluded_and_then_not(
    checkpoints: Checkpoints, traced: Traced, writer: sqlite3.Connection, path: Path, mode: str
) -> None:
    free: list[bool] = []

    def look(statement: str) -> None:
        if mode in statement:
            free.append(lock_is_free(path))

    traced.connection.set_trace_callback(look)
    if mode == "PASSIVE":
        checkpoints.count(_PAGES, writer)
    checkpoints.empty().result(20)

    assert free
    assert not any(free)
    assert lock_is_free(path)


def test_while_another_process_moves_the_journal_this_one_does_not(
    checkpoints: Checkpoints, traced: Traced, writer: sqlite3.Connection, path: Path
) -> None:
    with contextlib.closing(CheckpointLock(path)) as other:
        assert other.take()
        checkpoints.count(_PAGES, writer)
        assert moved(checkpoints, traced) == 0
        assert checkpoints.empty().result(20) is False

        other.release()
        checkpoints.count(1, writer)
        assert moved(checkpoints, traced) == 1


def test_a_writer_that_cannot_commit_keeps_no_other_process_from_it(
    checkpoints: Checkpoints, traced: Traced, path: Path
) -> None:
    broken = sqlite3.connect(path)
    broken.close()

    checkpoints.count(_PAGES, broken)

    assert moved(checkpoints, traced) == 0
    assert lock_is_free(path)


def test_a_writer_that_is_busy_keeps_the_journal(
    checkpoints: Checkpoints, traced: Traced, writer: sqlite3.Connection, path: Path
) -> None:
    traced.connection.execute("PRAGMA busy_timeout = 0")
    writer.execute("BEGIN IMMEDIATE")

    assert checkpoints.empty().result(20) is False
    assert lock_is_free(path)


def test_pages_that_a_killed_process_has_left_count(
    traced: Traced, writer: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAGES", 30)
    writer.execute("INSERT INTO t VALUES (randomblob(150000))")
    with contextlib.closing(Checkpoints(traced.path, traced.connect)) as checkpoints:
        checkpoints.count(1, writer)
        assert moved(checkpoints, traced) == 1


def test_the_writer_waits_for_the_checkpoint_of_a_long_journal(
    checkpoints: Checkpoints,
    traced: Traced,
    writer: sqlite3.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_PAGES_FOR_WRITER", 20)
    writer.execute("INSERT INTO t VALUES (randomblob(150000))")
    checkpoints.count(_PAGES, writer)
    assert moved(checkpoints, traced) == 1

    checkpoints.count(1, writer)
    assert checkpoints._running is not None
    assert checkpoints._running.done()
    assert moved(checkpoints, traced) == 2

    writer.execute("INSERT INTO t VALUES (1)")  # which begins the journal again
    ((_busy, pages, _moved),) = writer.execute(PASSIVE)
    assert pages < 5


def test_the_writer_waits_once_for_a_journal_that_is_being_read(
    checkpoints: Checkpoints,
    traced: Traced,
    writer: sqlite3.Connection,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_PAGES_FOR_WRITER", 20)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM t").fetchall()
        writer.execute("INSERT INTO t VALUES (randomblob(150000))")
        checkpoints.count(_PAGES, writer)
        assert moved(checkpoints, traced) == 1

        for _ in range(3):
            checkpoints.count(1, writer)

    assert moved(checkpoints, traced) == 2


def test_the_end_closes_the_lock(traced: Traced, path: Path) -> None:
    checkpoints = Checkpoints(path, traced.connect)
    assert checkpoints._lock.take()

    checkpoints.close()

    assert lock_is_free(path)


def test_a_file_without_a_journal_has_no_bytes_in_it(tmp_path: Path) -> None:
    assert journal_bytes(tmp_path / "other.db") == 0
