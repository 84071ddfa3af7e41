"""An SQLite file that is open: its connections, its threads, and its errors in our words.

One thread writes, and commits together what has gathered while it wrote: of all tenants in turn,
and at most what takes it about ten milliseconds. Reads that take less time than a thread takes to
wake up are made on the event loop's thread, all others in threads. In WAL mode readers and
writers do not wait for one another. See ADR 7 and ADR 21. Reads of the tenants have threads of
their own, of which each tenant uses at most half, and no other read waits for them.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from fhirpub.errors import ConfigurationError, StoreUnavailable
from fhirpub.storage.batching import Bounds
from fhirpub.storage.fair_commit import FairCommit
from fhirpub.storage.sqlite import schema as sql
from fhirpub.storage.sqlite.blobs import Piece, add_bytes
from fhirpub.storage.sqlite.checkpoints import Checkpoints, is_busy
from fhirpub.storage.sqlite.files import (
    clear_unused_bytes,
    identity_of,
    make_file,
    make_tables,
)
from fhirpub.storage.sqlite.parameters import json_pairs
from fhirpub.storage.sqlite.readers import Readers, Work
from fhirpub.storage.sqlite.rows import Addition, OtherWrite, Row, cost_of, pages_of

R = TypeVar("R")
Parameters = Row | Mapping[str, object]
_Write = Addition | Piece | OtherWrite

_TABLES_SECONDS = 600.0
"""So long a start waits for another that brings a large file up to date."""
_ROW_BATCH_SIZE = 512
"""A submission may bring thousands of documents, a statement takes 32,766 parameters."""
_ROWS_STEP = 8
_WRITER_CACHE_KIB = 8 * 1024
"""A resource with many search values changes as many pages. In SQLite's usual 2 MB they have no
room: each is written and read again within its transaction, which costs a quarter more."""
_BATCH_BOUNDS = Bounds(size=10_000)
"""In microseconds of the writer; see `cost_of`."""
_GONE = "the file was moved, deleted or replaced: restart the service"


class Database:
    """An open file: its connections, and the threads that wait for it."""

    def __init__(
        self, path: Path, deadline_seconds: float, *, make: bool = True, upgrade: bool = True
    ) -> None:
        """Open it, in a thread: all this may wait for the disk and for other processes."""
        self._path = path
        self._deadline = deadline_seconds
        if not make and identity_of(path) is None:
            raise StoreUnavailable(_GONE)
        make_file(path)
        self._writer = _connect(path, wait_seconds=deadline_seconds)
        self._identity = identity_of(path)
        self._connections = [self._writer]
        try:
            until = time.monotonic() + max(deadline_seconds, _TABLES_SECONDS)
            _retry(until, lambda: make_tables(self._writer, upgrade=upgrade))
            _retry(until, lambda: sql.make_addition(self._writer))
            self._writer.execute(f"PRAGMA cache_size = -{_WRITER_CACHE_KIB}")
            # From the first row on: what moves to another page would be left behind (ADR 36).
            self._writer.execute("PRAGMA secure_delete = ON")
            self._at_once = self._connect_inline()
            self._readers = Readers(lambda: self._reader(path), deadline_seconds=deadline_seconds)
            self._checkpoints = Checkpoints(
                path, lambda: _connect(path, wait_seconds=deadline_seconds)
            )
        except BaseException:
            self._close_connections()
            raise
        self._writing = ThreadPoolExecutor(1, "sqlite-writer")
        self._group = self._new_group()

    def at_once(self, statement: str, parameters: Parameters) -> list[Row] | None:
        """Return rows without leaving the thread, or None if that would mean to wait."""
        try:
            return self._at_once.execute(statement, parameters).fetchall()
        except sqlite3.Error as error:
            if is_busy(error):
                return None
            raise StoreUnavailable(_name(error)) from None

    async def read(self, work: Work[R]) -> R:
        """Return what ``work`` finds, in a thread."""
        with as_unavailable():
            return await self._readers.read(work)

    async def read_for(self, tenant: str, work: Work[R], *, max_seconds: float | None = None) -> R:
        """Return what ``work`` finds for a tenant, in one of the threads that tenants share.

        Raises what `Readers.read_for` raises.
        """
        with as_unavailable():
            return await self._readers.read_for(tenant, work, max_seconds=max_seconds)

    def write(
        self, item: Addition | Work[Any], *, size: int = 0, index_rows: int = 0
    ) -> Awaitable[Any]:
        """Return what comes of ``item``, once it is committed. ``size`` is in bytes."""
        if not isinstance(item, Addition | Piece):
            item = OtherWrite(item, cost=cost_of(size, index_rows))
        return self._group.add(item, size=item.cost)

    async def empty_journal(self) -> bool:
        """Move the journal into the file and empty it; return whether this was possible."""
        until = time.monotonic() + self._deadline
        with as_unavailable():
            while not await asyncio.wrap_future(self._checkpoints.empty()):
                if time.monotonic() > until:
                    return False
                await asyncio.sleep(0.05)
            return True

    async def clear_unused_bytes(self) -> bool:
        """Overwrite what deleted rows have left in the file; return whether this was possible."""
        return await asyncio.to_thread(clear_unused_bytes, self._path, seconds=self._deadline)

    async def close(self) -> None:
        """Finish what was handed in and close."""
        await self._group.drain()
        await self._readers.drain()
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._readers.close()
        self._writing.shutdown()
        self._checkpoints.close()
        self._close_connections()

    def _close_connections(self) -> None:
        for connection in self._connections:
            connection.close()

    def _connect_inline(self) -> sqlite3.Connection:
        """Return a connection for reads on the thread of an event loop, which never wait."""
        connection = self._reader(self._path)
        connection.execute("PRAGMA busy_timeout = 0")
        return connection

    def _reader(self, path: Path) -> sqlite3.Connection:
        connection = _connect(path, wait_seconds=self._deadline)
        self._connections.append(connection)
        connection.execute("PRAGMA query_only = ON")
        return connection

    def _new_group(self) -> FairCommit[_Write, Any]:
        """Return what collects the writes of one event loop."""
        return FairCommit(
            self._commit,
            owner_of=_owner_of,
            deadline_seconds=self._deadline,
            bounds=_BATCH_BOUNDS,
        )

    async def _commit(self, batch: Sequence[_Write]) -> Sequence[Any]:
        loop = asyncio.get_running_loop()
        with as_unavailable():
            return await loop.run_in_executor(self._writing, self._commit_now, batch)

    def _commit_now(self, batch: Sequence[_Write]) -> list[Any]:
        # A file that was moved or deleted accepts writes all the same, and they are lost.
        if identity_of(self._path) != self._identity:
            raise StoreUnavailable(_GONE)
        try:
            results = self._write_batch(batch)
        except sqlite3.OperationalError:
            raise
        except Exception:
            if len(batch) == 1:
                raise
            # One of them cannot be written by its nature: the others must not suffer.
            results = [self._alone(item) for item in batch]
        self._checkpoints.count(sum(map(_pages_of, batch)), self._writer)
        return results

    def _alone(self, item: _Write) -> Any:
        try:
            with as_unavailable():
                return self._write_batch([item])[0]
        except Exception as problem:  # noqa: BLE001 - it is the caller's
            return problem

    def _write_batch(self, batch: Sequence[_Write]) -> list[Any]:
        additions = [item for item in batch if isinstance(item, Addition)]
        rows = [row for addition in additions for row in addition.rows]
        others = len(additions) < len(batch) or any(addition.large for addition in additions)
        if not others and len(rows) <= _ROW_BATCH_SIZE:
            with suppress(sqlite3.IntegrityError):  # a key is taken
                _insert(self._writer, rows)
                return [True] * len(batch)
        with transaction(self._writer, "BEGIN IMMEDIATE"):
            added = _add(self._writer, additions)
            return [
                item in added if isinstance(item, Addition) else item(self._writer)
                for item in batch
            ]


class DatabaseMixin:
    """What works on a file that is open between its start and its stop."""

    _file: Database | None = None

    @property
    def _open(self) -> Database:
        if self._file is None:
            raise StoreUnavailable("not started, or stopped")
        return self._file

    async def _fetch_inline(self, statement: str, parameters: Parameters) -> list[Row]:
        """Return rows that are known to be small and few."""
        rows = self._open.at_once(statement, parameters)
        return await self._fetch_in_thread(statement, parameters) if rows is None else rows

    async def _fetch_in_thread(self, statement: str, parameters: Parameters) -> list[Row]:
        return await self._open.read(
            lambda connection: connection.execute(statement, parameters).fetchall()
        )

    async def _fetch_for(self, tenant: str, statement: str, parameters: Parameters) -> list[Row]:
        return await self._open.read_for(
            tenant, lambda connection: connection.execute(statement, parameters).fetchall()
        )

    async def _execute(
        self, statement: str, parameters: Parameters, *, index_rows: int = 0
    ) -> int:
        """Return how many rows a statement has changed."""

        def work(connection: sqlite3.Connection) -> int:
            return connection.execute(statement, parameters).rowcount

        changed: int = await self._open.write(work, index_rows=index_rows)
        return changed


def _pages_of(item: _Write) -> int:
    return item.pages if isinstance(item, Piece) else pages_of(item.cost)


def _owner_of(item: _Write) -> str:
    """Return the tenant of a write; all that are not a tenant's resources are the service's."""
    return item.tenant if isinstance(item, Addition | Piece) else ""


def _add(connection: sqlite3.Connection, additions: Sequence[Addition]) -> set[Addition]:
    """Insert those whose key is free; return them. Of several with one key the first."""
    first: dict[tuple[str, int], Addition] = {}
    for addition in additions:
        first.setdefault(addition.key, addition)
    if not first:
        return set()
    taken = connection.execute(sql.TAKEN, (json_pairs(first),)).fetchall()
    for key in taken:
        del first[key]
    _insert(connection, [row for addition in first.values() for row in addition.rows])
    for addition in first.values():
        for blob in addition.large:
            add_bytes(connection, addition.tenant, blob)
    return set(first.values())


def _insert(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """Insert rows of additions; raises IntegrityError if a key is taken."""
    for start in range(0, len(rows), _ROW_BATCH_SIZE):
        part = [*rows[start : start + _ROW_BATCH_SIZE]]
        # Empty rows are passed over, and spare statements for every number of them.
        part += [(None,) * sql.ADDITION_COLUMNS] * (-len(part) % _ROWS_STEP)
        connection.execute(sql.add_rows(len(part)), list(chain.from_iterable(part)))


def _connect(path: Path, *, wait_seconds: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path,
        timeout=wait_seconds,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=200,
    )
    try:
        _set_pragmas(connection)
    except sqlite3.DatabaseError as error:
        connection.close()
        if error.sqlite_errorcode != sqlite3.SQLITE_NOTADB:
            raise
        raise ConfigurationError("[storage] url: the file is not an SQLite database") from None
    return connection


def _set_pragmas(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")  # elsewhere than on macOS without effect
    connection.execute("PRAGMA wal_autocheckpoint = 0")  # see checkpoints
    connection.execute("PRAGMA temp_store = MEMORY")  # what is sorted must not land in /tmp


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str) -> Generator[None]:
    """Commit what the block does, or undo it if it fails."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _retry(moment: float, work: Callable[[], None]) -> None:
    """Repeat while the file is busy: not every statement waits on its own."""
    while True:
        try:
            return work()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > moment:
                raise
        time.sleep(0.01)


@contextmanager
def as_unavailable() -> Generator[None]:
    """Raise StoreUnavailable for what SQLite cannot do, or not in time."""
    try:
        yield
    except TimeoutError:
        raise StoreUnavailable("deadline exceeded") from None
    except sqlite3.Error as error:
        raise StoreUnavailable(_name(error)) from None


def _name(error: sqlite3.Error) -> str:
    """Return SQLite's own name of an error, which holds no value as its text might."""
    name: str = getattr(error, "sqlite_errorname", type(error).__name__)
    return name
