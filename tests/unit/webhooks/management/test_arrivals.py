"""Requests that wait for the next event of an endpoint."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Mapping
from pathlib import Path

import pytest

from fhirpub.errors import StoreUnavailable, Throttled
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.webhook_contract import Endpoint
from fhirpub.testing.webhook_contract import a_delivery, an_endpoint
from fhirpub.webhooks.management import arrivals as module
from fhirpub.webhooks.management.arrivals import (
    MAX_WAITS_OF_CLIENT,
    MAX_WAITS_OF_TENANT,
    Arrivals,
)
from tests.waiting import until


class CountingStore(SqliteStore):
    """Counts how often it is asked, and can be out of order."""

    asked = 0
    broken = False

    async def last_sequences(self, endpoints: Collection[str]) -> Mapping[str, int]:
        self.asked += 1
        if self.broken:
            raise StoreUnavailable("for a test")
        return await super().last_sequences(endpoints)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[CountingStore]:
    store = CountingStore(tmp_path / "store.db", deadline_seconds=10)
    await store.start()
    yield store
    await store.stop()


@pytest.fixture
def arrivals(store: CountingStore) -> Arrivals:
    return Arrivals(store)


def waiting(
    arrivals: Arrivals,
    endpoint: Endpoint,
    *,
    after: int = 0,
    seconds: float = 20.0,
    client: str = "c",
) -> asyncio.Task[None]:
    wait = arrivals.wait(endpoint, client=client, after=after, seconds=seconds)
    return asyncio.create_task(wait)


async def test_a_wait_ends_when_an_event_is_queued(
    store: CountingStore, arrivals: Arrivals
) -> None:
    endpoint = an_endpoint()
    wait = waiting(arrivals, endpoint)
    await asyncio.sleep(0.3)
    assert not wait.done()

    await store.append([a_delivery(endpoint.id)])

    async with asyncio.timeout(10):
        await wait


async def test_all_that_wait_for_events_that_come_at_once_end(
    store: CountingStore, arrivals: Arrivals
) -> None:
    first, other = an_endpoint(), an_endpoint()
    waits = [waiting(arrivals, one, client=str(n)) for n, one in enumerate((first, first, other))]
    await asyncio.sleep(0)

    await store.append([a_delivery(first.id), a_delivery(other.id)])
    await until(lambda: any(wait.done() for wait in waits))
    looks = store.asked
    await asyncio.wait(waits)

    assert store.asked == looks


async def test_events_that_the_client_has_do_not_end_a_wait(
    store: CountingStore, arrivals: Arrivals
) -> None:
    endpoint = an_endpoint()
    await store.append([a_delivery(endpoint.id)])
    begun = time.monotonic()

    await arrivals.wait(endpoint, client="c", after=1, seconds=0.5)

    assert time.monotonic() - begun >= 0.5


async def test_an_event_of_another_endpoint_does_not_end_a_wait(
    store: CountingStore, arrivals: Arrivals
) -> None:
    wait = waiting(arrivals, an_endpoint())
    await store.append([a_delivery("another")])
    asked = store.asked
    await until(lambda: store.asked >= asked + 3)  # at least one look has ended

    assert not wait.done()
    arrivals.stop()
    await wait


async def test_many_waits_ask_the_store_as_often_as_one(
    store: CountingStore, arrivals: Arrivals
) -> None:
    begun = time.monotonic()
    waits = [waiting(arrivals, an_endpoint(), seconds=0.55, client=str(n)) for n in range(10)]
    await asyncio.gather(*waits)

    # A machine that rests for a while lengthens the waits.
    assert store.asked <= 2 + (time.monotonic() - begun) / module._LOOK_SECONDS


async def test_nothing_is_asked_while_nobody_waits(
    store: CountingStore, arrivals: Arrivals
) -> None:
    await arrivals.wait(an_endpoint(), client="c", after=0, seconds=0.2)
    await asyncio.sleep(0.15)
    asked = store.asked
    await asyncio.sleep(0.4)

    assert store.asked == asked


async def test_a_client_has_few_waits_at_a_time(arrivals: Arrivals) -> None:
    endpoint = an_endpoint()
    waits = [waiting(arrivals, endpoint) for _ in range(MAX_WAITS_OF_CLIENT)]
    await asyncio.sleep(0)

    with pytest.raises(Throttled):
        await arrivals.wait(endpoint, client="c", after=0, seconds=1)

    another = waiting(arrivals, endpoint, client="another")
    await asyncio.sleep(0)
    assert not another.done()
    arrivals.stop()
    await asyncio.gather(*waits, another)


async def test_a_tenant_has_few_waits_at_a_time(arrivals: Arrivals) -> None:
    endpoint = an_endpoint()
    waits = [waiting(arrivals, endpoint, client=str(n)) for n in range(MAX_WAITS_OF_TENANT)]
    await asyncio.sleep(0)

    with pytest.raises(Throttled):
        await arrivals.wait(endpoint, client="new", after=0, seconds=1)

    arrivals.stop()
    await asyncio.gather(*waits)


async def test_a_wait_that_has_ended_makes_room(arrivals: Arrivals) -> None:
    for _ in range(2):
        waits = [
            waiting(arrivals, an_endpoint(), seconds=0.01) for _ in range(MAX_WAITS_OF_CLIENT)
        ]
        await asyncio.gather(*waits)


async def test_a_stop_ends_all_waits_and_those_that_come_later(arrivals: Arrivals) -> None:
    waits = [waiting(arrivals, an_endpoint(), client=str(n)) for n in range(3)]
    await asyncio.sleep(0.01)

    arrivals.stop()

    async with asyncio.timeout(10):
        await asyncio.gather(*waits, waiting(arrivals, an_endpoint()))


async def test_waits_outlast_a_store_that_is_away(
    store: CountingStore, arrivals: Arrivals
) -> None:
    endpoint = an_endpoint()
    store.broken = True
    wait = waiting(arrivals, endpoint)
    await asyncio.sleep(0.25)
    await store.append([a_delivery(endpoint.id)])

    store.broken = False

    async with asyncio.timeout(10):
        await wait


async def test_no_more_requests_wait_than_the_limit_of_the_process(
    arrivals: Arrivals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_WAITS", 2)
    waits = [waiting(arrivals, an_endpoint(tenant=f"t{n}"), client=f"c{n}") for n in range(2)]
    await asyncio.sleep(0)

    with pytest.raises(Throttled):
        await arrivals.wait(an_endpoint(tenant="t2"), client="c2", after=0, seconds=20.0)

    arrivals.stop()
    await asyncio.gather(*waits)


async def test_clients_of_two_tenants_are_two_whatever_they_are_called(
    arrivals: Arrivals,
) -> None:
    waits = [waiting(arrivals, an_endpoint()) for _ in range(MAX_WAITS_OF_CLIENT)]
    await asyncio.sleep(0)

    of_another = waiting(arrivals, an_endpoint(tenant="another"))
    await asyncio.sleep(0)

    assert not of_another.done()
    arrivals.stop()
    await asyncio.gather(*waits, of_another)


async def test_who_waits_after_a_time_without_waits_hears_of_events_too(
    store: CountingStore, arrivals: Arrivals
) -> None:
    endpoint = an_endpoint()
    await arrivals.wait(endpoint, client="c", after=0, seconds=0.01)
    await until(lambda: arrivals._looking is None)

    wait = waiting(arrivals, endpoint)
    await store.append([a_delivery(endpoint.id)])

    async with asyncio.timeout(10):
        await wait


async def test_who_waits_after_a_look_that_failed_hears_of_events_and_so_do_the_others(
    store: CountingStore, arrivals: Arrivals, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint, failed = an_endpoint(), list[bool]()
    read = store.last_sequences

    async def fail_once(endpoints: Collection[str]) -> Mapping[str, int]:
        if not failed:
            failed.append(True)
            raise RuntimeError("a fault")
        return await read(endpoints)

    monkeypatch.setattr(store, "last_sequences", fail_once)
    first = waiting(arrivals, endpoint, seconds=30)
    await asyncio.sleep(0)
    look = arrivals._looking
    assert look is not None
    with pytest.raises(RuntimeError):
        await look

    await store.append([a_delivery(endpoint.id)])
    second = waiting(arrivals, endpoint, seconds=30)

    async with asyncio.timeout(20):
        await asyncio.gather(first, second)
