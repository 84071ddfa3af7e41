"""An outcome that the driver does not know is resolved, or reported as unavailable."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import pymongo
import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.mongodb import schema
from fhirpub.storage.mongodb.store import MongoStore
from fhirpub.tenant import Tenant
from fhirpub.testing.store_contract import (
    LAB,
    a_blob,
    a_key,
    a_version,
    find_ids,
    new_id,
    query,
    whole_blobs,
)
from tests.mongodb_proxy import Fault, Proxy
from tests.storage.mongodb.helpers import (
    COMMANDS,
    Admin,
    Database,
    failing,
    start_behind_faults,
    store_of,
)

BEFORE: list[dict[str, Any]] = [
    {"closeConnection": True},
    {"errorCode": 10107},  # NotWritablePrimary
    {"errorCode": 189},  # PrimarySteppedDown
    {"errorCode": 91},  # ShutdownInProgress
    {"errorCode": 11600},  # InterruptedAtShutdown
    {"errorCode": 50},  # MaxTimeMSExpired
    {"errorCode": 8000},  # a hosted service's answer to anything
    {"blockConnection": True, "blockTimeMS": 2_800},
]
AFTER: list[dict[str, Any]] = [
    {"writeConcernError": {"code": code, "errmsg": "secret words", **labels}}
    for code in (64, 91, 100, 189)
    for labels in ({}, {"errorLabels": ["RetryableWriteError"]})
]


@pytest.mark.parametrize("how", [*BEFORE, *AFTER], ids=str)
async def test_what_is_unknown_for_a_while_is_found_out(
    tried: MongoStore, database: Database, admin: Admin, how: dict[str, Any]
) -> None:
    existing, free = a_version(), a_version()
    await tried.add(LAB, existing)

    with failing(admin, "insert", times=1, **how):
        added = await asyncio.gather(
            tried.add(LAB, free), tried.add(LAB, replace(existing, body=b"other"))
        )

    assert list(added) == [True, False]
    assert await tried.latest(LAB, existing.id) == existing
    assert await tried.latest(LAB, free.id) == free
    assert database[schema.VERSION].count_documents({}) == 2


# Each takes as long as the deadline; which errors are of this kind, the test above tries.
@pytest.mark.parametrize("how", [BEFORE[0], BEFORE[1], BEFORE[-1]], ids=str)
async def test_what_stays_unknown_is_unavailable_in_time_and_may_be_repeated(
    tried: MongoStore, admin: Admin, how: dict[str, Any]
) -> None:
    version = a_version(value="a secret value")
    begun = time.monotonic()

    with failing(admin, "insert", "find", **how):
        with pytest.raises(StoreUnavailable) as refused:
            await tried.add(LAB, version)
        waited = time.monotonic() - begun

    assert waited < 20
    assert "secret" not in refused.value.reason
    await tried.add(LAB, version)
    assert await tried.latest(LAB, version.id) == version


@pytest.mark.parametrize("how", AFTER, ids=str)
async def test_what_is_never_acknowledged_is_success_only_if_a_read_confirms_it(
    tried: MongoStore, admin: Admin, how: dict[str, Any]
) -> None:
    version = a_version()

    with failing(admin, "insert", **how), COMMANDS.recorded() as sent:
        assert await tried.add(LAB, version)

    # A write that a majority has will stay; the linearizable read is for one that it does not have
    # yet.
    levels = [
        document["readConcern"]["level"] for document in sent if document["command"] == "find"
    ]
    assert levels in (["majority"], ["majority", "linearizable"])


async def test_a_new_primary_is_asked_for_one_proof_even_if_a_reader_gives_up(
    tried: MongoStore, admin: Admin
) -> None:
    version = a_version()
    await tried.add(LAB, version)
    tried._primary._trusted = None

    with (
        failing(admin, "find", blockConnection=True, blockTimeMS=300),
        COMMANDS.recorded() as sent,
    ):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(tried.history(LAB, version.id), 0.1)
        assert await tried.history(LAB, version.id) == [version]

    levels = [
        document["readConcern"]["level"] for document in sent if document["command"] == "find"
    ]
    assert levels == ["linearizable", "majority"]


async def test_a_proof_that_fails_is_reported_and_the_next_read_asks_again(
    tried: MongoStore, admin: Admin
) -> None:
    tried._primary._trusted = None

    with failing(admin, "find", times=1, errorCode=8000), pytest.raises(StoreUnavailable):
        await tried.tenants()

    assert await tried.tenants() == []


async def test_a_write_that_no_member_will_take_is_unavailable_at_once(
    url: str, admin: Admin
) -> None:
    store = store_of(f"{url}&appName=tried", seconds=20)
    await store.start()
    begun = time.monotonic()

    # The outcome is unknown, too: a client that asks again and again would do so for 20 seconds.
    certain = failing(admin, "insert", "find", errorCode=8000, errorLabels=["NoWritesPerformed"])
    with certain, pytest.raises(StoreUnavailable):
        await store.add(LAB, a_version())

    waited = time.monotonic() - begun
    await store.stop()
    assert waited < 10


async def test_documents_are_written_again_until_they_are_kept(
    tried: MongoStore, database: Database, admin: Admin
) -> None:
    blob = a_blob()
    version = a_version(documents=(blob.sha256,))
    of_blobs = f"{database.name}.{schema.BLOB}"

    with failing(admin, "insert", "update", times=2, errorCode=8000, namespace=of_blobs):
        assert await tried.add(LAB, version, [blob])

    assert await whole_blobs(tried, LAB, [blob.sha256]) == {blob.sha256: blob}


async def test_without_its_documents_no_version_is_added_and_others_are(
    tried: MongoStore, database: Database, admin: Admin
) -> None:
    blob = a_blob()
    version = a_version(documents=(blob.sha256,))
    of_blobs = f"{database.name}.{schema.BLOB}"

    with failing(admin, "insert", "update", errorCode=8000, namespace=of_blobs):
        results = await asyncio.gather(
            tried.add(LAB, version, [blob]), tried.add(LAB, a_version()), return_exceptions=True
        )

    assert isinstance(results[0], StoreUnavailable)
    assert results[1] is True
    assert await tried.latest(LAB, version.id) is None


async def test_a_write_whose_answer_was_lost_is_found_to_be_ours(
    far: MongoStore, proxy: Proxy
) -> None:
    versions = [a_version() for _ in range(10)]
    proxy.inject(Fault.CUT_REPLY, "insert", times=1)

    added = await asyncio.gather(*(far.add(LAB, version) for version in versions))

    assert proxy.hits == 1
    assert all(added)
    assert await find_ids(far, query()) == {version.id for version in versions}


async def test_a_lost_answer_makes_no_write_ours_that_was_anothers(
    far: MongoStore, proxy: Proxy
) -> None:
    version = a_version()
    await far.add(LAB, version)
    proxy.inject(Fault.CUT_REPLY, "insert", times=1)

    assert await far.add(LAB, replace(version, body=b"other")) is False
    assert proxy.hits == 1


async def test_a_write_that_arrives_twice_because_it_was_late_is_ours(
    far: MongoStore, proxy: Proxy
) -> None:
    version = a_version()
    proxy.inject(Fault.STALL, "insert")
    adding = asyncio.create_task(far.add(LAB, version))
    async with asyncio.timeout(20):
        while proxy.hits < 2:  # the first try has been given up
            await asyncio.sleep(0.01)

    proxy.heal()

    assert await adding is True
    assert await far.history(LAB, version.id) == [version]


async def test_a_first_try_that_arrives_after_the_second_changes_nothing(
    far: MongoStore, proxy: Proxy
) -> None:
    version = a_version()
    proxy.inject(Fault.STALL, "insert", times=1)

    added = await far.add(LAB, version)
    proxy.heal()
    await far.add(LAB, a_version())

    assert added is True
    assert await far.history(LAB, version.id) == [version]


async def test_a_write_for_which_there_is_no_server_has_not_happened(
    far: MongoStore, proxy: Proxy
) -> None:
    version = a_version()
    proxy.inject(Fault.REFUSE)
    with pytest.raises(StoreUnavailable):  # so the driver knows that the server is gone
        await far.latest(LAB, version.id)

    with pytest.raises(StoreUnavailable) as refused:
        await far.add(LAB, version)
    proxy.heal()

    assert refused.value.reason == "no server that could be written to was found in time"
    assert await far.latest(LAB, version.id) is None


async def test_a_write_for_which_there_is_no_connection_has_not_happened(proxy: Proxy) -> None:
    url = f"mongodb://{proxy.address}/t{new_id()}?maxPoolSize=1"
    store = await start_behind_faults(url, deadline_seconds=3, production=False)
    version = a_version()
    proxy.inject(Fault.STALL, "ping")
    with pymongo.timeout(60):
        holding = asyncio.ensure_future(store._client.admin.command("ping"))
    while not proxy.hits:
        await asyncio.sleep(0.01)

    begun = time.monotonic()
    with pytest.raises(StoreUnavailable) as refused:
        await store.add(LAB, version)
    tried = time.monotonic() - begun
    proxy.heal()
    await holding

    # The write was tried until the deadline, which the driver or the loop notices first.
    assert tried > 2.5
    assert refused.value.reason in ("deadline exceeded", "WaitQueueTimeoutError")
    assert await store.latest(LAB, version.id) is None
    await store.stop()


async def test_a_server_that_falls_silent_is_unavailable_in_time(
    far: MongoStore, proxy: Proxy
) -> None:
    proxy.inject(Fault.STALL)
    begun = time.monotonic()

    ended = await asyncio.gather(
        far.add(LAB, a_version()),
        far.latest(LAB, new_id()),
        far.version(LAB, new_id(), 1),
        far.history(LAB, new_id()),
        far.search(LAB, query()),
        far.blobs(LAB, [new_id()]),
        far.sweep_blobs(LAB, before=1),
        far.tenants(),
        far.put_tenant(Tenant.new("t", created=1)),
        far.put_signing_key(a_key("a")),
        far.check(),
        return_exceptions=True,
    )

    assert time.monotonic() - begun < 20
    assert all(isinstance(item, StoreUnavailable) for item in ended)
    proxy.heal()
    assert await far.add(LAB, a_version())
