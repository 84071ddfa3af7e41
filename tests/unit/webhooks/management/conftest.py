"""An office of endpoints over SQLite."""

from __future__ import annotations

import pytest

from fhirpub.storage.sqlite.store import SqliteStore
from tests.unit.webhooks.management.office import Office


@pytest.fixture
def office(store: SqliteStore) -> Office:
    """Endpoints over a real store, and a receiver whose answer is known."""
    return Office(store)
