"""An office of endpoints over SQLite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fhirpub.storage.sqlite.store import SqliteStore
from tests.unit.webhooks.management.office import Office


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    """Endpoints over a real store, and a receiver whose answer is known."""
    store = SqliteStore(tmp_path / "fhirpub.db", deadline_seconds=10)
    await store.start()
    yield Office(store)
    await store.stop()
