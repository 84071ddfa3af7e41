"""Versions with many search values of one tenant leave batches for all other versions."""

from __future__ import annotations

import asyncio

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.criteria import encode
from fhirpub.storage.mongodb.store import MongoStore
from fhirpub.storage.store import Store
from fhirpub.testing.store_contract import LAB, OTHER, a_version
from tests.storage.mongodb.helpers import COMMANDS, Admin, failing, start_behind_faults

DENSE = encode([("code", str(number), "") for number in range(1_000)])


async def test_dense_versions_of_one_tenant_are_sent_one_at_a_time(store: Store) -> None:
    with COMMANDS.recorded() as sent:
        added = await asyncio.gather(*(store.add(LAB, a_version(search=DENSE)) for _ in range(4)))

    assert added == [True] * 4
    assert [len(insert["documents"]) for insert in sent] == [1] * 4


async def test_a_version_waits_for_no_dense_ones_of_two_tenants(url: str, admin: Admin) -> None:
    store = await start_behind_faults(f"{url}&appName=tried", deadline_seconds=30, production=True)
    with failing(admin, "insert", times=2, blockConnection=True, blockTimeMS=5_000):
        dense = []
        for tenant in (LAB, LAB, "third", "third"):
            dense.append(asyncio.create_task(store.add(tenant, a_version(search=DENSE))))
            await asyncio.sleep(0.1)

        assert await store.add(OTHER, a_version())
        assert not any(task.done() for task in dense)
        assert await asyncio.gather(*dense) == [True] * 4
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
