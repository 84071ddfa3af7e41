"""A file of the engine, as its own functions see it."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from fhirpub.storage.sqlite.database import Database
from fhirpub.storage.sqlite.files import make_tables
from fhirpub.storage.sqlite.schema import make_addition


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        make_tables(connection)
        make_addition(connection)
        yield connection


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that writes, to a file without versions."""
    with _opened(tmp_path / "fhirpub.db") as connection:
        yield connection


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A connection to a file for all tests of a module."""
    with _opened(tmp_path_factory.mktemp("store") / "fhirpub.db") as connection:
        yield connection


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file in a folder, neither of which exists."""
    return tmp_path / "folder" / "fhirpub.db"


@pytest.fixture
async def database(path: Path) -> AsyncGenerator[Database]:
    """The file at ``path``, open."""
    database = Database(path, 10)
    yield database
    await database.close()
