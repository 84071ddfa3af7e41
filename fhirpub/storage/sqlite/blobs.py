"""The bytes of documents in a SQLite file: large ones in pieces, each in a short commit.

The file has one writer, and all other writes wait while it commits. So the pieces of a large
document are committed before the version that names it, and take turns with the writes of other
tenants (ADR 21). So are the resource and the response of a large version: its row refers to them.
The commit of the version adds what is missing and marks the document as complete, by a row without
bytes in ``blob_bytes``: before that it cannot be read. Pieces whose version never comes are swept
with their document.
"""

# ruff: noqa: S608 - statements are put together from names in this file, never from values

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import SMALL_BYTES, Blob
from fhirpub.storage.sqlite import schema as sql
from fhirpub.storage.sqlite.rows import (
    CHUNK_BYTES,
    PIECE_BYTES,
    Row,
    attached_in,
    blob_row,
    cost_of,
    pages_of,
    reference_in,
)

_SWEEP_BATCH_SIZE = 16
"""Few blobs or pieces, since each may have megabytes and blocks every other write."""

# The number of a piece is that of its blob and its place in it: pieces of one blob stand together.
_PLACES = 1 << 20
_NUMBERS = f"BETWEEN blob.number * {_PLACES} AND blob.number * {_PLACES} + {_PLACES - 1}"

_OF_BLOB = "FROM blob WHERE tenant = ? AND sha256 = ?"
BLOBS = f"""
    SELECT sha256, content_type, size, iif(size <= {SMALL_BYTES}, data, NULL)
    FROM blob JOIN blob_bytes USING (number)
    WHERE tenant = ? AND sha256 IN (SELECT value FROM json_each(?))
"""
ATTACHED = """
    SELECT wanted.value, (
        SELECT attached FROM document AS d CROSS JOIN version AS v INDEXED BY version_key
            ON v.id = d.id AND v.version = d.version
        WHERE d.tenant = ?1 AND d.sha256 = wanted.value
            AND instr(attached, CAST(wanted.value AS BLOB)) LIMIT 1
    ) FROM json_each(?2) AS wanted
"""
"""The rows that hold documents, by the names of these, one for each."""
_ADD_PIECE = f"""
    INSERT OR IGNORE INTO blob_piece (number, data)
        SELECT number * {_PLACES} + ?, ? {_OF_BLOB}
"""
_ADD_BYTES = f"""
    INSERT INTO blob_bytes (number, data) SELECT number, ? {_OF_BLOB}
        ON CONFLICT (number) DO NOTHING
"""
_IS_COMPLETE = f"SELECT 1 {_OF_BLOB} AND number IN (SELECT number FROM blob_bytes)"
_STORED_PLACES = f"""
    SELECT blob_piece.number % {_PLACES} FROM blob JOIN blob_piece ON blob_piece.number {_NUMBERS}
    WHERE tenant = ? AND sha256 = ?
"""
_FIND = "SELECT number, length(data) FROM blob JOIN blob_bytes USING (number) "
_FIND += "WHERE tenant = ? AND sha256 = ?"

_UNNAMED = "SELECT number FROM blob WHERE tenant = ? AND named = 0 AND added < ? LIMIT ?"
_SWEEP_BYTES = "DELETE FROM blob_bytes WHERE number = ?"
_SWEEP_PIECES = f"""
    DELETE FROM blob_piece WHERE number IN (
        SELECT blob_piece.number FROM blob JOIN blob_piece ON blob_piece.number {_NUMBERS}
        WHERE blob.number = ? LIMIT ?
    )
"""
_SWEEP = "DELETE FROM blob WHERE number = ?"


class Piece:
    """A piece of a large document on its way in; the writer calls it to store it."""

    __slots__ = ("_blob", "_now", "_place", "tenant")

    cost = 3 * cost_of(PIECE_BYTES)
    """More than a batch may cost: a piece is committed alone, and others between two of them."""
    pages = pages_of(cost_of(PIECE_BYTES))

    def __init__(self, tenant: str, blob: Blob, place: int, *, now: int) -> None:
        self.tenant = tenant
        self._blob = blob
        self._place = place
        self._now = now

    def __call__(self, connection: sqlite3.Connection) -> None:
        """Store it unless it is stored; the first one adds its blob, or marks it as fresh."""
        if self._place == 0:
            row = blob_row(self.tenant, self._blob, now=self._now)
            connection.execute(sql.add_rows(1), row)
        _add_piece(connection, self.tenant, self._blob, self._place)


def attached_blobs(rows: Iterable[Row]) -> Iterator[Blob]:
    """Yield the documents that were asked for by `ATTACHED`, and found."""
    for name, value in rows:
        yield from (blob for blob in attached_in(value or b"") if blob.sha256 == name)


def pieces_of(tenant: str, blob: Blob, *, now: int) -> Iterator[Piece]:
    """Yield the pieces of a blob larger than one of them."""
    for place in range(_count(blob)):
        yield Piece(tenant, blob, place, now=now)


def add_bytes(connection: sqlite3.Connection, tenant: str, blob: Blob) -> None:
    """Complete a large blob of which the row without bytes is there."""
    key = (tenant, blob.sha256)
    if len(blob.data) <= PIECE_BYTES:
        connection.execute(_ADD_BYTES, (blob.data, *key))
    elif not connection.execute(_IS_COMPLETE, key).fetchall():
        stored = {place for (place,) in connection.execute(_STORED_PLACES, key)}
        for place in set(range(_count(blob))) - stored:
            _add_piece(connection, tenant, blob, place)
        connection.execute(_ADD_BYTES, (b"", *key))


def _add_piece(connection: sqlite3.Connection, tenant: str, blob: Blob, place: int) -> None:
    start = place * PIECE_BYTES
    data = memoryview(blob.data)[start : start + PIECE_BYTES]
    connection.execute(_ADD_PIECE, (place, data, tenant, blob.sha256))


def _count(blob: Blob) -> int:
    return -(-len(blob.data) // PIECE_BYTES)


def chunks_of(part: slice) -> Iterator[slice]:
    """Cut a part of a blob where its chunks end, and with them its pieces."""
    start = part.start
    while start < part.stop:
        stop = min(start + CHUNK_BYTES - start % CHUNK_BYTES, part.stop)
        yield slice(start, stop)
        start = stop


def read_chunk(connection: sqlite3.Connection, *, tenant: str, sha256: str, part: slice) -> bytes:
    """Return a part of a blob that `chunks_of` has cut; StoreUnavailable if it is not there."""
    for number, size in connection.execute(_FIND, (tenant, sha256)):
        table, row, start = "blob_bytes", number, part.start
        if not size:
            place, start = divmod(part.start, PIECE_BYTES)
            table, row = "blob_piece", number * _PLACES + place
        with connection.blobopen(table, "data", row, readonly=True) as data:
            data.seek(start)
            return data.read(part.stop - part.start)
    raise StoreUnavailable("a document is missing")


def put_back(connection: sqlite3.Connection, row: Row, *, shown: bool = False) -> Row:
    """Return the row of a version with its content, wherever that is.

    ``shown`` leaves out what readers do not see: then only the resource is read.
    """
    found = reference_in(row)
    if found is None:
        return row
    name, sizes = found
    contents: list[bytes] = []
    start = 0
    for size in sizes:
        part = slice(start, start if shown and contents else start + size)
        chunks = (
            read_chunk(connection, tenant=row[2], sha256=name, part=chunk)
            for chunk in chunks_of(part)
        )
        contents.append(b"".join(chunks))
        start += size
    return (*row[:14], *contents, *row[17:])


def sweep(connection: sqlite3.Connection, *, tenant: str, before: int) -> tuple[int, int]:
    """Delete a few blobs or pieces; return how many blobs were found, and how many are deleted."""
    room, swept = _SWEEP_BATCH_SIZE, 0
    found = connection.execute(_UNNAMED, (tenant, before, room)).fetchall()
    for number in found:
        connection.execute(_SWEEP_BYTES, number)
        room -= connection.execute(_SWEEP_PIECES, (*number, room)).rowcount
        if room == 0:  # there may be more pieces
            break
        connection.execute(_SWEEP, number)
        swept += 1
    return len(found), swept
