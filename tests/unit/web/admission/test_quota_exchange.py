"""Counts of quotas are exchanged with other processes, by slices, and survive a store away."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

import pytest
from structlog.testing import capture_logs

from fhirpub.auth.caller import Caller
from fhirpub.errors import StorageQuotaExceeded, StoreUnavailable
from fhirpub.testing.clock import HandClock
from fhirpub.testing.store_contract import a_version
from fhirpub.web.admission import quota_exchange
from tests.unit.web.admission.sharing import NOW, ONE, TENANT, THREE, Process, WatchedStore
from tests.waiting import until


def used(process: Process, kind: Any = "client", owner: str = ONE.client_id) -> int:
    return process.quotas._usages[kind, owner].requests.used(NOW)


async def test_a_process_learns_what_others_have_counted(
    store: WatchedStore, clock: HandClock
) -> None:
    one, other = (Process(store, clock, client_requests_per_minute=9) for _ in range(2))
    for _ in range(3):
        one.enter()
    other.enter()

    await one.exchange.exchange()
    await other.exchange.exchange()
    await one.exchange.exchange()

    assert (used(one), used(other)) == (4, 4)


async def test_nothing_is_written_when_nothing_was_counted(
    clock: HandClock, store: WatchedStore
) -> None:
    process = Process(store, clock, tenant_requests_per_minute=10, tenant_requests_at_a_time=9)
    await process.exchange.exchange()
    assert store.calls == []

    process.admit(3)
    for _ in range(5):
        await process.exchange.exchange()

    assert [[(count.quota, count.used) for count in counts] for counts in store.put] == [
        [("tenant_requests_per_minute", 3)]
    ]
    assert [name for name, _ in store.calls] == ["put", *["read"] * 5]


async def test_a_minute_without_requests_is_not_written(
    clock: HandClock, store: WatchedStore
) -> None:
    process = Process(store, clock, tenant_requests_per_minute=10)
    process.admit(3)
    await process.exchange.exchange()
    clock.forward(seconds=120)
    await process.exchange.exchange()

    assert len(store.put) == 1
    assert len(store.sizes("read")) == 1


@pytest.mark.parametrize(
    ("count", "sizes"), [(256, [256]), (257, [256, 1]), (600, [256, 256, 88])]
)
async def test_counts_of_many_owners_are_exchanged_in_several_steps(
    clock: HandClock, store: WatchedStore, count: int, sizes: list[int]
) -> None:
    process = Process(store, clock, client_requests_per_minute=3)
    callers = [Caller(TENANT, f"c{number}") for number in range(count)]
    for caller in callers:
        process.admit(1, caller)

    await process.exchange.exchange()

    assert store.sizes("put") == store.sizes("read") == sizes
    assert {one.owner for counts in store.put for one in counts} == {
        caller.client_id for caller in callers
    }


async def test_bytes_are_read_for_those_whose_bytes_are_limited(
    store: WatchedStore, clock: HandClock
) -> None:
    await store.add(TENANT.id, a_version())
    process = Process(store, clock, tenant_stored_bytes=10, client_requests_per_minute=9)
    process.enter().check_stored(1)

    await process.exchange.exchange()

    assert ("stored", 1) in store.calls
    with pytest.raises(StorageQuotaExceeded):
        process.enter().check_stored(1)


async def test_bytes_that_are_not_limited_are_not_read(
    store: WatchedStore, clock: HandClock
) -> None:
    process = Process(store, clock, client_requests_per_minute=9)
    process.enter()

    await process.exchange.exchange()

    assert [name for name, _ in store.calls] == ["put", "read"]


async def test_counts_stay_unsent_while_the_store_is_away(
    store: WatchedStore, clock: HandClock
) -> None:
    process = Process(store, clock, client_requests_per_minute=9)
    process.enter()
    store.problem = StoreUnavailable("away")
    with pytest.raises(StoreUnavailable):
        await process.exchange.exchange()
    store.problem = None

    await process.exchange.finish()

    assert [name for name, _ in store.calls] == ["put", "put"]


async def test_what_could_not_be_written_is_written_later(
    clock: HandClock, store: WatchedStore
) -> None:
    process = Process(store, clock, tenant_bytes_per_day=10)
    process.ticket().receive(3)
    store.problem = StoreUnavailable("away")
    with pytest.raises(StoreUnavailable):
        await process.exchange.exchange()
    await process.exchange.finish()
    process.ticket().receive(4)
    store.problem = None

    await process.exchange.exchange()

    assert [count.used for counts in store.put for count in counts] == [7]


async def test_an_end_without_the_store_is_no_failure(
    store: WatchedStore, clock: HandClock
) -> None:
    process = Process(store, clock, client_requests_per_minute=9)
    process.enter()
    store.problem = StoreUnavailable("away")

    await process.exchange.finish()

    assert store.calls == [("put", 1)]


async def test_overrides_are_read_at_the_start_and_every_ten_seconds(
    store: WatchedStore, clock: HandClock
) -> None:
    process = Process(store, clock)
    await process.exchange.start()
    await process.exchange._step()
    assert store.calls == [("overrides", 0)]

    process.exchange._read_at -= 10.0
    await process.exchange._step()
    await process.exchange._step()

    assert store.calls == [("overrides", 0)] * 2


def test_a_change_of_a_quota_is_in_effect_within_half_a_minute() -> None:
    assert quota_exchange.OVERRIDE_SECONDS <= 15
    assert quota_exchange.EXCHANGE_SECONDS <= 2


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota_exchange, "EXCHANGE_SECONDS", 0.001)


async def run_for(process: Process, store: WatchedStore, rounds: int) -> None:
    """Let the task run until it has asked the store so often."""
    task = asyncio.create_task(process.exchange.run())
    await until(lambda: len(store.calls) >= rounds)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("problem", "level", "reason"),
    [(StoreUnavailable("away"), "warning", "away"), (RuntimeError("secret"), "error", None)],
    ids=["away", "fault"],
)
async def test_the_first_failure_of_several_is_logged_and_the_task_goes_on(
    store: WatchedStore, clock: HandClock, problem: Exception, level: str, reason: str | None
) -> None:
    process = Process(store, clock, client_requests_per_minute=9)
    process.enter()
    store.problem = problem
    with capture_logs() as lines:
        await run_for(process, store, 3)

    (line,) = [one for one in lines if one["event"] == "quotas not exchanged"]
    assert (line["log_level"], line.get("reason")) == (level, reason)
    assert "secret" not in str(line)


@pytest.mark.usefixtures("quick")
async def test_a_failure_after_a_success_is_logged_too(
    store: WatchedStore, clock: HandClock
) -> None:
    process = Process(store, clock, client_requests_per_minute=9)
    process.enter()

    with capture_logs() as lines:
        for problem in (StoreUnavailable("one"), None, StoreUnavailable("two")):
            store.calls.clear()
            store.problem = problem
            await run_for(process, store, 5)  # more than one round, so that one has ended

    assert [one["reason"] for one in lines if one["event"] == "quotas not exchanged"] == [
        "one",
        "two",
    ]


async def test_a_caller_whose_use_is_unknown_is_asked_about_soon(
    store: WatchedStore, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota_exchange, "EXCHANGE_SECONDS", 60.0)
    monkeypatch.setattr(quota_exchange, "_GATHER_SECONDS", 0.001)
    process = Process(store, clock, client_requests_per_minute=9)
    process.enter()

    await run_for(process, store, 2)

    assert ("put", 1) in store.calls
    assert not process.quotas.news.is_set()


async def test_what_was_stored_before_the_store_is_asked_is_not_counted_twice(
    store: WatchedStore, clock: HandClock
) -> None:
    process = Process(store, clock, tenant_stored_bytes=1_000)
    process.enter()
    usage = process.quotas._usages["tenant", TENANT.id]
    usage.add_stored(100)
    before = usage.stored

    await process.exchange.exchange()

    assert (before, usage.stored) == (100, 0)  # the store has counted nothing


async def test_what_is_stored_while_the_store_is_asked_is_counted(
    store: WatchedStore, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Process(store, clock, tenant_stored_bytes=1_000)
    process.enter()
    usage = process.quotas._usages["tenant", TENANT.id]
    usage.reserve_stored(100)

    async def answer(tenants: Collection[str]) -> dict[str, int]:
        usage.finish_stored(100, created=True)
        usage.add_stored(7)
        return dict.fromkeys(tenants, 3)

    monkeypatch.setattr(store, "stored_bytes", answer)
    await process.exchange.exchange()

    assert usage.stored == 110


async def test_what_was_sent_is_not_sent_again(clock: HandClock, store: WatchedStore) -> None:
    process = Process(store, clock, client_bytes_per_day=10, tenant_bytes_per_day=10)
    process.ticket().receive(3)
    process.ticket(THREE).receive(4)

    for _ in range(2):
        await process.exchange.exchange()

    assert [len(counts) for counts in store.put] == [4]
