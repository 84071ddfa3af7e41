"""A SQLite store, for the tests that need no other; those of MongoDB have one of their own."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from fhirpub.storage.sqlite.store import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "fhirpub.db"


@pytest.fixture
async def store(path: Path) -> AsyncGenerator[SqliteStore]:
    store = SqliteStore(path, deadline_seconds=60)
    await store.start()
    yield store
    await store.stop()
