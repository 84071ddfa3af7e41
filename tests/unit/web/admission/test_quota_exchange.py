"""Counts of quotas are exchanged with other processes, by slices, and survive a store away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from fhirpub.auth.caller import Caller
from fhirpub.config.quotas import QuotasConfig
from fhirpub.errors import StorageQuotaExceeded, StoreUnavailable
from fhirpub.storage.quota_contract import QuotaCount
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.tenant import Tenant
from fhirpub.testing.clock import HandClock
from fhirpub.testing.store_contract import a_version
from fhirpub.web.admission import quota_exchange
from fhirpub.web.admission.quota_exchange import QuotaExchange
from fhirpub.web.admission.quotas import Quotas, Ticket
from tests.waiting import until

NOW = 1_795_000_000_000 // 86_400_000 * 86_400_000 + 10_000


class WatchedStore(SqliteStore):
    """A store that notes what is asked of it, and fails when it is to."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.calls: list[tuple[str, int]] = []
        self.problem: Exception | None = None

    def _note(self, name: str, count: int) -> None:
        self.calls.append((name, count))
        if self.problem is not None:
            raise self.problem

    async def put_quota_counts(self, process: str, counts: Collection[QuotaCount]) -> None:
        self._note("put", len(counts))
        await super().put_quota_counts(process, counts)

    async def quota_counts(self, owners: Collection[str], **options: Any) -> Any:
        self._note("read", len(owners))
        return await super().quota_counts(owners, **options)

    async def stored_bytes(self, tenants: Collection[str]) -> Any:
        self._note("stored", len(tenants))
        return await super().stored_bytes(tenants)

    async def quota_overrides(self) -> Any:
        self._note("overrides", 0)
        return await super().quota_overrides()


@pytest.fixture
def clock() -> HandClock:
    return HandClock(NOW)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[WatchedStore]:
    store = WatchedStore(tmp_path / "x.db", deadline_seconds=10)
    await store.start()
    yield store
    await store.stop()


class Process:
    """The quotas of one process, and their exchange."""

    def __init__(self, store: WatchedStore, clock: HandClock, **limits: int) -> None:
        self.quotas = Quotas(QuotasConfig(**limits), clock)
        self.exchange = QuotaExchange(self.quotas, store, clock=clock)

    def ask(self, client: str = "c-1", tenant: str = "t-1") -> Ticket:
        ticket = self.quotas.ticket(Caller(Tenant(tenant, tenant, b"", 0), client))
        assert ticket is not None
        ticket.enter()
        return ticket


def used(process: Process, kind: Any = "client", owner: str = "c-1") -> int:
    return process.quotas._usages[kind, owner].requests.used(NOW)


async def test_a_process_learns_what_others_have_counted(
    store: WatchedStore, clock: HandClock
) -> None:
    one, other = (Process(store, clock, client_requests_per_minute=9) for _ in range(2))
    for _ in range(3):
        one.ask()
    other.ask()

    await one.exchange.exchange()
    await other.exchange.exchange()
    await one.exchange.exchange()

    assert (used(one), used(other)) == (4, 4)


async def test_what_was_stored_is_not_stored_again(store: WatchedStore, clock: HandClock) -> None:
    process = Process(store, clock, client_requests_per_minute=9)
    process.ask().leave()

    await process.exchange.exchange()
    await process.exchange.exchange()

    assert [name for name, _ in store.calls] == ["put", "read", "read"]


async def test_without_requests_nothing_is_exchanged(
    store: WatchedStore, clock: HandClock
) -> None:
    await Process(store, clock, client_requests_per_minute=9).exchange.exchange()

    assert store.calls == []


@pytest.mark.parametrize(("count", "reads"), [(256, [256]), (257, [256, 1])])
async def test_many_callers_are_exchanged_in_slices(
    store: WatchedStore, clock: HandClock, count: int, reads: list[int]
) -> None:
    process = Process(store, clock, client_requests_per_minute=9)
    for number in range(count):
        process.ask(f"c-{number}")

    await process.exchange.exchange()

    assert [size for name, size in store.calls if name == "read"] == reads
    assert [size for name, size in store.calls if name == "put"] == reads


async def test_bytes_are_read_for_those_whose_bytes_are_limited(
    store: WatchedStore, clock: HandClock
) -> None:
    await store.add("t-1", a_version())
    process = Process(store, clock, tenant_stored_bytes=10, client_requests_per_minute=9)
    process.ask().check_stored(1)

    await process.exchange.exchange()

    assert ("stored", 1) in store.calls
    with pytest.raises(StorageQuotaExceeded):
        process.ask().check_stored(1)


async def test_bytes_that_are_not_limited_are_not_read(
    store: WatchedStore, clock: HandClock
) -> None:
    process = Process(store, clock, client_requests_per_minute=9)
    process.ask()

    await process.exchange.exchange()

    assert [name for name, _ in store.calls] == ["put", "read"]


async def test_counts_stay_unsent_while_the_store_is_away(
    store: WatchedStore, clock: HandClock
) -> None:
    process = Process(store, clock, client_requests_per_minute=9)
    process.ask()
    store.problem = StoreUnavailable("away")
    with pytest.raises(StoreUnavailable):
        await process.exchange.exchange()
    store.problem = None

    await process.exchange.finish()

    assert [name for name, _ in store.calls] == ["put", "put"]


async def test_an_end_without_the_store_is_no_failure(
    store: WatchedStore, clock: HandClock
) -> None:
    process = Process(store, clock, client_requests_per_minute=9)
    process.ask()
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
    process.ask()
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
    process.exchange._has_failed = True
    process.ask()

    await run_for(process, store, 3)

    assert process.exchange._has_failed is False


async def test_a_caller_whose_use_is_unknown_is_asked_about_soon(
    store: WatchedStore, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota_exchange, "EXCHANGE_SECONDS", 60.0)
    monkeypatch.setattr(quota_exchange, "_GATHER_SECONDS", 0.001)
    process = Process(store, clock, client_requests_per_minute=9)
    process.ask()

    await run_for(process, store, 2)

    assert ("put", 1) in store.calls
    assert not process.quotas.news.is_set()
