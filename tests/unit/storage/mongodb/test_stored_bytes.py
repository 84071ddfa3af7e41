"""What a process counts before it writes, and what becomes of it if the write fails."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import cast

import pymongo
import pytest
from pymongo import UpdateOne
from pymongo.errors import AutoReconnect, BulkWriteError, OperationFailure, PyMongoError
from structlog.testing import capture_logs

from fhirpub.storage.mongodb import stored_bytes
from fhirpub.storage.mongodb.schema import Records
from fhirpub.storage.mongodb.stored_bytes import StoredBytes
from fhirpub.testing.samples import LAB, OTHER

DEADLINE = 60.0
NOT_EXECUTED = OperationFailure("", 91, {"errorLabels": ["NoWritesPerformed"]})


class Counters:
    """A collection that fails when a test wants it to, which no server does at a given write."""

    def __init__(self) -> None:
        self.writes: list[list[UpdateOne]] = []
        self.failures: list[PyMongoError] = []
        self.deadlines: list[float] = []
        self.orders: list[bool] = []
        self.free = asyncio.Event()
        self.free.set()
        self.begun = asyncio.Event()

    async def bulk_write(self, writes: Sequence[UpdateOne], *, ordered: bool = True) -> None:
        self.writes.append([*writes])
        self.orders.append(ordered)
        self.deadlines.append(pymongo._csot.get_deadline() - time.monotonic())
        self.begun.set()
        await self.free.wait()
        if self.failures:
            raise self.failures.pop(0)


@pytest.fixture
def counters() -> Counters:
    return Counters()


@pytest.fixture
def stored(counters: Counters) -> StoredBytes:
    return StoredBytes(cast("Records", counters), seconds=DEADLINE)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write after a millisecond."""
    monkeypatch.setattr(stored_bytes, "_FLUSH_SECONDS", 0.001)


def increment(tenant: str, size: int) -> UpdateOne:
    """Return the write that counts bytes of a tenant, also of one without a counter."""
    return UpdateOne({"_id": tenant}, {"$inc": {"added": size}}, upsert=True)


async def test_bytes_are_counted_at_once_and_written_together(
    stored: StoredBytes, counters: Counters
) -> None:
    stored.add(LAB, 5)
    stored.add(OTHER, 3)
    stored.add(LAB, -2)
    await asyncio.sleep(0)

    assert (stored.unwritten(LAB), stored.unwritten(OTHER)) == (3, 3)
    assert counters.writes == []
    await stored.drain()

    assert counters.writes == [[increment(LAB, 3), increment(OTHER, 3)]]
    assert (stored.unwritten(LAB), stored.unwritten(OTHER)) == (0, 0)


async def test_bytes_of_several_tenants_are_counted(stored: StoredBytes) -> None:
    stored.add_all([(LAB, 5), (OTHER, 3), (LAB, 1)])

    assert (stored.unwritten(LAB), stored.unwritten(OTHER)) == (6, 3)


async def test_one_tenant_that_is_refused_stops_no_other(
    stored: StoredBytes, counters: Counters
) -> None:
    counters.failures.append(BulkWriteError({"writeErrors": [{"index": 1}]}))
    stored.add_all([(LAB, 5), (OTHER, 3)])

    await stored.drain()

    assert counters.orders == [False]
    assert (stored.unwritten(LAB), stored.unwritten(OTHER)) == (0, 3)


async def test_bytes_that_are_added_while_others_are_refused_are_counted(
    stored: StoredBytes, counters: Counters
) -> None:
    counters.failures.append(BulkWriteError({"writeErrors": [{"index": 0}]}))
    counters.free.clear()
    stored.add(LAB, 5)
    draining = asyncio.create_task(stored.drain())
    await counters.begun.wait()

    stored.add_all([(LAB, 2), (OTHER, 3)])
    counters.free.set()
    await draining

    assert (stored.unwritten(LAB), stored.unwritten(OTHER)) == (7, 3)


async def test_bytes_on_their_way_are_still_counted(
    stored: StoredBytes, counters: Counters
) -> None:
    counters.free.clear()
    stored.add(LAB, 5)
    draining = asyncio.create_task(stored.drain())
    await counters.begun.wait()

    assert stored.unwritten(LAB) == 5
    stored.add(LAB, 2)
    assert stored.unwritten(LAB) == 7
    counters.free.set()
    await draining

    assert stored.unwritten(LAB) == 2


@pytest.mark.usefixtures("quick")
async def test_what_is_added_during_a_write_is_written_next(
    stored: StoredBytes, counters: Counters
) -> None:
    counters.free.clear()
    stored.add(LAB, 5)
    await counters.begun.wait()
    stored.add(LAB, 2)
    counters.begun.clear()
    counters.free.set()
    await counters.begun.wait()

    assert counters.writes == [[increment(LAB, 5)], [increment(LAB, 2)]]


@pytest.mark.usefixtures("quick")
async def test_what_is_added_after_a_write_is_written_too(
    stored: StoredBytes, counters: Counters
) -> None:
    stored.add(LAB, 5)
    await counters.begun.wait()
    await asyncio.sleep(0.01)
    counters.begun.clear()

    stored.add(LAB, 2)
    await counters.begun.wait()

    assert counters.writes == [[increment(LAB, 5)], [increment(LAB, 2)]]


@pytest.mark.usefixtures("quick")
async def test_what_was_certainly_not_written_is_written_again(
    stored: StoredBytes, counters: Counters
) -> None:
    counters.failures.append(NOT_EXECUTED)
    with capture_logs() as lines:
        stored.add(LAB, 5)
        await counters.begun.wait()
        counters.begun.clear()
        await counters.begun.wait()

    assert counters.writes == [[increment(LAB, 5)]] * 2
    assert lines == [
        {
            "event": "stored bytes not written",
            "log_level": "warning",
            "reason": "OperationFailure 91 NoWritesPerformed",
        }
    ]


async def test_what_may_have_been_written_is_not_counted_again(
    stored: StoredBytes, counters: Counters
) -> None:
    counters.failures.append(AutoReconnect())
    stored.add(LAB, 5)

    with capture_logs() as lines:
        await stored.drain()

    assert stored.unwritten(LAB) == 0
    assert [line["reason"] for line in lines] == ["AutoReconnect"]


async def test_a_stop_ends_with_one_try(stored: StoredBytes, counters: Counters) -> None:
    counters.failures.append(NOT_EXECUTED)
    stored.add(LAB, 5)

    await stored.drain()

    assert counters.writes == [[increment(LAB, 5)]]
    assert stored.unwritten(LAB) == 5


async def test_a_stop_without_anything_to_write_writes_nothing(
    stored: StoredBytes, counters: Counters
) -> None:
    await stored.drain()

    assert counters.writes == []


async def test_a_write_has_a_deadline_of_its_own_and_not_that_of_a_caller(
    stored: StoredBytes, counters: Counters
) -> None:
    def add() -> None:
        with pymongo.timeout(0.001):
            stored.add(LAB, 5)

    add()
    await stored.drain()

    (left,) = counters.deadlines
    assert DEADLINE - 5 < left <= DEADLINE
