"""What deleted rows have left in unused bytes of a file's pages is overwritten, and nothing else.

The tests put remains where SQLite leaves them, so that they do not depend on its release.
"""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from struct import pack, unpack

import pytest

from fhirpub.storage.sqlite import unused_bytes as module
from fhirpub.storage.sqlite.checkpoints import CheckpointLock
from fhirpub.storage.sqlite.files import clear_unused_bytes
from fhirpub.storage.sqlite.unused_bytes import (
    BUSY,
    CLEARED,
    NOT_SUPPORTED,
    UnusedBytes,
    clear_file,
    unused_range,
)

_PAGE_BYTES = 4096
_REMAINS = b"the name of a patient"
_ROWS = 2_000
_HEAD = {0x02: 12, 0x0A: 8, 0x0D: 8}
_NAMES = "SELECT name FROM named ORDER BY name"


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=0, isolation_level=None)


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(_connect(path)) as connection:
        yield connection


def _make_file(path: Path, *pragmas: str) -> None:
    with _connected(path) as connection:
        for pragma in (*pragmas, "journal_mode = WAL", "secure_delete = ON"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("CREATE TABLE named (name TEXT PRIMARY KEY) WITHOUT ROWID")
        connection.execute("CREATE TABLE numbered (number INTEGER PRIMARY KEY, text TEXT)")
        connection.execute("BEGIN")
        for number in range(_ROWS):
            connection.execute("INSERT INTO named VALUES (?)", (f"row {number} of the index",))
            connection.execute("INSERT INTO numbered VALUES (NULL, 'row of the table')")
        connection.execute("COMMIT")


def _leave_remains(path: Path) -> set[int]:
    """Leave remains in each page that has room for them; return the kinds of these pages."""
    kinds = set()
    with path.open("r+b") as file:
        for number in range(path.stat().st_size // _PAGE_BYTES):
            file.seek(number * _PAGE_BYTES)
            page = file.read(_PAGE_BYTES)
            head, count, end = _HEAD.get(page[0]), *unpack(">HH", page[3:7])
            if head and head + 2 * count + len(_REMAINS) < end:
                file.seek(number * _PAGE_BYTES + end - len(_REMAINS))
                file.write(_REMAINS)
                kinds.add(page[0])
    return kinds


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with remains in pages of each kind that has rows."""
    path = tmp_path / "fhirpub.db"
    _make_file(path)
    assert _leave_remains(path) == {0x02, 0x0A, 0x0D}
    return path


def _clear_here(path: Path, *, seconds: float = 10) -> int:
    """Clear a file in this process."""
    with _connected(path) as connection:
        return clear_file(path, connection, seconds=seconds)


def _has_remains(path: Path) -> bool:
    return _REMAINS in path.read_bytes()


def _rows(path: Path) -> list[object]:
    with _connected(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = connection.execute(_NAMES).fetchall()
        return [*rows, *connection.execute("SELECT * FROM numbered")]


# Which bytes of a page are unused


def _page(
    *cells: int, kind: int = 0x0A, start: int = 4000, first_free: int = 0, gap: bytes = b"x"
) -> bytes:
    """Return a page with rows at some places, and something before the first one."""
    page = bytearray(_PAGE_BYTES)
    head = _HEAD.get(kind, 8)
    page[: head + 2 * len(cells)] = (
        pack(">BHHHB", kind, first_free, len(cells), start, 0).ljust(head, b"\1")
    ) + b"".join(pack(">H", cell) for cell in cells)
    page[start - len(gap) : start] = gap
    return bytes(page)


@pytest.mark.parametrize(("kind", "start"), [(0x02, 16), (0x0A, 12), (0x0D, 12)])
def test_the_bytes_between_the_list_of_rows_and_the_rows_are_unused(kind: int, start: int) -> None:
    assert unused_range(_page(4050, 4000, kind=kind)) == (start, 4000)


def test_a_page_without_rows_has_unused_bytes_up_to_its_end() -> None:
    assert unused_range(_page(start=4096)) == (8, 4096)


def test_a_page_of_64_kilobytes_has_its_end_as_0() -> None:
    page = bytearray(65_536)
    page[0], page[9] = 0x0A, 1

    assert unused_range(bytes(page)) == (8, 65_536)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(_page(4050, 4000, gap=b""), id="nothing but zeros"),
        pytest.param(_page(4050, 4000, kind=0x05), id="an inner page of a table"),
        pytest.param(_page(4050, 4000, kind=0x00), id="a page without rows"),
        pytest.param(_page(4050, 3999), id="a row before the first one"),
        pytest.param(_page(4050, 4000, first_free=3000), id="a free block before the first row"),
        pytest.param(_page(4050, 4000, start=12, gap=b""), id="a full page"),
        pytest.param(_page(4050, 4000, start=11, gap=b""), id="rows within the list of rows"),
        pytest.param(_page(start=4097), id="rows beyond the page"),
    ],
)
def test_a_page_has_no_unused_bytes(page: bytes) -> None:
    assert unused_range(page[:_PAGE_BYTES]) is None


def test_free_blocks_between_rows_do_not_matter() -> None:
    assert unused_range(_page(4050, 4000, first_free=4020)) == (12, 4000)


# A whole file


def test_remains_are_overwritten_and_rows_stay(path: Path) -> None:
    rows = _rows(path)

    assert clear_unused_bytes(path, seconds=10)

    assert not _has_remains(path)
    assert _rows(path) == rows


@pytest.mark.parametrize("seed", range(5))
def test_what_sqlite_has_left_of_deleted_rows_is_overwritten(path: Path, seed: int) -> None:
    choose = random.Random(seed)
    with _connected(path) as connection:
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(
            "CREATE TABLE other (field, value, PRIMARY KEY (field, value)) WITHOUT ROWID"
        )
        keys = [
            (choose.randrange(12), f"{'zz' * choose.randrange(20)}<{seed}.{number}>")
            for number in range(1_500)
        ]
        connection.execute("BEGIN")
        for place, key in enumerate(keys):
            connection.execute("INSERT INTO other VALUES (?, ?)", key)
            if place % 3 == 2:
                connection.execute(
                    "DELETE FROM other WHERE field = ? AND value = ?", keys[place // 2]
                )
        connection.execute("COMMIT")
        left = {value for (value,) in connection.execute("SELECT value FROM other")}
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    assert clear_unused_bytes(path, seconds=10)

    data = path.read_bytes()
    assert [value for _, value in keys if value not in left and value.encode() in data] == []


def test_pages_beyond_the_first_megabyte_and_the_first_turn_are_cleared(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CHUNK_BYTES", 3 * _PAGE_BYTES)
    monkeypatch.setattr(module, "_PAGES_AT_ONCE", 2)

    assert _clear_here(path) == CLEARED
    assert not _has_remains(path)


def test_bytes_of_documents_that_look_like_remains_stay(path: Path) -> None:
    document = bytes([0x0A, 0, 0, 0, 1, 15, 0]) * 5_000
    with _connected(path) as connection:
        connection.execute("CREATE TABLE document (bytes BLOB)")
        connection.execute("INSERT INTO document VALUES (?)", (document,))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    assert clear_unused_bytes(path, seconds=10)

    with _connected(path) as connection:
        assert connection.execute("SELECT bytes FROM document").fetchall() == [(document,)]


# Others that use the file


def test_while_another_reads_in_the_journal_nothing_is_overwritten(path: Path) -> None:
    with _connected(path) as reader, _connected(path) as writer:
        writer.execute("INSERT INTO numbered VALUES (NULL, 'new')")
        reader.execute("BEGIN")
        reader.execute(_NAMES).fetchall()

        assert _clear_here(path, seconds=0.1) == BUSY
        assert not clear_unused_bytes(path, seconds=0.1)
        assert _has_remains(path)

        reader.execute("COMMIT")
        assert clear_unused_bytes(path, seconds=10)
    assert not _has_remains(path)


def test_while_another_writes_nothing_is_overwritten(path: Path) -> None:
    with _connected(path) as writer:
        writer.execute("BEGIN IMMEDIATE")

        assert _clear_here(path, seconds=0.1) == BUSY
        assert _has_remains(path)


def test_while_another_moves_the_journal_nothing_is_overwritten(path: Path) -> None:
    with closing(CheckpointLock(path)) as other:
        assert other.take()
        assert _clear_here(path, seconds=0.1) == BUSY
        assert _has_remains(path)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[UnusedBytes, sqlite3.Connection]]:
    descriptor = os.open(path, os.O_RDWR)
    with _connected(path) as connection:
        yield UnusedBytes(path, connection, descriptor), connection
    os.close(descriptor)


def test_what_another_has_in_memory_is_not_written_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _opened(path) as (file, _), _connected(path) as writer:
        clear_page = file._clear_page

        def read_and_clear(number: int) -> None:
            writer.execute(_NAMES).fetchall()
            clear_page(number)

        monkeypatch.setattr(file, "_clear_page", read_and_clear)
        assert file.clear(seconds=10)

        writer.execute("DELETE FROM named WHERE name LIKE 'row 1%'")
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert not _has_remains(path)


def test_when_another_was_first_to_write_it_is_tried_again(path: Path) -> None:
    with _opened(path) as (file, connection), _connected(path) as other:
        begun = []

        def write_before(statement: str) -> None:
            if statement.startswith("BEGIN"):
                begun.append(statement)
                if len(begun) == 1:
                    other.execute("DELETE FROM named WHERE name LIKE 'row 1%'")

        connection.set_trace_callback(write_before)
        assert file.clear(seconds=10)

        assert len(begun) == 2
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert not _has_remains(path)


def test_the_journal_of_a_process_that_has_lost_its_locks_is_not_deleted(path: Path) -> None:
    with _connected(path) as connection:
        connection.execute("INSERT INTO numbered VALUES (NULL, 'new')")
        path.open("rb").close()  # which releases the locks of this process
        assert clear_unused_bytes(path, seconds=10)

        connection.execute("INSERT INTO numbered VALUES (NULL, 'newer')")
        assert path.with_name("fhirpub.db-wal").stat().st_size
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    with _connected(path) as connection:
        assert connection.execute("SELECT count(*) FROM numbered").fetchone() == (_ROWS + 2,)


def test_the_version_of_the_tables_stays(path: Path) -> None:
    with _connected(path) as connection:
        connection.execute("PRAGMA user_version = 917517")
        assert clear_unused_bytes(path, seconds=10)
        assert connection.execute("PRAGMA user_version").fetchone() == (917517,)


# Files that stay as they are


def test_a_file_with_pages_that_name_others_is_not_supported(tmp_path: Path) -> None:
    path = tmp_path / "fhirpub.db"
    _make_file(path, "auto_vacuum = FULL")
    _leave_remains(path)

    assert _clear_here(path) == NOT_SUPPORTED
    assert clear_unused_bytes(path, seconds=10)
    assert _has_remains(path)


def test_a_file_with_too_many_pages_is_not_supported(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _opened(path) as (file, connection):
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        monkeypatch.setattr(module, "_MAX_PAGES", pages + 1)
        assert file.is_supported()
        monkeypatch.setattr(module, "_MAX_PAGES", pages)
        assert not file.is_supported()


def test_a_file_with_checksums_is_not_supported(path: Path, tmp_path: Path) -> None:
    head = bytearray(path.read_bytes()[:100])
    head[20] = 8
    other = tmp_path / "other"
    other.write_bytes(head)
    with _connected(path) as connection, other.open("rb") as file:
        assert not UnusedBytes(path, connection, file.fileno()).is_supported()


def test_a_file_that_is_gone_is_not_cleared(tmp_path: Path) -> None:
    assert not clear_unused_bytes(tmp_path / "gone.db", seconds=10)
    assert not (tmp_path / "gone.db").exists()
