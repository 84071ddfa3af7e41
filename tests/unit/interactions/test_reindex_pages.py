"""A page of versions may have more members than a store lets wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from fhirpub.interactions import reindex
from fhirpub.interactions.reindex import reindex_if_needed
from fhirpub.storage.batching import Bounds
from fhirpub.storage.sqlite import database
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.samples import a_version
from tests.unit.interactions.erasure.registered import TENANT, context_of


async def test_members_of_a_page_that_are_more_than_may_wait_are_all_indexed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reindex, "_SIDE_BY_SIDE", 20)
    monkeypatch.setattr(database, "_BATCH_BOUNDS", Bounds(size=10_000, waiting=20))
    store = SqliteStore(tmp_path / "store.db", deadline_seconds=30)
    await store.start()
    await store.put_tenant(TENANT)
    body = b'{"resourceType":"Observation","status":"final"}'
    members = tuple(a_result(body=body) for _ in range(50))
    await store.add(TENANT.id, a_version(members=members, body=b"{}", parts=b"{}"))

    await reindex_if_needed(store, context_of(store).searched)

    found = [await store.latest(TENANT.id, member.id) for member in members]
    await store.stop()
    assert {one and b'"final"' in one.search for one in found} == {True}


def test_fewer_values_are_replaced_together_than_a_store_lets_wait() -> None:
    assert Bounds().waiting >= reindex._SIDE_BY_SIDE * 2
