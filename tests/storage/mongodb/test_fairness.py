"""Versions that are large or have many search values, of one tenant, delay no other tenant's."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import Blob, Version
from fhirpub.storage.criteria import encode
from fhirpub.storage.mongodb import schema
from fhirpub.storage.mongodb.store import MongoStore
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.store.records import a_blob
from fhirpub.testing.store_contract import LAB, OTHER, Reopen, a_version
from tests.storage.mongodb.helpers import (
    COMMANDS,
    Admin,
    Database,
    failing,
    start_behind_faults,
)

DENSE = encode([("code", str(number), "") for number in range(1_000)])


def dense() -> Version:
    """Return a version with many search values."""
    return a_version(search=DENSE)


def heavy() -> Version:
    """Return a version of many megabytes."""
    return a_version(body=b'{"text": "%b"}' % os.urandom(2_500_000).hex().encode())


async def test_dense_versions_of_one_tenant_are_sent_one_at_a_time(store: Store) -> None:
    with COMMANDS.recorded() as sent:
        added = await asyncio.gather(*(store.add(LAB, a_version(search=DENSE)) for _ in range(4)))

    assert added == [True] * 4
    assert [len(insert["documents"]) for insert in sent] == [1] * 4


@pytest.mark.parametrize("long", [dense, heavy])
async def test_a_version_waits_for_no_long_ones_of_two_tenants(
    url: str, admin: Admin, long: Callable[[], Version]
) -> None:
    store = await start_behind_faults(f"{url}&appName=tried", deadline_seconds=30, production=True)
    with failing(admin, "insert", times=2, blockConnection=True, blockTimeMS=3_000):
        adding = []
        for tenant in (LAB, LAB, "third", "third"):
            adding.append(asyncio.create_task(store.add(tenant, long())))
            await asyncio.sleep(0.1)

        assert await store.add(OTHER, a_version())
        assert not any(task.done() for task in adding)
        assert await asyncio.gather(*adding) == [True] * 4
    await store.stop()


async def test_a_small_version_waits_for_none_of_a_megabyte_that_came_with_it(
    url: str, admin: Admin, database: Database
) -> None:
    store = await start_behind_faults(f"{url}&appName=tried", deadline_seconds=30, production=True)
    blobs = [a_blob(os.urandom(60_000)) for _ in range(20)]
    large = a_version(documents=tuple(blob.sha256 for blob in blobs))
    namespace = f"{database.name}.{schema.BLOB}"
    with failing(
        admin, "insert", namespace=namespace, times=1, blockConnection=True, blockTimeMS=2_000
    ):
        adding = asyncio.create_task(store.add(LAB, large, blobs))
        small = asyncio.create_task(store.add(OTHER, a_version()))

        assert await small
        assert not adding.done()
        assert await adding
    await store.stop()


async def test_a_dense_version_that_gets_no_turn_in_time_is_unavailable(
    tried: MongoStore, admin: Admin
) -> None:
    with failing(admin, "insert", blockConnection=True, blockTimeMS=3_000):
        refused = await asyncio.gather(
            *(tried.add(LAB, a_version(search=DENSE)) for _ in range(3)), return_exceptions=True
        )

    assert isinstance(refused[2], StoreUnavailable)
    assert refused[2].reason == "too many calls are waiting"


async def test_a_store_that_stops_adds_the_dense_versions_that_wait(store: Store) -> None:
    versions = [a_version(search=DENSE) for _ in range(4)]
    adding = [asyncio.create_task(store.add(LAB, version)) for version in versions]
    await asyncio.sleep(0)

    await store.stop()

    assert await asyncio.gather(*adding) == [True] * 4


def large() -> Blob:
    """Return a document that is stored in pieces."""
    return a_blob(os.urandom(3_000_000))


async def test_a_small_version_waits_for_no_large_document_of_another_tenant(
    url: str, admin: Admin, database: Database
) -> None:
    store = await start_behind_faults(f"{url}&appName=tried", deadline_seconds=30, production=True)
    pieces = f"{database.name}.{schema.PIECE}"
    with failing(
        admin, "insert", namespace=pieces, times=8, blockConnection=True, blockTimeMS=1_000
    ):
        blobs = [large() for _ in range(4)]
        adding = [
            asyncio.create_task(store.add(LAB, a_version(documents=(blob.sha256,)), [blob]))
            for blob in blobs
        ]
        small = asyncio.create_task(store.add(OTHER, a_version()))

        assert await small
        assert not any(task.done() for task in adding)
        assert await asyncio.gather(*adding) == [True] * 4
    await store.stop()


async def test_the_pieces_of_a_document_are_sent_a_megabyte_at_a_time(store: Store) -> None:
    blob = large()
    with COMMANDS.recorded() as sent:
        assert await store.add(LAB, a_version(documents=(blob.sha256,)), [blob])

    pieces = [len(one["documents"]) for one in sent if one["insert"] == schema.PIECE]
    assert pieces == [4, 4, 4]
    assert [one["insert"] for one in sent][3:] == [schema.BLOB, schema.VERSION]


async def test_a_store_that_stops_adds_a_version_whose_pieces_are_being_written(
    store: Store, reopen: Reopen
) -> None:
    blob = large()
    version = a_version(documents=(blob.sha256,))
    adding = asyncio.create_task(store.add(LAB, version, [blob]))
    await asyncio.sleep(0.01)

    await store.stop()

    assert await adding
    assert await (await reopen()).latest(LAB, version.id) == version


async def test_a_version_is_added_although_its_caller_goes_away(store: Store) -> None:
    blob = large()
    version = a_version(documents=(blob.sha256,))
    adding = asyncio.create_task(store.add(LAB, version, [blob]))
    await asyncio.sleep(0.01)

    adding.cancel()

    async with asyncio.timeout(30):
        while await store.latest(LAB, version.id) is None:
            await asyncio.sleep(0.05)
