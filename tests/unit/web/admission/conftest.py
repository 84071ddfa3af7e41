"""A clock, and a store that notes what is asked of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from fhirpub.testing.clock import HandClock
from tests.unit.web.admission.sharing import NOW, WatchedStore


@pytest.fixture
def clock() -> HandClock:
    """A clock that stands ten seconds after a midnight."""
    return HandClock(NOW)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[WatchedStore]:
    """A store without counts."""
    store = WatchedStore(tmp_path / "x.db", deadline_seconds=10)
    await store.start()
    yield store
    await store.stop()
