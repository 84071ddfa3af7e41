"""A store for chains of audit records."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.store import Store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Store]:
    store = SqliteStore(tmp_path / "fhirpub.db", deadline_seconds=10)
    await store.start()
    yield store
    await store.stop()
