"""No tenant's write waits behind the queue of another tenant's costly writes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from fhirpub.storage.criteria import encode
from fhirpub.storage.sqlite.database import Database
from fhirpub.storage.sqlite.rows import Addition
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.contracts.webhooks.records import a_delivery
from fhirpub.testing.store_contract import LAB, OTHER, a_blob, a_version

DENSE = encode([("code", str(number), "") for number in range(1_000)])


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SqliteStore]:
    store = SqliteStore(tmp_path / "fhirpub.db", deadline_seconds=30)
    await store.start()
    yield store
    await store.stop()


def database_of(store: SqliteStore) -> Database:
    assert store._file is not None
    return store._file


async def test_a_write_of_an_idle_tenant_waits_for_the_batch_in_progress_only(
    store: SqliteStore,
) -> None:
    may_end = threading.Event()
    in_progress = asyncio.ensure_future(database_of(store).write(lambda _: may_end.wait(30)))
    await asyncio.sleep(0.1)
    costly = [asyncio.create_task(store.add(LAB, a_version(search=DENSE))) for _ in range(8)]
    await asyncio.sleep(0)
    small = asyncio.create_task(store.add(OTHER, a_version()))
    await asyncio.sleep(0)

    may_end.set()
    await small
    done = sum(task.done() for task in costly)

    assert await asyncio.gather(in_progress, *costly) == [True] * 9
    assert done <= 1


async def test_versions_of_one_resource_are_added_in_the_order_of_their_calls(
    store: SqliteStore,
) -> None:
    first = a_version(search=DENSE, body=b"first")
    later = a_version(id=first.id, body=b"later")

    added = await asyncio.gather(store.add(LAB, first), store.add(LAB, later))

    assert list(added) == [True, False]


@pytest.mark.parametrize(
    ("costly", "cheap"),
    [
        (Addition(LAB, a_version(search=DENSE), (), now=1), Addition(LAB, a_version(), (), now=1)),
        (
            Addition(LAB, a_version(), [a_blob(b"%d" % n) for n in range(1_000)], now=1),
            Addition(LAB, a_version(), [a_blob(b"0")], now=1),
        ),
        (
            Addition(LAB, a_version(documents=("0" * 64,) * 1_000), (), now=1),
            Addition(LAB, a_version(documents=("0" * 64,)), (), now=1),
        ),
        (
            Addition(LAB, a_version(body=bytes(1_500_000)), (), now=1),
            Addition(LAB, a_version(), (), now=1),
        ),
        (
            Addition(LAB, a_version(), [a_blob(bytes(1_000_000))], now=1),
            Addition(LAB, a_version(), [a_blob(b"0")], now=1),
        ),
        (
            Addition(LAB, a_version(members=(a_version(search=DENSE),)), (), now=1),
            Addition(LAB, a_version(), (), now=1),
        ),
        (
            Addition(LAB, a_version(members=(a_version(),) * 20), (), now=1),
            Addition(LAB, a_version(), (), now=1),
        ),
    ],
    ids=[
        "search values",
        "documents",
        "names of documents",
        "body",
        "bytes of a document",
        "search values of a member",
        "number of members",
    ],
)
def test_what_a_version_brings_counts_as_cost(costly: Addition, cheap: Addition) -> None:
    assert costly.cost > 10 * cheap.cost


async def test_a_write_waits_for_few_of_the_deliveries_that_are_queued_together(
    store: SqliteStore,
) -> None:
    may_end = threading.Event()
    in_progress = asyncio.ensure_future(database_of(store).write(lambda _: may_end.wait(30)))
    await asyncio.sleep(0.1)
    endpoints = [[a_delivery(f"e{e}", n) for n in range(1, 101)] for e in range(40)]
    queued = [asyncio.create_task(store.append(deliveries)) for deliveries in endpoints]
    await asyncio.sleep(0)
    version = asyncio.create_task(store.add(LAB, a_version()))
    await asyncio.sleep(0)

    may_end.set()
    await version
    done = sum(task.done() for task in queued)

    assert await asyncio.gather(in_progress, *queued) == [True, *[100] * 40]
    assert done <= 10


async def test_the_writer_keeps_the_pages_of_a_costly_version_in_memory(
    store: SqliteStore,
) -> None:
    pages = 2_000 * 4_096  # as many as search values are allowed

    size: int = await database_of(store).write(
        lambda connection: connection.execute("PRAGMA cache_size").fetchone()[0]
    )

    assert -size * 1024 > pages
