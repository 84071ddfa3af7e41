from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fhirpub.storage.sqlite.store import SqliteStore
from tests.unit.app.laboratory import Lab, Trail
from tests.unit.interactions.erasure.registered import OTHER_TENANT, TENANT


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    made = SqliteStore(tmp_path / "store.db", deadline_seconds=10)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def lab(store: SqliteStore) -> Lab:
    for tenant in (TENANT, OTHER_TENANT):
        await store.put_tenant(tenant)
    return Lab(store, Trail())
