"""What a worker is made of, what its gauges show, and in which order it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from fhirpub.encryption.cipher import SecretCipher
from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.clock import DAY_MS
from fhirpub.runtime.metrics import Metrics
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.clock import HandClock
from fhirpub.testing.contracts.webhooks.records import a_delivery
from fhirpub.webhooks.dispatch import worker as module
from fhirpub.webhooks.dispatch.queue_loader import queued
from fhirpub.webhooks.dispatch.worker import WebhookWorker
from fhirpub.webhooks.policy.endpoint_health import EndpointHealth
from fhirpub.webhooks.policy.retry_policy import Breaker
from fhirpub.webhooks.transport.sender import Sender
from tests.unit.webhooks.dispatch.test_endpoint_worker import endpoint_with_secrets, worker_of
from tests.unit.webhooks.dispatch.test_worker import CONFIG, SETTINGS
from tests.waiting import until

METRICS = Metrics(serves=True, sends=True)


@pytest.fixture
async def worker(store: SqliteStore) -> AsyncGenerator[WebhookWorker]:
    clock = HandClock(100 * DAY_MS)
    async with Sender(SETTINGS, clock=clock) as sender:
        yield WebhookWorker(
            store,
            config=CONFIG,
            seal=SecretCipher([b"k" * 32]),
            metrics=METRICS,
            clock=clock,
            sender=sender,
        )


def test_the_gauges_count_deliveries_and_breakers_by_their_state(worker: WebhookWorker) -> None:
    states = ("closed", "open", "open", "half-open", "half-open", "half-open")
    for number, state in enumerate(states):
        line = worker_of(endpoint_with_secrets())
        line.condition = EndpointHealth(breaker=Breaker(state=state))  # type: ignore[arg-type]
        line.queue.add([waiting_at(line.endpoint.id, one) for one in range(1, 3)])
        worker._dispatcher._lines[str(number)] = line

    text = METRICS.text("")[0].decode()

    assert "queue_depth 12.0\n" in text
    for state, count in (("closed", 1), ("open", 2), ("half-open", 3)):
        assert f'breakers{{state="{state}"}} {count}.0\n' in text


def waiting_at(endpoint: str, sequence: int) -> Any:
    return queued(a_delivery(endpoint, sequence))


def test_reports_of_attempts_are_queued_at_once(worker: WebhookWorker) -> None:
    dispatcher = worker._dispatcher

    assert dispatcher._attempts.enqueue == dispatcher.enqueue


def test_events_have_addresses_below_those_of_the_service(worker: WebhookWorker) -> None:
    base = CONFIG.base_url

    assert worker._relay._fhir_url == f"{base}/fhir/r4"
    assert worker._dispatcher._attempts._service_events._base_url == base


async def test_attempts_in_flight_are_waited_for_before_their_outcomes_are_stored(
    worker: WebhookWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []

    def noted(part: Any, name: str) -> None:
        method = getattr(part, name)

        async def call(*arguments: Any) -> None:
            called.append(name)
            await method(*arguments)

        monkeypatch.setattr(part, name, call)

    monkeypatch.setattr(module, "_LAST_SECONDS", 60.0)
    noted(worker._dispatcher, "drain")
    noted(worker._dispatcher, "flush")
    noted(worker._relay, "finish")
    noted(worker._leases, "release_all")
    async with worker.running():
        await until(lambda: worker._relay.leading)

    assert called == ["drain", "flush", "finish", "release_all"]


@pytest.mark.parametrize("part", ["_dispatcher", "_relay"])
async def test_leases_are_released_though_the_store_has_taken_nothing_else(
    worker: WebhookWorker, store: SqliteStore, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    async def fail() -> None:
        raise StoreUnavailable("it hangs")

    monkeypatch.setattr(module, "_LAST_SECONDS", 60.0)
    name = {"_dispatcher": "flush", "_relay": "finish"}[part]
    async with worker.running():
        await until(lambda: worker._relay.leading)
        held = [*worker._leases._until]
        monkeypatch.setattr(getattr(worker, part), name, fail)

    now = 100 * DAY_MS
    taken = await store.lease(held, owner="other", now=now, until=now + 15_000)
    assert taken == {*held} != set()


async def test_a_store_that_hangs_does_not_hold_up_the_end(
    worker: WebhookWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(module, "_LAST_SECONDS", 0.01)
    monkeypatch.setattr(worker._dispatcher, "flush", hang)

    async with asyncio.timeout(30):
        async with worker.running():
            await until(lambda: worker._relay.leading)


async def test_attempts_have_their_time_to_drain_from_the_stop_on(
    worker: WebhookWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[float] = []

    async def drain(until: float) -> None:
        ends.append(until)

    worker._drain_seconds = 3_600.0
    monkeypatch.setattr(worker._dispatcher, "drain", drain)
    async with worker.running():
        await until(lambda: worker._relay.leading)
        stopped = asyncio.get_running_loop().time()

    assert ends[0] >= stopped + 3_600.0
