"""Versions with documents in pieces, and what a stop waits for."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import SMALL_BYTES
from fhirpub.storage.mongodb import schema
from fhirpub.storage.mongodb.documents import encode_addition
from fhirpub.testing.contracts.store.records import a_blob
from fhirpub.testing.samples import LAB, OTHER, a_version
from tests.unit.storage.mongodb.slow_database import (
    NEVER,
    Database,
    adding,
    large,
    reach,
)


@pytest.fixture
def database() -> Database:
    return Database()


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


async def test_documents_are_written_while_versions_of_others_are_on_their_way(
    database: Database,
) -> None:
    opened = database.opened()
    database.versions.gate.clear()
    added = [adding(opened, a_version(), large()) for _ in range(2)]
    await reach(lambda: sum(len(batch) for batch in database.versions.batches), 2)
    written = len(database.pieces.batches)

    added.append(adding(opened, a_version(), large()))
    await reach(lambda: len(database.pieces.batches), written + written // 2)

    database.versions.gate.set()
    assert await asyncio.gather(*added) == [True] * 3


async def test_a_version_whose_pieces_are_written_is_not_a_long_one(database: Database) -> None:
    opened = database.opened()
    await opened._long.take(LAB)

    assert await opened.add(LAB, a_version(), [large()], now=1)


async def test_a_version_whose_pieces_are_refused_is_not_added(database: Database) -> None:
    opened = database.opened()
    database.pieces.failures = [NEVER]

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
    database.pieces.failures = [NEVER]
    added = adding(opened, a_version(), large())
    await reach(lambda: len(database.pieces.batches), 1)
    added.cancel()
    await asyncio.wait([added])

    database.pieces.gate.set()
    await opened.drain()
    del added
    gc.collect()

    assert problems == []


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
    async with asyncio.timeout(30):
        await database.opened().drain()


async def test_a_stop_ends_although_a_document_was_refused(database: Database) -> None:
    opened = database.opened()
    database.pieces.gate.clear()
    database.pieces.failures = [NEVER]
    added = adding(opened, a_version(), large())
    await reach(lambda: len(database.pieces.batches), 1)
    stopped = asyncio.create_task(opened.drain())

    database.pieces.gate.set()

    await stopped
    with pytest.raises(StoreUnavailable):
        await added
