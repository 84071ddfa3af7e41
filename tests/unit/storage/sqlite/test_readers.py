"""The connections that read, and their threads."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from fhirpub.errors import SearchTooCostly
from fhirpub.storage.contract import MAX_SEARCH_SHARE
from fhirpub.storage.sqlite.readers import Readers
from fhirpub.storage.sqlite.work_budget import WorkBudget
from tests.unit.storage.sqlite.probe import many
from tests.waiting import until


class Connections:
    """Makes connections, and counts them."""

    def __init__(self) -> None:
        self.made: list[sqlite3.Connection] = []

    def __call__(self) -> sqlite3.Connection:
        self.made.append(sqlite3.connect(":memory:", check_same_thread=False))
        return self.made[-1]


@pytest.fixture
def connections() -> Connections:
    return Connections()


@asynccontextmanager
async def reading(connections: Connections, seconds: float) -> AsyncGenerator[Readers]:
    """Open readers with a deadline, until the block ends."""
    readers = Readers(connections, deadline_seconds=seconds)
    yield readers
    await readers.drain()
    readers.close()


@pytest.fixture
async def readers(connections: Connections) -> AsyncGenerator[Readers]:
    async with reading(connections, 20) as readers:
        yield readers


@pytest.fixture
async def hasty(connections: Connections) -> AsyncGenerator[Readers]:
    """Those whose deadline ends soon."""
    async with reading(connections, 0.05) as readers:
        yield readers


def thread(_connection: sqlite3.Connection) -> str:
    """Return the name of the thread."""
    return threading.current_thread().name.rpartition("_")[0]


async def test_each_thread_has_a_connection(readers: Readers, connections: Connections) -> None:
    assert len(connections.made) == 8


async def test_the_connection_that_was_used_last_is_used_next(
    readers: Readers, connections: Connections
) -> None:
    used = [await readers.read(lambda connection: connection) for _ in range(3)]

    assert used == [connections.made[-1]] * 3


async def test_reads_of_tenants_have_threads_of_their_own(readers: Readers) -> None:
    assert await readers.read(thread) == "sqlite-reader"
    assert await readers.read_for("t", thread) == "sqlite-tenant"


async def test_a_read_that_fails_gives_its_connection_back(
    readers: Readers, connections: Connections
) -> None:
    for _ in range(9):
        with pytest.raises(sqlite3.OperationalError):
            await readers.read(lambda connection: connection.execute("SELECT nothing"))

    assert await readers.read(lambda connection: connection.execute("SELECT 1").fetchone()) == (1,)
    assert len(readers._idle) == 8


async def test_a_search_beyond_its_time_is_too_costly(readers: Readers) -> None:
    with pytest.raises(SearchTooCostly):
        await readers.read_for("t", many, max_seconds=0.001)


async def test_a_search_on_another_loop_beyond_its_time_is_too_costly(readers: Readers) -> None:
    with pytest.raises(SearchTooCostly) as failed:
        await readers.read(many, max_seconds=0.001)

    assert failed.value.__cause__ is None


async def test_what_was_too_costly_ends_no_later_read(readers: Readers) -> None:
    for _ in range(9):  # one more than there are connections
        with pytest.raises(SearchTooCostly):
            await readers.read(many, max_seconds=0.001)

    assert await readers.read(lambda connection: connection.execute("SELECT 1").fetchone()) == (1,)


@pytest.mark.parametrize("tenant", [None, "t"])
async def test_a_search_of_many_steps_that_is_within_its_time_is_completed(
    readers: Readers, tenant: str | None
) -> None:
    def some(connection: sqlite3.Connection) -> object:
        rows = (
            "WITH n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 9000) SELECT * FROM n"
        )
        return len(connection.execute(rows).fetchall())

    if tenant is None:
        assert await readers.read(some, max_seconds=20) == 9_000
    else:
        assert await readers.read_for(tenant, some, max_seconds=20) == 9_000


async def test_a_search_that_fails_within_its_time_fails_as_it_is(readers: Readers) -> None:
    with pytest.raises(sqlite3.OperationalError):
        await readers.read(lambda connection: connection.execute("SELECT n"), max_seconds=5)


@pytest.mark.parametrize("tenant", [None, "t"])
async def test_a_read_ends_with_the_deadline_and_frees_its_thread(
    hasty: Readers, tenant: str | None
) -> None:
    with pytest.raises(TimeoutError):
        await (hasty.read(many) if tenant is None else hasty.read_for(tenant, many))

    await hasty.drain()
    hasty._threads.shutdown()
    assert len(hasty._idle) == 8


async def test_a_thread_that_ends_a_read_at_the_deadline_names_it(readers: Readers) -> None:
    with pytest.raises(TimeoutError) as ended:  # also if the event loop is late
        readers._read(many, WorkBudget(time.monotonic()))

    assert ended.value.__cause__ is None
    assert len(readers._idle) == 8


@pytest.mark.parametrize(("asked", "given"), [(1.0, 1.0), (100.0, 20 * MAX_SEARCH_SHARE)])
async def test_a_search_has_the_time_that_is_asked_for_up_to_its_share(
    readers: Readers, asked: float, given: float
) -> None:
    assert readers._limit(asked)._max_seconds == given


async def test_other_reads_have_the_deadline_alone(readers: Readers) -> None:
    assert readers._limit(None)._max_seconds is None


async def test_a_read_for_a_tenant_waits_for_a_thread_as_long_as_a_search_may_last(
    readers: Readers, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float | None] = []

    async def run(_owner: str, _work: object, *, max_wait_seconds: float | None) -> None:
        waits.append(max_wait_seconds)

    monkeypatch.setattr(readers._threads_for_tenants, "run", run)

    await readers.read_for("t", thread)

    assert waits == [20 * MAX_SEARCH_SHARE]


async def test_to_drain_is_to_wait_for_the_reads_of_tenants(readers: Readers) -> None:
    may_end = threading.Event()
    reading = asyncio.ensure_future(readers.read_for("t", lambda _connection: may_end.wait(20)))
    draining = asyncio.ensure_future(readers.drain())
    for _ in range(3):
        await asyncio.sleep(0)
    assert not draining.done()

    may_end.set()

    await draining
    assert await reading is True


async def test_a_tenant_reads_in_two_threads_at_a_time_and_leaves_two_for_others(
    readers: Readers,
) -> None:
    may_end, begun = threading.Event(), list[str]()

    def work(_connection: sqlite3.Connection, *, tenant: str) -> bool:
        begun.append(tenant)
        return may_end.wait(60)

    def read(tenant: str) -> asyncio.Future[bool]:
        return asyncio.ensure_future(readers.read_for(tenant, partial(work, tenant=tenant)))

    reading = [read(tenant) for tenant in ("a", "a", "a", "b", "c", "d")]
    try:
        await until(lambda: len(begun) == 4)
        assert sorted(begun) == ["a", "a", "b", "c"]
    finally:
        may_end.set()
    await asyncio.gather(*reading)

    assert sorted(begun) == ["a", "a", "a", "b", "c", "d"]


async def test_after_the_end_there_are_no_threads_for_either_kind(
    connections: Connections,
) -> None:
    readers = Readers(connections, deadline_seconds=20)
    await readers.drain()
    readers.close()

    for read in (readers.read(thread), readers.read_for("t", thread)):
        with pytest.raises(RuntimeError):
            await read
