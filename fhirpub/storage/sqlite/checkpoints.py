"""Moves the journal into the file in a thread of its own, while the writer goes on.

Without it the writer would move all of a long journal within one commit: for twenty to fifty
milliseconds, every write would wait (ADR 7).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

_PAGES = 3_000
"""12 MB. A page that changes often is moved once for all its changes."""
PAGES_FOR_WRITER = 8_000
"""From so many on the writer moves what is left and begins the journal again. The thread rarely
gets that far: the writer is always a few pages ahead."""


class Checkpoints:
    """Counts the pages that are written and starts a checkpoint when they are many."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connection = connect()
        self._thread = ThreadPoolExecutor(1, "sqlite-checkpoint")
        self._pages = 0
        self._running: Future[None] | None = None

    def count(self, pages: int) -> None:
        """Count pages that were committed; called by the writer."""
        self._pages += pages
        is_free = self._running is None or self._running.done()
        if self._pages >= _PAGES and is_free:
            self._pages = 0
            self._running = self._thread.submit(self._move)

    def _move(self) -> None:
        with suppress(sqlite3.Error):  # the next one, or the writer, will do it
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def empty(self) -> Future[bool]:
        """Move the whole journal, and cut it off; the result is whether this was possible.

        It waits for readers of this and other processes, which need the journal, and gives up.
        """
        return self._thread.submit(self._empty)

    def _empty(self) -> bool:
        # One that waits for readers has the writer's lock all the while: so it never waits.
        ((waits,),) = self._connection.execute("PRAGMA busy_timeout")
        self._connection.execute("PRAGMA busy_timeout = 0")
        try:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            ((is_busy, *_pages),) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {waits}")
        return not is_busy

    def close(self) -> None:
        """Wait for a checkpoint in progress, and close."""
        self._thread.shutdown()
        self._connection.close()
