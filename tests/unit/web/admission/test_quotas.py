"""Requests are admitted within quotas, also across processes that exchange their counts."""

from __future__ import annotations

import asyncio

import pytest

from fhirpub.config.quotas import QuotasConfig
from fhirpub.errors import QuotaExceeded, StorageQuotaExceeded, StoreUnavailable
from fhirpub.storage.quota_contract import QuotaOverride
from fhirpub.testing.clock import HandClock
from fhirpub.testing.store_contract import a_version
from fhirpub.web.admission import quota_exchange
from fhirpub.web.admission.quotas import Quotas
from tests.unit.web.admission.sharing import (
    ONE,
    OTHER,
    TENANT,
    THREE,
    TWO,
    Process,
    WatchedStore,
)
from tests.waiting import until


def test_without_a_limit_there_is_no_ticket(clock: HandClock) -> None:
    quotas = Quotas(QuotasConfig(), clock)

    assert not quotas.active
    assert quotas.ticket(ONE) is None


def test_an_override_for_one_tenant_leaves_the_others_alone(clock: HandClock) -> None:
    quotas = Quotas(QuotasConfig(), clock)
    quotas.set_overrides([QuotaOverride(OTHER.id, "tenant_requests_per_minute", 3)])

    assert quotas.active
    assert quotas.ticket(ONE) is None
    assert quotas.ticket(THREE) is not None


def test_an_override_without_a_limit_frees_one_client(
    clock: HandClock, store: WatchedStore
) -> None:
    process = Process(store, clock, client_requests_per_minute=2)
    assert process.admit(5, TWO) == 2

    process.quotas.set_overrides([QuotaOverride("client-2", "client_requests_per_minute", 0)])

    assert process.admit(5, TWO) == 5
    assert process.admit(5, ONE) == 2


def test_a_minute_ends_and_another_begins(clock: HandClock, store: WatchedStore) -> None:
    process = Process(store, clock, client_requests_per_minute=3)
    assert process.admit(5) == 3
    with pytest.raises(QuotaExceeded, match="client_requests_per_minute") as refused:
        process.ticket().enter()
    assert refused.value.retry_after == 50

    clock.forward(seconds=refused.value.retry_after - 1)
    assert process.admit(1) == 0
    clock.forward(seconds=1)

    assert process.admit(5) == 3


def test_a_request_that_one_quota_refuses_is_counted_by_none(
    clock: HandClock, store: WatchedStore
) -> None:
    process = Process(store, clock, client_requests_per_minute=5, tenant_requests_per_minute=7)

    assert [process.admit(10, ONE), process.admit(10, TWO), process.admit(10, ONE)] == [5, 2, 0]
    with pytest.raises(QuotaExceeded) as refused:
        process.ticket(TWO).enter()
    assert refused.value.quota == "tenant_requests_per_minute"
    assert process.admit(10, THREE) == 5


def test_requests_at_a_time_end_with_their_responses(
    clock: HandClock, store: WatchedStore
) -> None:
    process = Process(store, clock, client_requests_at_a_time=2)
    first, second, third = (process.ticket() for _ in range(3))
    first.enter()
    second.enter()
    with pytest.raises(QuotaExceeded, match="client_requests_at_a_time") as refused:
        third.enter()
    assert refused.value.retry_after == 1
    third.leave()

    first.leave()
    first.leave()
    third.enter()

    with pytest.raises(QuotaExceeded):
        process.ticket().enter()


def test_bytes_are_counted_as_they_arrive(clock: HandClock, store: WatchedStore) -> None:
    process = Process(store, clock, tenant_bytes_per_day=100)
    ticket = process.ticket()
    ticket.check_bytes(100)
    with pytest.raises(QuotaExceeded, match="tenant_bytes_per_day") as refused:
        ticket.check_bytes(101)
    assert refused.value.retry_after == 86_390
    ticket.receive(60)
    process.ticket(TWO).receive(40)

    with pytest.raises(QuotaExceeded):
        ticket.receive(1)
    with pytest.raises(QuotaExceeded):
        process.ticket(TWO).check_bytes(1)
    clock.forward(seconds=86_390)
    process.ticket(TWO).check_bytes(100)


def test_a_registration_that_does_not_happen_is_not_counted(
    clock: HandClock, store: WatchedStore
) -> None:
    process = Process(store, clock, client_registrations_per_day=2, tenant_stored_bytes=100)
    finish = process.ticket().reserve_registration(50)
    process.ticket().reserve_registration(50)
    with pytest.raises(QuotaExceeded, match="client_registrations_per_day"):
        process.ticket().reserve_registration(0)
    with pytest.raises(StorageQuotaExceeded, match="tenant_stored_bytes"):
        process.ticket(TWO).reserve_registration(1)

    finish(created=False)

    process.ticket().reserve_registration(30)
    with pytest.raises(StorageQuotaExceeded):
        process.ticket(TWO).check_stored(21)
    process.ticket(TWO).check_stored(20)


async def test_processes_share_a_minute_once_they_have_exchanged_their_counts(
    clock: HandClock, store: WatchedStore
) -> None:
    one, two = (Process(store, clock, client_requests_per_minute=10) for _ in range(2))
    assert one.admit(6) == 6
    two.ticket()
    await one.exchange.exchange()
    await two.exchange.exchange()

    assert two.admit(10) == 4
    await two.exchange.exchange()
    await one.exchange.exchange()
    assert one.admit(10) == 0

    clock.forward(seconds=50)
    assert one.admit(12) == 10


async def test_processes_share_requests_at_a_time(clock: HandClock, store: WatchedStore) -> None:
    one, two = (Process(store, clock, tenant_requests_at_a_time=3) for _ in range(2))
    tickets = [one.ticket() for _ in range(2)]
    for ticket in tickets:
        ticket.enter()
    two.ticket()
    await one.exchange.exchange()
    await two.exchange.exchange()
    two.ticket().enter()
    with pytest.raises(QuotaExceeded):
        two.ticket().enter()

    for ticket in tickets:
        ticket.leave()
    await one.exchange.exchange()
    await two.exchange.exchange()

    two.ticket().enter()
    two.ticket().enter()


async def test_requests_of_a_process_that_was_killed_are_soon_forgotten(
    clock: HandClock, store: WatchedStore
) -> None:
    one, two = (Process(store, clock, tenant_requests_at_a_time=2) for _ in range(2))
    for ticket in [one.ticket() for _ in range(2)]:
        ticket.enter()
    await one.exchange.exchange()
    two.ticket()
    await two.exchange.exchange()
    assert two.admit(1) == 0

    clock.forward(seconds=5)
    await two.exchange.exchange()

    assert two.admit(1) == 1


async def test_long_requests_stay_known_to_the_others(
    clock: HandClock, store: WatchedStore
) -> None:
    one, two = (Process(store, clock, tenant_requests_at_a_time=1) for _ in range(2))
    one.ticket().enter()
    for _second in range(20):
        await one.exchange.exchange()
        clock.forward(seconds=1)

    two.ticket()
    await two.exchange.exchange()

    assert two.admit(1) == 0


async def test_a_day_is_remembered_by_the_store_when_a_process_ends(
    clock: HandClock, store: WatchedStore
) -> None:
    before = Process(store, clock, tenant_registrations_per_day=5)
    for _ in range(4):
        before.ticket().reserve_registration(1)
    await before.exchange.finish()

    after = Process(store, clock, tenant_registrations_per_day=5)
    after.ticket()
    await after.exchange.exchange()

    after.ticket(TWO).reserve_registration(1)
    with pytest.raises(QuotaExceeded):
        after.ticket(TWO).reserve_registration(1)


async def test_bytes_that_are_being_stored_when_the_store_is_asked_are_counted(
    clock: HandClock, store: WatchedStore
) -> None:
    process = Process(store, clock, tenant_stored_bytes=1000)
    finish = process.ticket().reserve_registration(600)
    await process.exchange.exchange()
    finish(created=True)

    with pytest.raises(StorageQuotaExceeded):
        process.ticket().check_stored(401)
    process.ticket().check_stored(400)

    await process.exchange.exchange()
    process.ticket().check_stored(1000)


async def test_stored_bytes_are_those_of_the_store(clock: HandClock, store: WatchedStore) -> None:
    process = Process(store, clock, tenant_stored_bytes=1000)
    version = a_version(body=b"b" * 700)
    await store.add(TENANT.id, version)
    process.ticket()
    await process.exchange.exchange()

    process.ticket().check_stored(1000 - version.size)
    with pytest.raises(StorageQuotaExceeded):
        process.ticket().check_stored(1001 - version.size)


async def test_an_unknown_caller_is_looked_up_at_once(
    clock: HandClock, store: WatchedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota_exchange, "EXCHANGE_SECONDS", 3_600.0)
    one, two = (Process(store, clock, client_requests_per_minute=3) for _ in range(2))
    one.admit(3)
    await one.exchange.exchange()
    running = asyncio.create_task(two.exchange.run())
    assert two.admit(1) == 1

    await until(lambda: ";r=0;" in two.ticket().fields()["RateLimit"])

    assert two.admit(1) == 0
    running.cancel()


async def test_the_task_survives_a_store_that_is_unavailable(
    clock: HandClock, store: WatchedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota_exchange, "EXCHANGE_SECONDS", 0.01)
    process = Process(store, clock, client_requests_per_minute=3)
    await process.exchange.start()
    store.problem = StoreUnavailable("away")
    running = asyncio.create_task(process.exchange.run())
    process.admit(1)
    await until(lambda: store.calls[1:])
    store.problem = None
    await until(lambda: len(store.sizes("read")) > 3)

    assert [count.used for counts in store.put for count in counts] == [1]
    running.cancel()


async def test_idle_owners_are_forgotten_the_next_day_and_not_before(
    clock: HandClock, store: WatchedStore
) -> None:
    process = Process(store, clock, tenant_bytes_per_day=10)
    process.ticket().receive(8)
    process.ticket(THREE)
    await process.exchange.exchange()
    clock.forward(seconds=120)
    assert process.quotas.recent() == []
    assert len(process.quotas) == 2
    with pytest.raises(QuotaExceeded):
        process.ticket().receive(3)

    clock.forward(seconds=86_400)
    await process.exchange.exchange()

    assert process.quotas.recent() == []
    assert len(process.quotas) == 0


def test_the_fields_state_the_quotas_of_client_and_tenant(
    clock: HandClock, store: WatchedStore
) -> None:
    process = Process(store, clock, client_requests_per_minute=5, tenant_requests_per_minute=7)
    process.admit(2, TWO)
    process.admit(1, ONE)

    assert process.ticket(ONE).fields() == {
        "RateLimit-Policy": '"client_requests_per_minute";q=5;w=60, '
        '"tenant_requests_per_minute";q=7;w=60',
        "RateLimit": '"client_requests_per_minute";r=4;t=50, '
        '"tenant_requests_per_minute";r=4;t=50',
    }
    assert Process(store, clock, tenant_bytes_per_day=7).ticket().fields() == {}
