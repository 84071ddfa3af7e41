"""The journal is moved into the file in a thread, one checkpoint at a time."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fhirpub.storage.sqlite.checkpoints import Checkpoints
from tests.waiting import wait_until

_PAGES = 3_000
_WAIT_MS = 30_000
PASSIVE = "PRAGMA wal_checkpoint(PASSIVE)"


class Traced:
    """Connections of checkpoints, and what is executed on them; each may be held up."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.statements: list[str] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def connect(self) -> sqlite3.Connection:
        self.connection = sqlite3.connect(
            self._path,
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
        yield writer


@pytest.fixture
def traced(path: Path, writer: sqlite3.Connection) -> Traced:
    return Traced(path)


@pytest.fixture
def checkpoints(traced: Traced) -> Iterator[Checkpoints]:
    checkpoints = Checkpoints(traced.connect)
    yield checkpoints
    traced.may_go_on.set()
    checkpoints.close()


def moved(checkpoints: Checkpoints, traced: Traced) -> int:
    """Return how many checkpoints there were, once the last has ended."""
    checkpoints._thread.submit(lambda: None).result(20)
    return traced.statements.count(PASSIVE)


def journal_of(path: Path) -> int:
    return path.with_name("x.db-wal").stat().st_size


def test_few_pages_are_left_in_the_journal(checkpoints: Checkpoints, traced: Traced) -> None:
    checkpoints.count(_PAGES - 1)

    assert moved(checkpoints, traced) == 0


def test_many_pages_are_moved(checkpoints: Checkpoints, traced: Traced) -> None:
    checkpoints.count(_PAGES)

    assert moved(checkpoints, traced) == 1


def test_the_pages_of_several_commits_add_up(checkpoints: Checkpoints, traced: Traced) -> None:
    checkpoints.count(_PAGES - 1)
    checkpoints.count(1)

    assert moved(checkpoints, traced) == 1


def test_pages_are_moved_into_the_file(
    checkpoints: Checkpoints, traced: Traced, writer: sqlite3.Connection, path: Path
) -> None:
    writer.execute("INSERT INTO t VALUES (randomblob(100000))")
    before = path.stat().st_size

    checkpoints.count(_PAGES)

    assert moved(checkpoints, traced) == 1
    assert path.stat().st_size > before + 100_000


def test_the_count_begins_again_with_each_checkpoint(
    checkpoints: Checkpoints, traced: Traced
) -> None:
    checkpoints.count(_PAGES)
    assert moved(checkpoints, traced) == 1

    checkpoints.count(_PAGES - 1)
    assert moved(checkpoints, traced) == 1
    checkpoints.count(1)
    assert moved(checkpoints, traced) == 2


def test_pages_of_one_large_commit_count_for_one_checkpoint(
    checkpoints: Checkpoints, traced: Traced
) -> None:
    checkpoints.count(3 * _PAGES)
    assert moved(checkpoints, traced) == 1

    checkpoints.count(_PAGES - 1)

    assert moved(checkpoints, traced) == 1


def test_no_checkpoint_waits_behind_one_in_progress(
    checkpoints: Checkpoints, traced: Traced
) -> None:
    traced.may_go_on.clear()
    for _ in range(3):
        checkpoints.count(_PAGES)
    traced.may_go_on.set()

    assert moved(checkpoints, traced) == 1


def test_what_is_written_during_a_checkpoint_counts_for_the_next(
    checkpoints: Checkpoints, traced: Traced
) -> None:
    traced.may_go_on.clear()
    checkpoints.count(_PAGES)
    checkpoints.count(_PAGES - 1)
    traced.may_go_on.set()
    assert moved(checkpoints, traced) == 1

    checkpoints.count(1)

    assert moved(checkpoints, traced) == 2


def test_many_pages_that_are_written_during_a_checkpoint_are_moved_after_it(
    checkpoints: Checkpoints, traced: Traced
) -> None:
    traced.may_go_on.clear()
    checkpoints.count(_PAGES)
    checkpoints.count(_PAGES)
    traced.may_go_on.set()
    assert moved(checkpoints, traced) == 1

    checkpoints.count(1)

    assert moved(checkpoints, traced) == 2


def test_a_checkpoint_that_fails_is_followed_by_others(
    checkpoints: Checkpoints, traced: Traced
) -> None:
    traced.connection.close()

    checkpoints.count(_PAGES)

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
    checkpoints: Checkpoints, traced: Traced
) -> None:
    traced.may_go_on.clear()
    checkpoints.count(_PAGES)
    assert wait_until(lambda: traced.statements == [PASSIVE])
    emptied = checkpoints.empty()

    assert not emptied.done()
    assert traced.statements == [PASSIVE]
    traced.may_go_on.set()
    assert emptied.result(20) is True


def test_the_end_waits_for_a_checkpoint_in_progress(traced: Traced) -> None:
    checkpoints = Checkpoints(traced.connect)
    traced.may_go_on.clear()
    checkpoints.count(_PAGES)
    assert wait_until(lambda: traced.statements == [PASSIVE])
    closing = threading.Thread(target=checkpoints.close)
    closing.start()

    closing.join(0.01)
    assert closing.is_alive()
    traced.may_go_on.set()
    closing.join(20)
    assert not closing.is_alive()


def test_the_end_closes_the_connection(traced: Traced) -> None:
    Checkpoints(traced.connect).close()

    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        traced.connection.execute("SELECT 1")
