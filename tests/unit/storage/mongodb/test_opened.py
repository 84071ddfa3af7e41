"""Which versions wait for a turn before they are added."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import Version
from fhirpub.storage.criteria import encode
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.samples import LAB, OTHER, a_version
from tests.unit.storage.mongodb.slow_database import NEVER, Database, adding, reach


@pytest.fixture
def database() -> Database:
    return Database()


def dense(count: int = 501) -> Version:
    return a_version(search=encode([("code", str(number), "") for number in range(count)]))


def by_its_members() -> Version:
    """Return a version that has many values together with its members."""
    values = encode([("code", str(number), "") for number in range(50)])
    return a_version(members=tuple(a_result(search=values) for _ in range(11)))


def heavy() -> Version:
    return a_version(body=bytes(4 * 1024 * 1024 + 1))


@pytest.mark.parametrize(
    "long", [dense, by_its_members, heavy], ids=["values", "of members", "bytes"]
)
async def test_long_versions_of_one_tenant_are_added_one_after_another(
    database: Database, long: Callable[[], Version]
) -> None:
    opened = database.opened()
    database.versions.gate.clear()
    added = [adding(opened, long()) for _ in range(3)]
    await reach(lambda: [len(batch) for batch in database.versions.batches], [1])

    database.versions.gate.set()

    assert await asyncio.gather(*added) == [True] * 3
    assert [len(batch) for batch in database.versions.batches] == [1, 1, 1]


@pytest.mark.parametrize(
    "short",
    [lambda: dense(500), lambda: a_version(body=bytes(4 * 1024 * 1024 - 10_000))],
    ids=["values", "bytes"],
)
async def test_versions_that_are_not_long_do_not_wait_for_each_other(
    database: Database, short: Callable[[], Version]
) -> None:
    opened = database.opened()
    database.versions.gate.clear()
    added = [adding(opened, short()) for _ in range(3)]
    await reach(lambda: len(database.versions.batches), 3)

    database.versions.gate.set()

    assert await asyncio.gather(*added) == [True] * 3


async def test_a_version_waits_for_no_long_ones_of_three_tenants(database: Database) -> None:
    opened = database.opened()
    database.versions.gate.clear()
    long = [adding(opened, dense(), tenant=tenant) for tenant in (LAB, OTHER, "third")]
    await reach(lambda: len(database.versions.batches), 2)

    short = adding(opened, a_version())
    await reach(lambda: len(database.versions.batches), 3)

    database.versions.gate.set()
    assert await asyncio.gather(*long, short) == [True] * 4


async def test_a_tenant_that_adds_one_waits_for_no_other_that_adds_many(
    database: Database,
) -> None:
    opened = database.opened()
    database.versions.gate.clear()
    many = [adding(opened, a_version()) for _ in range(3 * 128)]
    await reach(lambda: [len(batch) for batch in database.versions.batches], [128] * 3)
    many += [adding(opened, a_version()) for _ in range(200)]
    await asyncio.sleep(0)
    one = adding(opened, a_version(), tenant=OTHER)
    await asyncio.sleep(0)

    database.versions.gate.set()
    assert await asyncio.gather(*many, one) == [True] * 585

    tenants = [{each["tenant"] for each in batch} for batch in database.versions.batches]
    assert [OTHER in some for some in tenants] == [False] * 3 + [True, False]


@pytest.mark.parametrize("holders", [[LAB], [OTHER, "third"]], ids=["own", "of others"])
async def test_who_gets_no_turn_in_time_is_unavailable_and_takes_none(
    database: Database, holders: list[str]
) -> None:
    opened = database.opened(seconds=0.05)
    for holder in holders:
        await opened._long.take(holder)
    with pytest.raises(StoreUnavailable) as failed:
        await opened.add(LAB, dense(), (), now=1)
    assert failed.value.reason == "too many calls are waiting"
    assert database.versions.batches == []

    opened._long.release(holders[0])

    await opened._long.take(LAB, seconds=0)


async def test_a_version_that_could_not_be_added_gives_its_turn_back(database: Database) -> None:
    opened = database.opened()
    database.versions.failures = [NEVER]
    with pytest.raises(StoreUnavailable):
        await opened.add(LAB, dense(), (), now=1)

    assert await opened.add(LAB, dense(), (), now=1)
