"""Documents in pieces: where they are cut, what completes them, and what a sweep deletes."""

from __future__ import annotations

import os
import sqlite3

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import SMALL_BYTES, Blob
from fhirpub.storage.sqlite.blobs import (
    ATTACHED,
    Piece,
    add_bytes,
    attached_blobs,
    chunks_of,
    pieces_of,
    put_back,
    read_chunk,
    sweep,
)
from fhirpub.storage.sqlite.database import _insert
from fhirpub.storage.sqlite.rows import CHUNK_BYTES, PIECE_BYTES, Addition, version_of
from fhirpub.storage.sqlite.schema import EXACT
from fhirpub.testing.samples import FOREVER, LAB, OTHER, a_version
from fhirpub.testing.store_contract import a_blob

NOW = 1_000
TWO = a_blob(os.urandom(PIECE_BYTES + 1))
"""A document of two pieces, the second of them of one byte."""


def write_pieces(
    connection: sqlite3.Connection, blob: Blob, *places: int, tenant: str = LAB, now: int = NOW
) -> None:
    pieces = [*pieces_of(tenant, blob, now=now)]
    for place in places:
        pieces[place](connection)


def stored_pieces(connection: sqlite3.Connection) -> int:
    ((count,),) = connection.execute("SELECT count(*) FROM blob_piece")
    return int(count)


def read(connection: sqlite3.Connection, blob: Blob, part: slice, tenant: str = LAB) -> bytes:
    return read_chunk(connection, tenant=tenant, sha256=blob.sha256, part=part)


# Chunks


@pytest.mark.parametrize(
    ("part", "chunks"),
    [
        ((0, 0), []),
        ((7, 7), []),
        ((0, 1), [(0, 1)]),
        ((0, CHUNK_BYTES), [(0, CHUNK_BYTES)]),
        ((0, CHUNK_BYTES + 1), [(0, CHUNK_BYTES), (CHUNK_BYTES, CHUNK_BYTES + 1)]),
        ((5, CHUNK_BYTES), [(5, CHUNK_BYTES)]),
        (
            (CHUNK_BYTES - 1, CHUNK_BYTES + 2),
            [(CHUNK_BYTES - 1, CHUNK_BYTES), (CHUNK_BYTES, CHUNK_BYTES + 2)],
        ),
        ((CHUNK_BYTES, 2 * CHUNK_BYTES), [(CHUNK_BYTES, 2 * CHUNK_BYTES)]),
    ],
)
def test_a_part_is_cut_where_chunks_end(
    part: tuple[int, int], chunks: list[tuple[int, int]]
) -> None:
    found = [(each.start, each.stop) for each in chunks_of(slice(*part))]

    assert found == chunks


# Pieces


@pytest.mark.parametrize(
    ("size", "count"), [(PIECE_BYTES, 1), (PIECE_BYTES + 1, 2), (2 * PIECE_BYTES, 2)]
)
def test_a_document_has_as_many_pieces_as_it_fills(size: int, count: int) -> None:
    assert len([*pieces_of(LAB, a_blob(bytes(size)), now=NOW)]) == count


def test_a_piece_takes_its_turn_as_a_write_of_its_tenant_and_its_size() -> None:
    (first, *_others) = pieces_of(OTHER, TWO, now=NOW)

    assert first.tenant == OTHER
    assert (Piece.cost, Piece.pages) == (11_856, 395)


def test_the_first_piece_adds_the_document_which_is_not_complete(
    connection: sqlite3.Connection,
) -> None:
    write_pieces(connection, TWO, 0)

    rows = connection.execute("SELECT tenant, sha256, size, added, named FROM blob").fetchall()
    assert rows == [(LAB, TWO.sha256, PIECE_BYTES + 1, NOW, 0)]
    assert connection.execute("SELECT * FROM blob_bytes").fetchall() == []


@pytest.mark.parametrize("places", [(0,), (0, 1), (0, 2), (0, 1, 2)])
def test_all_pieces_that_are_missing_are_added_when_a_document_is_completed(
    connection: sqlite3.Connection, places: tuple[int, ...]
) -> None:
    three = a_blob(os.urandom(2 * PIECE_BYTES + 1))
    write_pieces(connection, three, *places)

    add_bytes(connection, LAB, three)

    assert stored_pieces(connection) == 3
    chunks = chunks_of(slice(0, len(three.data)))
    assert b"".join(read(connection, three, chunk) for chunk in chunks) == three.data


def test_a_piece_is_stored_once(connection: sqlite3.Connection) -> None:
    write_pieces(connection, TWO, 0, 1, 1, 0)

    assert stored_pieces(connection) == 2


def test_the_first_piece_marks_a_document_as_fresh(connection: sqlite3.Connection) -> None:
    write_pieces(connection, TWO, 0)
    write_pieces(connection, TWO, 1, now=NOW + 1)
    assert connection.execute("SELECT added FROM blob").fetchall() == [(NOW,)]

    write_pieces(connection, TWO, 0, now=NOW + 2)
    assert connection.execute("SELECT added FROM blob").fetchall() == [(NOW + 2,)]


@pytest.mark.parametrize("places", [(0,), (0, 1)])
def test_missing_pieces_are_added_when_a_document_is_completed(
    connection: sqlite3.Connection, places: tuple[int, ...]
) -> None:
    write_pieces(connection, TWO, *places)

    add_bytes(connection, LAB, TWO)

    assert stored_pieces(connection) == 2
    assert read(connection, TWO, slice(0, 9)) == TWO.data[:9]
    end = slice(PIECE_BYTES, PIECE_BYTES + 1)
    assert read(connection, TWO, end) == TWO.data[end]


@pytest.mark.parametrize("size", [SMALL_BYTES + 1, PIECE_BYTES])
def test_a_document_of_one_piece_is_completed_with_its_bytes(
    connection: sqlite3.Connection, size: int
) -> None:
    blob = a_blob(os.urandom(size))
    keep(connection, blob)

    add_bytes(connection, LAB, blob)

    assert stored_pieces(connection) == 0
    assert read(connection, blob, slice(3, 9)) == blob.data[3:9]


def test_a_document_that_is_complete_is_left_alone(connection: sqlite3.Connection) -> None:
    write_pieces(connection, TWO, 0)
    add_bytes(connection, LAB, TWO)
    before = connection.total_changes

    add_bytes(connection, LAB, TWO)

    assert connection.total_changes == before


def test_the_documents_of_a_tenant_are_completed_for_it_alone(
    connection: sqlite3.Connection,
) -> None:
    for tenant in (LAB, OTHER):
        write_pieces(connection, TWO, 0, tenant=tenant)

    add_bytes(connection, OTHER, TWO)

    assert read(connection, TWO, slice(0, 9), OTHER) == TWO.data[:9]
    with pytest.raises(StoreUnavailable):
        read(connection, TWO, slice(0, 9))


def test_what_is_read_without_being_there_is_missing(connection: sqlite3.Connection) -> None:
    with pytest.raises(StoreUnavailable) as refused:
        read(connection, TWO, slice(0, 9))

    assert refused.value.reason == "a document is missing"


# Documents within versions


def test_a_document_within_a_version_is_found_by_its_name(
    connection: sqlite3.Connection,
) -> None:
    blobs = [a_blob(), a_blob()]
    names = [blob.sha256 for blob in blobs]
    version = a_version(documents=tuple(names), attached=tuple(blobs))
    _insert(connection, Addition(LAB, version, (), now=NOW).rows)

    rows = connection.execute(ATTACHED, (LAB, f'["{names[1]}","{"0" * 64}"]')).fetchall()

    assert [*attached_blobs(rows)] == [blobs[1]]


# Content of versions


def test_content_in_pieces_is_put_back_into_its_row(connection: sqlite3.Connection) -> None:
    version = a_version(
        body=os.urandom(PIECE_BYTES), response=os.urandom(PIECE_BYTES), parts=b"parts", audit=b"a"
    )
    addition = Addition(OTHER, version, (), now=NOW)
    _insert(connection, addition.rows)
    for blob in addition.large:
        write_pieces(connection, blob, 0, 1, 2, tenant=OTHER)
        add_bytes(connection, OTHER, blob)
    (row,) = connection.execute(EXACT, (version.id, OTHER, 1)).fetchall()

    whole = version_of(put_back(connection, row))
    shown = version_of(put_back(connection, row, shown=True))

    assert whole == version
    assert (shown.body, shown.response, shown.parts) == (version.body, b"", b"")
    assert len(put_back(connection, row)) == len(row)


def test_a_row_with_its_content_is_returned_as_it_is(connection: sqlite3.Connection) -> None:
    (row,) = Addition(LAB, a_version(), (), now=NOW).rows

    assert put_back(connection, row) is row


# Sweeps


def keep(connection: sqlite3.Connection, *blobs: Blob, tenant: str = LAB, now: int = NOW) -> None:
    _insert(connection, Addition(tenant, a_version(), blobs, now=now).rows)


@pytest.mark.parametrize(("count", "first"), [(0, 0), (1, 1), (15, 15), (16, 16), (17, 16)])
def test_a_sweep_deletes_sixteen_documents_at_once(
    connection: sqlite3.Connection, count: int, first: int
) -> None:
    keep(connection, *(a_blob() for _ in range(count)))

    steps = [sweep(connection, tenant=LAB, before=FOREVER) for _ in range(2)]

    assert steps == [(first, first), (count - first, count - first)]


@pytest.mark.parametrize(("before", "swept"), [(NOW, 0), (NOW + 1, 1)])
def test_a_document_is_swept_if_it_was_added_before(
    connection: sqlite3.Connection, before: int, swept: int
) -> None:
    keep(connection, a_blob())

    assert sweep(connection, tenant=LAB, before=before) == (swept, swept)


def test_a_sweep_leaves_the_documents_of_others(connection: sqlite3.Connection) -> None:
    blob = a_blob()
    for tenant in (LAB, OTHER):
        keep(connection, blob, tenant=tenant)

    assert sweep(connection, tenant=LAB, before=FOREVER) == (1, 1)
    assert connection.execute("SELECT tenant FROM blob").fetchall() == [(OTHER,)]
    assert connection.execute("SELECT count(*) FROM blob_bytes").fetchall() == [(1,)]


def with_pieces(connection: sqlite3.Connection, *counts: int) -> None:
    """Add documents with so many pieces each, of one byte."""
    for now, count in enumerate(counts, start=NOW):
        blob = a_blob()
        keep(connection, blob, now=now)
        connection.execute("DELETE FROM blob_bytes")
        connection.executemany(
            "INSERT INTO blob_piece SELECT number * 1048576 + ?, x'00' FROM blob WHERE sha256 = ?",
            [(place, blob.sha256) for place in range(count)],
        )


@pytest.mark.parametrize(
    ("counts", "steps"),
    [
        ((15,), [(1, 1), (0, 0)]),
        ((16,), [(1, 0), (1, 1)]),
        ((17,), [(1, 0), (1, 1)]),
        ((10, 5, 0), [(3, 3), (0, 0)]),
        ((10, 6, 0), [(3, 1), (2, 2)]),
        ((10, 7, 0), [(3, 1), (2, 2)]),
        ((0, 16), [(2, 1), (1, 1)]),
    ],
)
def test_a_sweep_deletes_sixteen_pieces_at_once(
    connection: sqlite3.Connection, counts: tuple[int, ...], steps: list[tuple[int, int]]
) -> None:
    with_pieces(connection, *counts)

    found = [sweep(connection, tenant=LAB, before=FOREVER) for _ in range(2)]

    assert found == steps
    assert stored_pieces(connection) == 0
    assert connection.execute("SELECT count(*) FROM blob").fetchall() == [(0,)]
