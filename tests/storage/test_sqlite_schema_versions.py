"""A SQLite file says which releases may use it, and no other one does."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from fhirpub.errors import ConfigurationError, StoreUnavailable
from fhirpub.storage.sqlite.files import packed, unpacked
from fhirpub.storage.sqlite.schema import SCHEMA_VERSION
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.upgrades.versions import SchemaVersion, UpgradeNeeded
from fhirpub.testing.store_contract import LAB, a_version
from tests.storage.older_sqlite_files import to_version_11

NEWER = SCHEMA_VERSION + 6


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A file of this release."""
    path = tmp_path / "store.db"
    store = a_store(path)
    await store.start()
    await store.stop()
    return path


def a_store(path: Path) -> SqliteStore:
    return SqliteStore(path, deadline_seconds=5)


def mark(path: Path, version: SchemaVersion) -> None:
    """Write what the upgrade by another release writes into the head of a file."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {packed(version)}")


def version_of(path: Path) -> SchemaVersion:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return unpacked(connection.execute("PRAGMA user_version").fetchone()[0])


async def test_a_file_of_a_newer_release_that_this_one_may_use_stays_as_it_is(path: Path) -> None:
    newer = SchemaVersion(NEWER, SCHEMA_VERSION)
    mark(path, newer)
    store = a_store(path)

    await store.start()

    assert await store.add(LAB, a_version())
    await store.check()
    await store.stop()
    assert version_of(path) == newer


async def test_a_file_of_a_newer_release_that_this_one_must_not_use_is_refused(path: Path) -> None:
    mark(path, SchemaVersion(NEWER, SCHEMA_VERSION + 1))

    with pytest.raises(ConfigurationError, match=f"{NEWER} of a newer release.*{SCHEMA_VERSION}:"):
        await a_store(path).start()


async def test_an_upgrade_by_a_newer_release_is_found_by_the_check_of_an_open_file(
    path: Path,
) -> None:
    store = a_store(path)
    await store.start()
    await store.check()
    mark(path, SchemaVersion(NEWER, NEWER))

    with pytest.raises(StoreUnavailable) as refusal:
        await store.check()

    await store.stop()
    assert "of a newer release" in refusal.value.reason


@pytest.mark.parametrize("older", [11, 12])
async def test_an_older_file_is_not_upgraded_where_that_is_not_asked_for(
    path: Path, older: int
) -> None:
    if older == 11:
        to_version_11(path)
    else:
        mark(path, SchemaVersion(older, older))
    store = a_store(path)
    store.upgrades = False

    with pytest.raises(UpgradeNeeded) as refusal:
        await store.start()

    assert (refusal.value.found, refusal.value.own) == (older, SCHEMA_VERSION)
    assert version_of(path).number == older


async def test_a_new_file_is_made_even_where_no_upgrade_is_asked_for(tmp_path: Path) -> None:
    store = a_store(tmp_path / "new.db")
    store.upgrades = False

    await store.start()

    await store.check()
    await store.stop()


@pytest.mark.parametrize(
    ("version", "number"),
    [(SchemaVersion(12, 12), 12), (SchemaVersion(13, 12), 13 + (12 << 16))],
)
def test_the_oldest_usable_version_stands_above_the_version_unless_it_is_the_same(
    version: SchemaVersion, number: int
) -> None:
    assert packed(version) == number
    assert unpacked(number) == version


@pytest.mark.parametrize("number", [-1, -(2**31), 2**31 - 1])
def test_a_number_that_no_release_writes_is_of_no_usable_version(number: int) -> None:
    assert unpacked(number).problem_for(SCHEMA_VERSION)
