"""Overwrites the unused bytes of a SQLite file's pages, in a process of its own (ADR 48).

SQLite overwrites a row that it deletes. When it puts the rows of a page closer together, it does
not overwrite their former places, so that a deleted row may have left a copy of itself there.

It is a process since a descriptor that is closed takes all locks of its process on that file with
it. It starts at the end of each erasure, and so imports next to nothing.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import unpack_from
from typing import NoReturn

from fhirpub.storage.sqlite.checkpoints import (
    CheckpointLock,
    committing_nothing,
    cut_off,
    journal_bytes,
)

_INNER_INDEX, _INDEX_LEAF, _TABLE_LEAF = 0x02, 0x0A, 0x0D
_HEAD_BYTES = {_INNER_INDEX: 12, _INDEX_LEAF: 8, _TABLE_LEAF: 8}
"""How many bytes precede the list of rows in each kind of page that has rows, by its first byte.

Source: section 1.6 of the SQLite Database File Format.
"""
_MAX_PAGES = _INNER_INDEX << 24
"""Other pages begin with the number of a page: a larger one would look like a page with rows."""
_MAX_PAGE_BYTES = 65_536
_RESERVED_PLACE = 20
_CHUNK_BYTES = 1024 * 1024
_PAGES_AT_ONCE = 500
"""So many are overwritten in one turn as the writer, which takes two milliseconds."""
_PAUSE_SECONDS = 0.005

CLEARED, BUSY, NOT_SUPPORTED = 0, 75, 69
"""The exit status, by the numbers of sysexits.h."""


def unused_range(page: bytes) -> tuple[int, int] | None:
    """Return where the unused bytes of a page with rows begin and end, if some are not zero.

    They are between the list of its rows and the first row. Returns None for every page that is
    not exactly as the file format says.
    """
    head = _HEAD_BYTES.get(page[0])
    if head is None:
        return None
    first_free, count, end = unpack_from(">HHH", page, 1)
    start, end = head + 2 * count, end or _MAX_PAGE_BYTES
    if not start < end <= len(page):
        return None
    used = [first_free or end, *unpack_from(f">{count}H", page, head)]
    if min(used) < end or page.count(0, start, end) == end - start:
        return None
    return start, end


class UnusedBytes:
    """The unused bytes of a file, which are overwritten past SQLite but under its locks."""

    def __init__(self, path: Path, connection: sqlite3.Connection, descriptor: int) -> None:
        self._path, self._lock = path, CheckpointLock(path)
        self._connection, self._descriptor = connection, descriptor
        (self._page_bytes,) = connection.execute("PRAGMA page_size").fetchone()

    def is_supported(self) -> bool:
        """Return whether the first byte of a page shows its kind, and no page has a checksum."""
        (vacuums,) = self._connection.execute("PRAGMA auto_vacuum").fetchone()
        (pages,) = self._connection.execute("PRAGMA page_count").fetchone()
        (reserved,) = os.pread(self._descriptor, 1, _RESERVED_PLACE)
        return not vacuums and not reserved and pages < _MAX_PAGES

    def clear(self, *, seconds: float) -> bool:
        """Overwrite them all; return False if others write or read for ``seconds`` on end."""
        numbers = [*self._find_pages()]
        for start in range(0, len(numbers), _PAGES_AT_ONCE):
            until = time.monotonic() + seconds
            while not self._clear_pages(numbers[start : start + _PAGES_AT_ONCE]):
                if time.monotonic() > until:
                    return False
                time.sleep(_PAUSE_SECONDS)
        os.fsync(self._descriptor)
        return True

    def _find_pages(self) -> Iterator[int]:
        """Yield the numbers, from 0, of pages that have some."""
        page_bytes, pages_at_once = self._page_bytes, _CHUNK_BYTES // self._page_bytes
        for first in range(0, os.fstat(self._descriptor).st_size // page_bytes, pages_at_once):
            chunk = os.pread(self._descriptor, _CHUNK_BYTES, first * page_bytes)
            for place, kind in enumerate(chunk[::page_bytes]):
                start = place * page_bytes
                if kind in _HEAD_BYTES and unused_range(chunk[start : start + page_bytes]):
                    yield first + place

    def _clear_pages(self, numbers: Sequence[int]) -> bool:
        """Overwrite those of some pages; return False if other processes write or read."""
        return self._lock.run(lambda: cut_off(self._connection) and self._clear_alone(numbers))

    def _clear_alone(self, numbers: Sequence[int]) -> bool:
        """Overwrite them, unless the journal is not empty any more.

        As long as it is, and the lock of the writer is held, no process writes into the file.
        Others have these pages in memory, and would write them as they were: after the commit they
        read them again.
        """
        with committing_nothing(self._connection):
            is_empty = not journal_bytes(self._path)
            for number in numbers if is_empty else ():
                self._clear_page(number)
        return is_empty

    def _clear_page(self, number: int) -> None:
        place = number * self._page_bytes
        if unused := unused_range(os.pread(self._descriptor, self._page_bytes, place)):
            start, end = unused
            os.pwrite(self._descriptor, bytes(end - start), place + start)


def clear_file(path: Path, connection: sqlite3.Connection, *, seconds: float) -> int:
    """Overwrite the unused bytes of a file, and leave it open; return the exit status."""
    file = UnusedBytes(path, connection, os.open(path, os.O_RDWR))
    if not file.is_supported():
        return NOT_SUPPORTED
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    return CLEARED if file.clear(seconds=seconds) else BUSY


def main(path: Path, seconds: float) -> NoReturn:
    """Overwrite the unused bytes of a file, and exit.

    The file is not closed before. SQLite would delete the journal if it took this connection for
    the last one, as it does if another process has closed a descriptor of the file.
    """
    status = 1
    try:
        url = f"{path.absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(url, uri=True, timeout=seconds, isolation_level=None)
        status = clear_file(path, connection, seconds=seconds)
    finally:
        os._exit(status)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
