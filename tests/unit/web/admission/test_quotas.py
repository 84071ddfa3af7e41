"""Requests are admitted within quotas, also across processes that exchange their counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from fhirpub.auth.caller import Caller
from fhirpub.config.quotas import QuotasConfig
from fhirpub.errors import QuotaExceeded, StorageQuotaExceeded, StoreUnavailable
from fhirpub.storage.quota_contract import QuotaCount, QuotaOverride
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.tenant import Tenant
from fhirpub.testing.clock import HandClock
from fhirpub.testing.store_contract import a_version
from fhirpub.web.admission.quota_exchange import QuotaExchange
from fhirpub.web.admission.quotas import Quotas, Ticket

DAY_START = 1_795_000_000_000 // 86_400_000 * 86_400_000
TENANT, OTHER = (Tenant(name, name, b"", 0) for name in ("tenant-1", "tenant-2"))
ONE, TWO, THREE = Caller(TENANT, "client-1"), Caller(TENANT, "client-2"), Caller(OTHER, "client-3")


class WatchedStore(SqliteStore):
    """A store that notes what is put and what is asked."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.put: list[Sequence[QuotaCount]] = []
        self.asked: list[Sequence[str]] = []
        self.is_away = False

    async def put_quota_counts(self, process: str, counts: Collection[QuotaCount]) -> None:
        if self.is_away:
            raise StoreUnavailable("away")
        self.put.append([*counts])
        await super().put_quota_counts(process, counts)

    async def quota_counts(self, owners: Collection[str], **options: Any) -> Any:
        self.asked.append([*owners])
        return await super().quota_counts(owners, **options)


@pytest.fixture
def clock() -> HandClock:
    """A clock that stands ten seconds after a midnight."""
    return HandClock(DAY_START + 10_000)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[WatchedStore]:
    store = WatchedStore(tmp_path / "x.db", deadline_seconds=10)
    await store.start()
    yield store
    await store.stop()


class Process:
    """The quotas of one process."""

    def __init__(self, store: SqliteStore, clock: HandClock, **settings: int) -> None:
        self.quotas = Quotas(QuotasConfig(**settings), clock)
        self.exchange = QuotaExchange(self.quotas, store, clock=clock)

    def ticket(self, caller: Caller = ONE) -> Ticket:
        ticket = self.quotas.ticket(caller)
        assert ticket is not None
        return ticket

    def admit(self, count: int, caller: Caller = ONE) -> int:
        """Return how many requests are admitted, each ended before the next."""
        admitted = 0
        for _ in range(count):
            ticket = self.ticket(caller)
            try:
                ticket.enter()
            except QuotaExceeded:
                continue
            admitted += 1
            ticket.leave()
        return admitted


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


async def test_nothing_is_written_when_nothing_was_counted(
    clock: HandClock, store: WatchedStore
) -> None:
    process = Process(store, clock, tenant_requests_per_minute=10, tenant_requests_at_a_time=9)
    await process.exchange.exchange()
    assert (store.put, store.asked) == ([], [])

    process.admit(3)
    for _ in range(5):
        await process.exchange.exchange()

    assert [[(count.quota, count.used) for count in counts] for counts in store.put] == [
        [("tenant_requests_per_minute", 3)]
    ]


async def test_a_minute_without_requests_is_not_written(
    clock: HandClock, store: WatchedStore
) -> None:
    process = Process(store, clock, tenant_requests_per_minute=10)
    process.admit(3)
    await process.exchange.exchange()
    clock.forward(seconds=120)
    await process.exchange.exchange()

    assert len(store.put) == 1
    assert len(store.asked) == 1


async def test_what_could_not_be_written_is_written_later(
    clock: HandClock, store: WatchedStore
) -> None:
    process = Process(store, clock, tenant_bytes_per_day=10)
    process.ticket().receive(3)
    store.is_away = True
    with pytest.raises(StoreUnavailable):
        await process.exchange.exchange()
    await process.exchange.finish()
    process.ticket().receive(4)
    store.is_away = False

    await process.exchange.exchange()

    assert [count.used for counts in store.put for count in counts] == [7]


async def test_an_unknown_caller_is_looked_up_at_once(
    clock: HandClock, store: WatchedStore
) -> None:
    one, two = (Process(store, clock, client_requests_per_minute=3) for _ in range(2))
    one.admit(3)
    await one.exchange.exchange()
    running = asyncio.create_task(two.exchange.run())
    assert two.admit(1) == 1

    await asyncio.sleep(0.5)  # less than an exchange takes otherwise

    assert two.admit(1) == 0
    running.cancel()


async def test_the_task_survives_a_store_that_is_unavailable(
    clock: HandClock, store: WatchedStore
) -> None:
    process = Process(store, clock, client_requests_per_minute=3)
    store.is_away = True
    running = asyncio.create_task(process.exchange.run())
    process.admit(1)
    await asyncio.sleep(0.3)
    store.is_away = False
    await asyncio.sleep(1.5)

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


async def test_counts_of_many_owners_are_exchanged_in_several_steps(
    clock: HandClock, store: WatchedStore
) -> None:
    process = Process(store, clock, client_requests_per_minute=3)
    callers = [Caller(TENANT, f"c{number}") for number in range(600)]
    for caller in callers:
        process.admit(1, caller)

    await process.exchange.exchange()

    assert [len(counts) for counts in store.put] == [256, 256, 88]
    assert {count.owner for counts in store.put for count in counts} == {
        caller.client_id for caller in callers
    }


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
