"""The file of a store: who may read it, and which releases and programs have made it."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from fhirpub.errors import ConfigurationError, StoreUnavailable
from fhirpub.storage.sqlite import files
from fhirpub.storage.sqlite import schema as sql
from fhirpub.storage.sqlite.files import (
    STORED_VERSION,
    identity_of,
    make_file,
    make_tables,
    packed,
    require_use,
    unpacked,
)
from fhirpub.storage.upgrades.versions import SchemaVersion, UpgradeNeeded


def test_a_file_can_be_read_by_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "fhirpub.db"

    make_file(path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_file_that_is_there_keeps_its_content(tmp_path: Path) -> None:
    path = tmp_path / "fhirpub.db"
    path.write_bytes(b"content")

    make_file(path)

    assert path.read_bytes() == b"content"


def test_a_file_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(ConfigurationError, match=r"\[storage\] url: .*fhirpub\.db cannot be made"):
        make_file(tmp_path / "file" / "fhirpub.db")


def test_a_new_file_and_its_name_are_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []

    def sync(number: int) -> None:
        synced.append(Path(f"/proc/self/fd/{number}").readlink())

    monkeypatch.setattr(files, "os", SimpleNamespace(**{**vars(os), "fsync": sync}))
    path = tmp_path / "new" / "fhirpub.db"

    make_file(path)

    assert synced == [path, path.parent]


def test_a_file_that_was_made_is_left_open_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "new" / "fhirpub.db"

    make_file(path)

    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.append(descriptor.readlink())
    assert not {path, path.parent} & {*found}


def test_a_file_is_not_made_with_a_library_that_is_too_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "LEAST_SQLITE", (99, 1, 0))

    with pytest.raises(ConfigurationError, match=r"^SQLite 3\..* is older than 99\.1\.0$"):
        make_file(tmp_path / "fhirpub.db")

    assert not (tmp_path / "fhirpub.db").exists()


def test_a_file_has_no_identity_until_it_is_there(tmp_path: Path) -> None:
    assert identity_of(tmp_path / "none") is None
    (tmp_path / "file").write_text("")
    assert identity_of(tmp_path / "file" / "below") is None


def test_a_file_is_the_same_by_whatever_name(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"")
    os.link(path, tmp_path / "b")

    assert identity_of(path) == identity_of(tmp_path / "b")


def test_another_file_of_the_same_name_is_another(tmp_path: Path) -> None:
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_bytes(b"")
    other.write_bytes(b"")
    before = identity_of(path)

    other.replace(path)

    assert identity_of(path) != before


def test_a_file_says_which_release_made_it(shared: sqlite3.Connection) -> None:
    (found,) = shared.execute(STORED_VERSION).fetchone()

    assert unpacked(found) == SchemaVersion(sql.SCHEMA_VERSION, sql.USABLE_FROM)


def test_a_file_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE theirs (a)")

        with pytest.raises(ConfigurationError, match="another program's database"):
            make_tables(connection)

        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]
        assert connection.execute("PRAGMA journal_mode").fetchone() != ("wal",)


def test_a_file_of_an_older_release_stays_as_it_is_unless_it_may_be_upgraded(
    connection: sqlite3.Connection,
) -> None:
    connection.execute("PRAGMA user_version = 12")

    with pytest.raises(UpgradeNeeded):
        make_tables(connection, upgrade=False)

    assert connection.execute("PRAGMA user_version").fetchone() == (12,)


def test_tables_are_made_once(shared: sqlite3.Connection) -> None:
    before = shared.execute("SELECT sql FROM sqlite_master ORDER BY name").fetchall()

    make_tables(shared)

    assert shared.execute("SELECT sql FROM sqlite_master ORDER BY name").fetchall() == before
    assert not shared.in_transaction


def test_a_file_system_without_shared_memory_is_refused() -> None:
    with (
        closing(sqlite3.connect(":memory:", isolation_level=None)) as connection,
        pytest.raises(ConfigurationError, match="the file system lacks what SQLite's WAL needs"),
    ):
        make_tables(connection)


@pytest.fixture
def another(shared: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Another connection to the file, which does not wait for the first."""
    (_number, _name, path) = shared.execute("PRAGMA database_list").fetchone()
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as another:
        yield another


def test_a_start_waits_for_no_writer_if_the_tables_are_there(
    shared: sqlite3.Connection, another: sqlite3.Connection
) -> None:
    shared.execute("BEGIN IMMEDIATE")
    try:
        make_tables(another)
    finally:
        shared.execute("ROLLBACK")


def test_tables_that_another_process_has_made_since_are_not_made_again(
    shared: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, earlier = files._read_version, [SchemaVersion(0, 0)] * 2
    monkeypatch.setattr(
        files, "_read_version", lambda given: earlier.pop() if earlier else read(given)
    )

    make_tables(shared)

    assert not earlier
    assert not shared.in_transaction


def test_a_step_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sql.STEPS, 0, ["CREATE TABLE a (b)", "CREATE nonsense"])
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as connection:
        with pytest.raises(sqlite3.OperationalError):
            make_tables(connection)

        assert not connection.in_transaction
        assert connection.execute("SELECT * FROM sqlite_master").fetchall() == []


@pytest.mark.parametrize(
    ("version", "number"),
    [
        (SchemaVersion(7, 7), 7),
        (SchemaVersion(7, 6), 7 + (6 << 16)),
        (SchemaVersion(65_535, 1), 65_535 + 65_536),
    ],
)
def test_a_version_fits_into_the_head_of_a_file(version: SchemaVersion, number: int) -> None:
    assert (packed(version), unpacked(number)) == (number, version)


def test_a_number_that_sqlite_shows_as_negative_is_read() -> None:
    assert unpacked((0x8001 << 16 | 5) - 2**32) == SchemaVersion(5, 0x8001)


def test_a_file_that_only_a_newer_release_may_use_is_unavailable() -> None:
    newer = sql.SCHEMA_VERSION + 1

    with pytest.raises(StoreUnavailable):
        require_use([(packed(SchemaVersion(newer, newer)),)])


def test_a_file_of_a_newer_release_that_this_one_may_use_is_used() -> None:
    newer = SchemaVersion(sql.SCHEMA_VERSION + 1, sql.SCHEMA_VERSION)

    require_use([(packed(newer),)])
