"""Moves the journal into the file in a thread of its own, while the writer goes on.

Without it the writer would move all of a long journal within one commit: for twenty to fifty
milliseconds, every write would wait (ADR 7).

A checkpoint excludes those of other processes, and a commit comes before it. Otherwise all of the
journal may be in the file when it begins, so that a writer can begin the journal again at the same
moment. SQLite before 3.51.3 then takes new pages for some that are in the file (ADR 49).
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

_PAGES = 3_000
"""12 MB. A page that changes often is moved once for all its changes."""
_PAGES_FOR_WRITER = 8_000
"""From so many on the writer waits for the checkpoint, which can then move all there is, so that
the journal begins again. Otherwise that is rare: the writer is always a few pages ahead."""
_PAGE_BYTES = 4096


class CheckpointLock:
    """Excludes checkpoints of other processes, by a lock on the folder of the file."""

    def __init__(self, path: Path) -> None:
        self._folder = os.open(path.absolute().parent, os.O_RDONLY | os.O_DIRECTORY)

    def take(self) -> bool:
        """Take the lock without waiting for it; return whether this was possible."""
        try:
            fcntl.flock(self._folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Release the lock, in any thread."""
        fcntl.flock(self._folder, fcntl.LOCK_UN)

    def run(self, work: Callable[[], bool]) -> bool:
        """Return what ``work`` returns with the lock; False if others have it, or the writer's."""
        if not self.take():
            return False
        try:
            return work()
        except sqlite3.OperationalError as problem:
            if is_busy(problem):
                return False
            raise
        finally:
            self.release()

    def close(self) -> None:
        """Release the lock for good."""
        os.close(self._folder)


class Checkpoints:
    """Counts the pages that are written and starts a checkpoint when they are many."""

    def __init__(self, path: Path, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connection = connect()
        self._lock = CheckpointLock(path)
        self._thread = ThreadPoolExecutor(1, "sqlite-checkpoint")
        self._pages = journal_bytes(path) // _PAGE_BYTES  # which a killed process may have left
        self._is_long = False
        self._running: Future[None] | None = None

    def count(self, pages: int, writer: sqlite3.Connection) -> None:
        """Count pages that were committed; called by the writer, with its connection."""
        self._pages += pages
        is_free = self._running is None or self._running.done()
        is_long = self._is_long
        if not is_free or (self._pages < _PAGES and not is_long) or not self._lock.take():
            return
        try:
            commit_nothing(writer)
            self._running = self._thread.submit(self._move)
        except BaseException as problem:
            self._lock.release()
            if not isinstance(problem, sqlite3.Error):  # the next commit will try again
                raise
            return
        self._pages = 0
        if is_long:  # few pages are left of it
            self._running.exception()  # which waits for the end
            self._is_long = False

    def _move(self) -> None:
        """Move the journal, and release the lock."""
        try:
            with suppress(sqlite3.Error):  # the next one will do it
                ((_busy, pages, _moved),) = self._connection.execute(
                    "PRAGMA wal_checkpoint(PASSIVE)"
                )
                self._is_long = pages >= _PAGES_FOR_WRITER
        finally:
            self._lock.release()

    def empty(self) -> Future[bool]:
        """Move the whole journal, and cut it off; the result is whether this was possible.

        It waits for readers of this and other processes, which need the journal, and gives up.
        """
        return self._thread.submit(self._lock.run, self._empty)

    def _empty(self) -> bool:
        commit_nothing(self._connection)
        self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        return cut_off(self._connection)

    def close(self) -> None:
        """Wait for a checkpoint in progress, and close."""
        self._thread.shutdown()
        self._connection.close()
        self._lock.close()


def journal_bytes(path: Path) -> int:
    """Return the size of the journal of a file."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size
    except FileNotFoundError:
        return 0


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether another connection has what a statement needs."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


@contextmanager
def committing_nothing(connection: sqlite3.Connection) -> Generator[None]:
    """Have the lock of the writer, then commit a page as it is, which is to be moved again."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def commit_nothing(connection: sqlite3.Connection) -> None:
    """Commit a page as it is, before a checkpoint."""
    with committing_nothing(connection):
        pass


def cut_off(connection: sqlite3.Connection) -> bool:
    """Empty the journal with the lock of checkpoints; return whether this was possible."""
    commit_nothing(connection)
    # One that waits for readers has the writer's lock all the while: so it never waits.
    with _without_waiting(connection):
        ((was_busy, *_pages),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return not was_busy


@contextmanager
def _without_waiting(connection: sqlite3.Connection) -> Generator[None]:
    ((milliseconds,),) = connection.execute("PRAGMA busy_timeout")
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA busy_timeout = {milliseconds}")
