"""A store of SQLite, its wards, and what histories are read with."""

from __future__ import annotations

import pytest

from fhirpub.interactions.context import Context
from fhirpub.storage.sqlite.store import SqliteStore
from tests.unit.interactions.histories import context_of
from tests.unit.interactions.patients.people import SYSTEMS, Ward


@pytest.fixture
def context(store: SqliteStore) -> Context:
    return context_of(store)


@pytest.fixture
def ward(store: SqliteStore) -> Ward:
    """A ward whose people are known by two systems of identifiers."""
    return Ward(store, *SYSTEMS)


@pytest.fixture
def plain(store: SqliteStore) -> Ward:
    """A ward whose patients belong to one resource each."""
    return Ward(store)
