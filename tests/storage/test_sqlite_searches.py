"""The work that searches of the SQLite store cost, and the threads in which they run."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from fhirpub.errors import SearchTooCostly, StoreUnavailable, Throttled
from fhirpub.storage.contract import SearchQuery
from fhirpub.storage.criteria import Criterion, TokenMatch
from fhirpub.storage.sqlite.search.pages import FIRST_COUNT, best_source, find_page
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.webhook_contract import DeliveryQuery
from fhirpub.testing.store_contract import (
    LAB,
    OTHER,
    a_version,
    add_all,
    found_by,
    has,
    query,
    token,
    wanting,
)
from tests.storage.test_sqlite import when_possible
from tests.waiting import wait_until

FINAL, CODE = has("status", token("final")), has("code", token("a"))
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
async def hasty(path: Path) -> AsyncGenerator[SqliteStore]:
    """A store with a short deadline."""
    hasty = SqliteStore(path, deadline_seconds=0.5)
    await hasty.start()
    yield hasty
    await hasty.stop()


@pytest.fixture
def impatient(store: SqliteStore) -> SqliteStore:
    """A store that waits for a thread for a short time, and for what it does for a long one."""
    assert store._file is not None
    store._file._readers._most = 0.2
    return store


def count_steps(path: Path, wanted: SearchQuery) -> int:
    """Return the number of steps that a search takes, to a hundred for each statement."""
    calls: list[None] = []
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.set_progress_handler(lambda: calls.append(None), 100)
        find_page(connection, LAB, wanted)
    return len(calls) * 100


class Gate:
    """Reads that begin, and end when the test opens the gate."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._open = threading.Event()

    def work(self, name: str) -> Callable[[sqlite3.Connection], str]:
        def wait(_connection: sqlite3.Connection) -> str:
            self.begun.append(name)
            assert self._open.wait(60)
            return name

        return wait

    def open(self) -> None:
        self._open.set()


async def hold(store: SqliteStore, gate: Gate, tenants: Sequence[str]) -> list[asyncio.Task[str]]:
    """Begin a read for each of the tenants, which waits at the gate."""
    assert store._file is not None
    reads = [
        asyncio.create_task(store._file.read_for(tenant, gate.work(tenant))) for tenant in tenants
    ]
    assert await asyncio.to_thread(wait_until, lambda: len(gate.begun) == len(tenants))
    return reads


# Their cost


async def test_the_order_of_criteria_decides_nothing(path: Path, store: SqliteStore) -> None:
    final = ("status", "final", "")
    many = [found_by(("code", "b", ""), final) for _ in range(2 * FIRST_COUNT)]
    await add_all(store, [*many, *(found_by(("code", "a", ""), final) for _ in range(1_200))])
    one, other = wanting(FINAL, CODE), wanting(CODE, FINAL)

    with contextlib.closing(sqlite3.connect(path)) as connection:
        for wanted in (one, other):
            source, candidates = best_source(connection, LAB, wanted)

            assert source is not None
            assert (source.parameters["sought"], candidates) == ("a", 1_200)
    assert count_steps(path, one) == pytest.approx(count_steps(path, other), rel=0.05)
    assert (await store.search(LAB, one)).total == 1_200


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("system", [None, "s"])
async def test_a_long_list_costs_little_more_than_a_short_one(
    path: Path, store: SqliteStore, system: str | None, *, negated: bool
) -> None:
    await add_all(store, [found_by(("code", f"c{n % 500}", "s"), value="v") for n in range(1_500)])

    def listing(first: int, last: int) -> Criterion:
        codes = [TokenMatch(system, f"c{number}") for number in range(first, last)]
        return Criterion("code", tuple(codes), negated)

    short, long = (
        wanting(listing(490, last), count_up_to=None, limit=1) for last in (499, 20_000)
    )

    assert (await store.search(LAB, short)).total == (1_473 if negated else 27)
    assert (await store.search(LAB, long)).total == (1_470 if negated else 30)
    # Comparing each value with each code would take thousands of times as many.
    assert count_steps(path, long) < 5 * count_steps(path, short) + 1_500_000


async def test_a_search_that_is_too_costly_is_so_whatever_else_the_machine_does(
    store: SqliteStore,
) -> None:
    assert store._file is not None

    def endless(connection: sqlite3.Connection) -> object:
        return connection.execute(ENDLESS).fetchall()

    def spin() -> None:
        while not ended.is_set():
            pass

    ended = threading.Event()
    busy = threading.Thread(target=spin)
    busy.start()
    try:
        for _ in range(3):
            with pytest.raises(SearchTooCostly):
                await store._file.read_for(LAB, endless, max_seconds=0.05)
    finally:
        ended.set()
        busy.join()
    assert (await store.search(LAB, query())).total == 0


async def test_other_reads_beyond_the_deadline_are_a_matter_of_the_store(
    hasty: SqliteStore,
) -> None:
    assert hasty._file is not None

    with pytest.raises(StoreUnavailable):
        await hasty._file.read_for(LAB, lambda each: each.execute(ENDLESS).fetchall())
    assert await when_possible(lambda: hasty.history(LAB, "none")) == []


# The threads in which they run


async def test_a_tenant_uses_at_most_half_of_the_threads(store: SqliteStore) -> None:
    gate, version = Gate(), a_version()
    await store.add(OTHER, version)
    reads = await hold(store, gate, [LAB, LAB])
    waiting = asyncio.create_task(store.search(LAB, query()))

    assert (await store.search(OTHER, query())).versions == (version,)
    assert await store.history(OTHER, version.id) == [version]
    assert not waiting.done()

    gate.open()
    assert await asyncio.gather(*reads) == [LAB, LAB]
    assert (await waiting).total == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda store, tenant: store.endpoints(tenant),
        lambda store, tenant: store.deliveries(tenant, DeliveryQuery(endpoint="e")),
        lambda store, tenant: store.count_deliveries(tenant, "e"),
    ],
    ids=["endpoints", "deliveries", "their number"],
)
async def test_lists_of_webhooks_wait_for_the_reads_of_their_own_tenant(
    store: SqliteStore, call: Callable[[SqliteStore, str], Awaitable[object]]
) -> None:
    gate = Gate()
    reads = await hold(store, gate, [LAB, LAB])
    waiting = asyncio.ensure_future(call(store, LAB))

    for _ in range(3):
        await call(store, OTHER)
    assert not waiting.done()

    gate.open()
    await asyncio.gather(*reads, waiting)


async def test_what_the_service_itself_reads_waits_for_no_tenant(store: SqliteStore) -> None:
    gate = Gate()
    reads = await hold(store, gate, [LAB, LAB, OTHER, OTHER])

    assert await store.tenants() == []
    assert await store.count() == 0

    gate.open()
    await asyncio.gather(*reads)


async def test_a_tenant_that_waits_for_its_own_reads_is_throttled(
    impatient: SqliteStore,
) -> None:
    gate = Gate()
    reads = await hold(impatient, gate, [LAB, LAB])

    with pytest.raises(Throttled):
        await impatient.search(LAB, query())

    gate.open()
    await asyncio.gather(*reads)
    assert (await impatient.search(LAB, query())).total == 0


async def test_a_tenant_that_waits_for_others_finds_the_store_unavailable(
    impatient: SqliteStore,
) -> None:
    gate = Gate()
    reads = await hold(impatient, gate, ["a", "a", "b", "b"])

    with pytest.raises(StoreUnavailable):
        await impatient.search(LAB, query())

    gate.open()
    await asyncio.gather(*reads)


async def test_a_store_that_stops_finishes_its_reads(path: Path) -> None:
    store, gate = SqliteStore(path, deadline_seconds=10), Gate()
    await store.start()
    reads = await hold(store, gate, [LAB, LAB])
    reads.append(asyncio.create_task(store.search(LAB, query())))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    stopping = asyncio.create_task(store.stop())
    await asyncio.sleep(0.05)

    assert not stopping.done()
    gate.open()
    await stopping

    assert [read.done() and read.exception() for read in reads] == [None] * 3
