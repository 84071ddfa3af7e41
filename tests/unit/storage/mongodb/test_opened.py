"""Which versions wait for a turn before they are added, and what a stop waits for."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from pymongo.errors import OperationFailure

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import SMALL_BYTES, Blob, Version
from fhirpub.storage.criteria import encode
from fhirpub.storage.mongodb import schema
from fhirpub.storage.mongodb.documents import encode_addition
from fhirpub.storage.mongodb.opened import Opened
from fhirpub.storage.mongodb.server_checks import _STANDALONE
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.contracts.store.records import a_blob
from fhirpub.testing.samples import LAB, OTHER, a_version

_NEVER = OperationFailure("a value", 91, {"errorLabels": ["NoWritesPerformed"]})
_PATIENCE = 30


class Collection:
    """A collection whose inserts wait until a test lets them go."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []
        self.counted: list[Any] = []
        self.failures: list[Exception] = []
        self.gate = asyncio.Event()
        self.gate.set()

    def with_options(self, **_options: object) -> Collection:
        return self

    async def insert_many(self, documents: Sequence[Any], **_options: object) -> None:
        self.batches.append([*documents])
        await self.gate.wait()
        if self.failures:
            raise self.failures.pop(0)

    async def bulk_write(self, writes: Sequence[Any], **_options: object) -> None:
        self.counted += writes


class Database:
    """The collections of a database, which keep nothing."""

    def __init__(self) -> None:
        self.client = SimpleNamespace(delegate=None)
        self._collections: dict[str, Collection] = {}

    def __getitem__(self, name: str) -> Collection:
        return self._collections.setdefault(name, Collection())

    @property
    def versions(self) -> Collection:
        return self[schema.VERSION]

    @property
    def pieces(self) -> Collection:
        return self[schema.PIECE]

    def opened(self, seconds: float = 120) -> Opened:
        return Opened(self, _STANDALONE, seconds)  # type: ignore[arg-type]


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


def large() -> Blob:
    """Return a document that is stored in pieces."""
    return a_blob(bytes(5 * 1024 * 1024))


def adding(
    opened: Opened, version: Version, *blobs: Blob, tenant: str = LAB
) -> asyncio.Task[bool]:
    return asyncio.create_task(opened.add(tenant, version, blobs, now=1))


async def reach(found: Callable[[], object], wanted: object) -> None:
    """Wait until something is as it should be, and see that it stays so."""
    async with asyncio.timeout(_PATIENCE):
        while found() != wanted:
            await asyncio.sleep(0.001)
    for _ in range(20):
        await asyncio.sleep(0)
    assert found() == wanted


# Versions that take the server long


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


async def test_who_gets_no_turn_in_time_is_unavailable_and_takes_none(database: Database) -> None:
    opened = database.opened(seconds=0.05)
    await opened._long.take(LAB)
    with pytest.raises(StoreUnavailable) as failed:
        await opened.add(LAB, dense(), (), now=1)
    assert failed.value.reason == "too many calls are waiting"
    assert database.versions.batches == []

    opened._long.release(LAB)

    await opened._long.take(LAB, seconds=0)
    assert await database.opened().add(LAB, a_version(), (), now=1)


async def test_a_version_that_could_not_be_added_gives_its_turn_back(database: Database) -> None:
    opened = database.opened()
    database.versions.failures = [_NEVER]
    with pytest.raises(StoreUnavailable):
        await opened.add(LAB, dense(), (), now=1)

    assert await opened.add(LAB, dense(), (), now=1)


# Documents in pieces


async def test_the_pieces_of_a_document_are_there_before_what_names_it(
    database: Database,
) -> None:
    opened, blob = database.opened(), large()
    version = a_version(documents=(blob.sha256,))
    database.pieces.gate.clear()
    added = adding(opened, version, blob)
    await reach(lambda: len(database.pieces.batches), 1)
    assert database.versions.batches == database[schema.BLOB].batches == []

    database.pieces.gate.set()

    assert await added
    written = [piece for batch in database.pieces.batches for piece in batch]
    assert written == [*encode_addition(LAB, version, [blob], now=1).pieces]
    assert [len(batch) for batch in database[schema.BLOB].batches] == [1]
    assert [len(batch) for batch in database.versions.batches] == [1]


async def test_two_documents_of_a_tenant_are_written_at_a_time_and_four_in_all(
    database: Database,
) -> None:
    opened = database.opened()
    database.pieces.gate.clear()
    added = [
        adding(opened, a_version(), large(), tenant=tenant)
        for tenant in (LAB, LAB, LAB, OTHER, OTHER, "third")
    ]
    await reach(
        lambda: [batch[0]["tenant"] for batch in database.pieces.batches],
        [LAB, LAB, OTHER, OTHER],
    )

    database.pieces.gate.set()

    assert await asyncio.gather(*added) == [True] * 6


async def test_a_version_whose_pieces_are_written_is_not_a_long_one(database: Database) -> None:
    opened = database.opened()
    await opened._long.take(LAB)

    assert await opened.add(LAB, a_version(), [large()], now=1)


async def test_a_version_whose_pieces_are_refused_is_not_added(database: Database) -> None:
    opened = database.opened()
    database.pieces.failures = [_NEVER]

    with pytest.raises(StoreUnavailable):
        await opened.add(LAB, a_version(), [large()], now=1)

    assert database.versions.batches == []
    assert await opened.add(LAB, a_version(), [large()], now=1)


async def test_a_document_of_the_size_of_small_ones_takes_no_turn(database: Database) -> None:
    opened = database.opened()
    for _ in range(2):
        await opened._large.take(LAB)

    assert await opened.add(LAB, a_version(), [a_blob(bytes(SMALL_BYTES))], now=1)
    assert database.pieces.batches == []


async def test_a_version_is_added_although_its_caller_goes_away(database: Database) -> None:
    opened = database.opened()
    database.pieces.gate.clear()
    added = adding(opened, a_version(), large())
    await reach(lambda: len(database.pieces.batches), 1)

    added.cancel()
    await asyncio.wait([added])
    database.pieces.gate.set()

    await reach(lambda: len(database.versions.batches), 1)


async def test_a_refusal_whose_caller_has_gone_away_is_no_error_of_the_loop(
    database: Database,
) -> None:
    opened, problems = database.opened(), list[Any]()
    asyncio.get_running_loop().set_exception_handler(lambda _loop, it: problems.append(it))
    database.pieces.gate.clear()
    database.pieces.failures = [_NEVER]
    added = adding(opened, a_version(), large())
    await reach(lambda: len(database.pieces.batches), 1)
    added.cancel()
    await asyncio.wait([added])

    database.pieces.gate.set()
    await opened.drain()
    del added
    gc.collect()

    assert problems == []


# The end


async def test_a_stop_waits_for_pieces_then_for_versions_and_then_for_what_they_count(
    database: Database,
) -> None:
    opened, version = database.opened(), a_version()
    for collection in (database.pieces, database.versions):
        collection.gate.clear()
    added = adding(opened, version, large())
    await reach(lambda: len(database.pieces.batches), 1)
    stopped = asyncio.create_task(opened.drain())

    database.pieces.gate.set()
    await reach(lambda: len(database.versions.batches), 1)
    assert not stopped.done()
    database.versions.gate.set()

    await stopped
    assert await added
    assert len(database[schema.STORED_BYTES].counted) == 1


async def test_a_stop_without_writes_is_at_once(database: Database) -> None:
    async with asyncio.timeout(_PATIENCE):
        await database.opened().drain()


async def test_a_stop_ends_although_a_document_was_refused(database: Database) -> None:
    opened = database.opened()
    database.pieces.gate.clear()
    database.pieces.failures = [_NEVER]
    added = adding(opened, a_version(), large())
    await reach(lambda: len(database.pieces.batches), 1)
    stopped = asyncio.create_task(opened.drain())

    database.pieces.gate.set()

    await stopped
    with pytest.raises(StoreUnavailable):
        await added
