"""A process that sends, and one attempt of it, over SQLite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fhirpub.storage.sqlite.store import SqliteStore
from tests.unit.webhooks.dispatch.attempting import Desk, Recorded
from tests.unit.webhooks.dispatch.dispatching import Process


@pytest.fixture
def process(store: SqliteStore) -> Process:
    """A process whose rounds a test makes one by one."""
    return Process(store)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """An endpoint with one delivery, and what attempts to send it."""
    store = Recorded(tmp_path / "fhirpub.db")
    await store.start()
    made = Desk(store)
    await made.add()
    yield made
    await store.stop()
