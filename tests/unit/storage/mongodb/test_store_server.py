"""What a store keeps of itself in its database, and what becomes of it when it stops."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from fhirpub.encryption.cipher import SecretCipher
from fhirpub.errors import StoreUnavailable
from fhirpub.storage.mongodb import schema
from fhirpub.storage.mongodb.store import MongoStore, from_url
from fhirpub.storage.upgrades.versions import SchemaVersion
from fhirpub.testing.contracts.store.records import a_blob
from fhirpub.testing.samples import LAB, OTHER, a_version, new_id
from tests.storage.mongodb.helpers import Database

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOW = 1_700_000_000_000


@pytest_asyncio.fixture(loop_scope="module")
async def other(shared: MongoStore) -> AsyncIterator[MongoStore]:
    """Another store on the same database, with a clock and keys of its own."""
    other = from_url(
        shared._url,
        deadline_seconds=120,
        production=True,
        clock=lambda: NOW,
        cipher=SecretCipher([b"k" * 32]),
    )
    yield other
    await other.stop()
    await other._close()  # also one that was not started


async def test_a_store_that_is_not_started_is_unavailable(other: MongoStore) -> None:
    with pytest.raises(StoreUnavailable) as failed:
        await other.latest(LAB, new_id())

    assert failed.value.reason == "not started, or stopped"


async def test_a_store_that_stops_writes_what_it_has_counted_and_is_unavailable(
    shared: MongoStore, other: MongoStore
) -> None:
    tenant, version = new_id(), a_version()
    await other.start()
    opened = other._opened
    await other.start()  # it changes nothing
    assert other._opened is opened
    await other.add(tenant, version)

    await other.stop()

    assert await shared.stored_bytes([tenant]) == {tenant: version.size}
    with pytest.raises(StoreUnavailable):
        await other.latest(tenant, version.id)


async def test_a_store_for_another_loop_has_all_that_this_one_has(other: MongoStore) -> None:
    made = other.for_other_loop()

    assert isinstance(made, MongoStore)
    assert made is not other
    assert (made._url, made._deadline, made._production) == (other._url, 120, True)
    assert (made._clock, made.cipher) == (other._clock, other.cipher)
    assert made._database.name == other._database.name
    await made._close()


async def test_a_check_writes_the_time_and_finds_a_newer_release(
    shared: MongoStore, other: MongoStore
) -> None:
    await other.start()
    stored: Any = shared._database[schema.STORE]
    version = {"_id": schema.SCHEMA}

    await other.check()

    assert (await stored.find_one({"_id": schema.PROBE}))["moment"] == NOW
    await stored.update_one(version, {"$inc": {"version": 1}})
    try:
        with pytest.raises(StoreUnavailable) as failed:
            await other.check()
    finally:
        await stored.update_one(version, {"$inc": {"version": -1}})
    assert "of a newer release" in failed.value.reason


async def test_a_database_is_distinguished_from_all_others(
    shared: MongoStore, other: MongoStore, database: Database, url: str
) -> None:
    one = await shared.identity()

    assert await other.identity() == one
    assert len(one) == 32
    database.create_collection(schema.STORE)
    another = from_url(url, deadline_seconds=120, production=True)
    assert await another.identity() != one
    await another._close()


async def test_a_new_database_has_the_version_of_this_release(shared: MongoStore) -> None:
    expected = SchemaVersion(schema.SCHEMA_VERSION, schema.USABLE_FROM)

    assert await shared.schema_version() == expected


async def test_versions_of_all_tenants_are_counted(shared: MongoStore) -> None:
    before = await shared.count()
    await shared.add(LAB, a_version())
    await shared.add(OTHER, a_version())

    assert await shared.count() == before + 2


async def test_a_database_keeps_the_last_rules(shared: MongoStore) -> None:
    assert await shared.search_rules() == ""

    await shared.put_search_rules("one")
    await shared.put_search_rules("two")

    assert await shared.search_rules() == "two"


async def test_documents_are_added_at_the_time_of_the_clock(
    shared: MongoStore, other: MongoStore
) -> None:
    blob = a_blob()
    await other.start()

    await other.add(LAB, a_version(documents=(blob.sha256,)), [blob])

    (found,) = await shared._list(schema.BLOB, {"_id": f"{LAB}/{blob.sha256}"})
    assert found["added"] == NOW
