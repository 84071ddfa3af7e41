"""Calls that arrive together are one command, and large ones delay no other."""

from __future__ import annotations

import asyncio

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import MAX_PAGE_BYTES, SMALL_BYTES
from fhirpub.storage.mongodb.store import MongoStore
from fhirpub.storage.store import Store
from fhirpub.testing.store_contract import (
    LAB,
    OTHER,
    a_blob,
    a_version,
    add_all,
    new_id,
    query,
    whole_blobs,
)
from tests.storage.mongodb.helpers import (
    COMMANDS,
    Admin,
    failing,
)


async def test_writes_that_arrive_together_are_one_command(store: Store) -> None:
    with COMMANDS.recorded() as sent:
        await add_all(store, [a_version() for _ in range(20)])

    (insert,) = sent
    assert len(insert["documents"]) == 20


async def test_reads_that_arrive_together_are_one_command(store: Store) -> None:
    versions = [a_version() for _ in range(20)]
    await add_all(store, versions)

    with COMMANDS.recorded() as sent:
        read = await asyncio.gather(*(store.latest(LAB, version.id) for version in versions))

    assert list(read) == versions
    assert len(sent) == 1


async def test_documents_that_arrive_together_are_one_command(store: Store) -> None:
    blobs = [a_blob() for _ in range(20)]

    with COMMANDS.recorded() as written:
        await asyncio.gather(
            *(store.add(LAB, a_version(documents=(blob.sha256,)), [blob]) for blob in blobs)
        )
    with COMMANDS.recorded() as sent:
        read = await asyncio.gather(*(whole_blobs(store, LAB, [blob.sha256]) for blob in blobs))

    assert [len(document["documents"]) for document in written] == [20, 20]
    assert list(read) == [{blob.sha256: blob} for blob in blobs]
    assert len(sent) == 1


async def test_few_pages_are_on_their_way_at_the_same_time(store: Store) -> None:
    for _ in range(2):
        await store.add(LAB, a_version(body=b"x" * (MAX_PAGE_BYTES // 2 - 5000)))

    with COMMANDS.recorded():
        pages = await asyncio.gather(*(store.search(LAB, query(limit=2)) for _ in range(16)))

    assert [len(page.versions) for page in pages] == [2] * 16
    assert COMMANDS.most_unanswered <= 6


async def test_few_large_versions_are_on_their_way_at_the_same_time(store: Store) -> None:
    versions = [a_version(body=b"x" * SMALL_BYTES) for _ in range(16)]
    await add_all(store, versions)

    with COMMANDS.recorded() as sent:
        read = await asyncio.gather(*(store.latest(LAB, version.id) for version in versions))

    assert list(read) == versions
    assert len(sent) == 1 + 16
    assert COMMANDS.most_unanswered <= 6


@pytest.mark.parametrize("name", ["latest", "latest_public", "version"])
async def test_a_large_version_delays_no_read_of_a_small_one(store: Store, name: str) -> None:
    large, small = a_version(body=b"x" * SMALL_BYTES), a_version(body=b"x" * (SMALL_BYTES // 2))
    await add_all(store, [large, small])
    read = getattr(store, name)
    more = (1,) if name == "version" else ()

    with COMMANDS.recorded() as sent:
        found = await asyncio.gather(*(read(LAB, version.id, *more) for version in (large, small)))

    assert [item.body for item in found] == [large.body, small.body]
    assert len(sent) == 2  # first both together, then the large one


@pytest.mark.parametrize("name", ["latest", "latest_public", "version"])
@pytest.mark.parametrize("size", [1, SMALL_BYTES])
async def test_another_tenants_version_is_one_question_as_one_that_is_not_there(
    store: Store, name: str, size: int
) -> None:
    theirs = a_version(body=b"x" * size)
    await add_all(store, [theirs], OTHER)
    read = getattr(store, name)
    more = (1,) if name == "version" else ()

    with COMMANDS.recorded() as sent:
        answers = [await read(LAB, item, *more) for item in (theirs.id, new_id())]

    assert answers == [None, None]
    assert len(sent) == 2


async def test_a_large_document_delays_no_read_of_a_small_one(store: Store) -> None:
    large, small = a_blob(bytes(64 * 1024 + 1)), a_blob(bytes(64 * 1024))
    for blob in (large, small):
        await store.add(LAB, a_version(documents=(blob.sha256,)), [blob])

    with COMMANDS.recorded() as sent:
        read = await asyncio.gather(
            store.blobs(LAB, [large.sha256]), store.blobs(LAB, [small.sha256])
        )

    assert [blob.data for one in read for blob in one.values()] == [None, small.data]
    assert len(sent) == 1


async def test_a_check_fails_while_no_majority_takes_a_write(
    tried: MongoStore, admin: Admin
) -> None:
    lagging = failing(admin, "update", writeConcernError={"code": 64, "errmsg": "secret words"})
    with lagging, pytest.raises(StoreUnavailable) as refused:
        await tried.check()

    await tried.check()

    assert refused.value.reason == "WriteConcernError 64"
