from __future__ import annotations

import pytest

from fhirpub.storage.sqlite.store import SqliteStore
from tests.unit.app.laboratory import Lab, Trail
from tests.unit.interactions.erasure.registered import OTHER_TENANT, TENANT


@pytest.fixture
async def lab(store: SqliteStore) -> Lab:
    for tenant in (TENANT, OTHER_TENANT):
        await store.put_tenant(tenant)
    return Lab(store, Trail())
