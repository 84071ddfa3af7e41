"""A store of SQLite, and what histories are read with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fhirpub.interactions.context import Context
from fhirpub.storage.sqlite.store import SqliteStore
from tests.unit.interactions.histories import context_of


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "fhirpub.db", deadline_seconds=10)
    await store.start()
    yield store
    await store.stop()


@pytest.fixture
def context(store: SqliteStore) -> Context:
    return context_of(store)
