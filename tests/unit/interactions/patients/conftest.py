"""A ward whose people are known by two systems of identifiers."""

from __future__ import annotations

import pytest

from fhirpub.storage.sqlite.store import SqliteStore
from tests.unit.interactions.patients.people import SYSTEMS, Ward


@pytest.fixture
def ward(store: SqliteStore) -> Ward:
    return Ward(store, *SYSTEMS)


@pytest.fixture
def plain(store: SqliteStore) -> Ward:
    """A ward whose patients belong to one resource each."""
    return Ward(store)
