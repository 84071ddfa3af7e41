"""Documents that nothing refers to are deleted with their pieces, and no others."""

from __future__ import annotations

import os
from typing import Any

import pytest

from fhirpub.storage.contract import Blob
from fhirpub.storage.mongodb import schema
from fhirpub.storage.mongodb.removal import blob_sweep
from fhirpub.storage.mongodb.store import MongoStore
from fhirpub.testing.contracts.store.quotas import wait_for_stored_bytes
from fhirpub.testing.contracts.store.records import a_blob
from fhirpub.testing.samples import FOREVER, a_version, new_id

pytestmark = pytest.mark.asyncio(loop_scope="module")

LARGE = 600_000
"""The size of a document of three pieces."""


@pytest.fixture
def tenant() -> str:
    return new_id()


@pytest.fixture
def batches_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob_sweep, "_SWEEP_BATCH_SIZE", 3)


async def keep(store: MongoStore, tenant: str, *blobs: Blob) -> None:
    """Store documents that no version refers to."""
    assert await store.add(tenant, a_version(body=b""), blobs)


async def name(store: MongoStore, tenant: str, *blobs: Blob) -> None:
    """Store documents, and a version that refers to them."""
    version = a_version(documents=tuple(blob.sha256 for blob in blobs), body=b"")
    assert await store.add(tenant, version, blobs)


async def stored(store: MongoStore, collection: str, **wanted: Any) -> list[dict[str, Any]]:
    return await store._list(collection, wanted)


@pytest.mark.usefixtures("batches_of_three")
async def test_all_batches_are_swept_also_behind_those_that_are_referred_to(
    shared: MongoStore, tenant: str
) -> None:
    loose, named = [a_blob() for _ in range(8)], [a_blob() for _ in range(7)]
    await name(shared, tenant, *named[:4])
    await keep(shared, tenant, *loose)
    await name(shared, tenant, *named[4:])

    assert await shared.sweep_blobs(tenant, before=FOREVER) == 8

    names = [blob.sha256 for blob in (*loose, *named)]
    assert {*await shared.blobs(tenant, names)} == {blob.sha256 for blob in named}
    assert await stored(shared, schema.BLOB, tenant=tenant, loose=True) == []
    assert await shared.sweep_blobs(tenant, before=FOREVER) == 0


@pytest.mark.parametrize(("later", "swept"), [(0, 0), (1, 1)])
async def test_what_was_added_at_that_time_stays(
    shared: MongoStore, tenant: str, later: int, swept: int
) -> None:
    await keep(shared, tenant, a_blob())
    (found,) = await stored(shared, schema.BLOB, tenant=tenant)

    assert await shared.sweep_blobs(tenant, before=found["added"] + later) == swept


async def test_a_document_goes_with_its_pieces_and_counts_once(
    shared: MongoStore, tenant: str
) -> None:
    gone, kept = a_blob(os.urandom(LARGE)), a_blob(os.urandom(LARGE + 1))
    await keep(shared, tenant, gone)
    await name(shared, tenant, kept)

    assert await shared.sweep_blobs(tenant, before=FOREVER) == 1

    assert {one["blob"] for one in await stored(shared, schema.PIECE, tenant=tenant)} == {
        f"{tenant}/{kept.sha256}"
    }
    (found,) = (await shared.blobs(tenant, [gone.sha256, kept.sha256])).values()
    assert await shared.whole_blob(tenant, found) == kept


@pytest.mark.usefixtures("batches_of_three")
async def test_pieces_of_what_is_referred_to_are_looked_at_once(
    shared: MongoStore, tenant: str
) -> None:
    await name(shared, tenant, *(a_blob(os.urandom(LARGE)) for _ in range(3)))
    assert len(await stored(shared, schema.PIECE, tenant=tenant, loose=True)) == 9

    await shared.sweep_blobs(tenant, before=FOREVER)

    assert await stored(shared, schema.PIECE, tenant=tenant, loose=True) == []
    assert len(await stored(shared, schema.PIECE, tenant=tenant)) == 9


async def test_pieces_of_a_document_that_never_came_are_deleted(
    shared: MongoStore, tenant: str
) -> None:
    await keep(shared, tenant, a_blob(os.urandom(LARGE)))
    await shared._collection(schema.BLOB).delete_many({"tenant": tenant})

    assert await shared.sweep_blobs(tenant, before=FOREVER) == 0

    assert await stored(shared, schema.PIECE, tenant=tenant) == []


async def test_what_is_swept_no_longer_counts_for_its_tenant(
    shared: MongoStore, tenant: str
) -> None:
    await keep(shared, tenant, a_blob(os.urandom(300)), a_blob(os.urandom(LARGE)))
    await name(shared, tenant, a_blob(os.urandom(50)))
    empty = 2 * a_version(body=b"").size
    await wait_for_stored_bytes(shared, tenant, empty + 350 + LARGE)

    await shared.sweep_blobs(tenant, before=FOREVER)

    await wait_for_stored_bytes(shared, tenant, empty + 50)


async def test_documents_of_another_tenant_stay_and_its_versions_do_not_count(
    shared: MongoStore, tenant: str
) -> None:
    other, common, theirs = new_id(), a_blob(), a_blob()
    await keep(shared, tenant, common)
    await name(shared, other, common)
    await keep(shared, other, theirs)

    assert await shared.sweep_blobs(tenant, before=FOREVER) == 1

    names = [common.sha256, theirs.sha256]
    assert await shared.blobs(tenant, names) == {}
    assert {*await shared.blobs(other, names)} == {*names}
