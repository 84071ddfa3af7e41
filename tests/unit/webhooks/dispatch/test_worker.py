"""The worker of webhooks: its rounds, its sweeps, its gauges, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fhirpub.config.audit import AuditConfig
from fhirpub.config.settings import AuthConfig, Config, ServerConfig
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.encryption.cipher import SecretCipher
from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.clock import DAY_MS
from fhirpub.runtime.metrics import Metrics
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.clock import HandClock
from fhirpub.testing.samples import LAB, a_version
from fhirpub.testing.webhook_contract import an_endpoint, events_added
from fhirpub.webhooks.dispatch import worker as module
from fhirpub.webhooks.dispatch.relay import BATCH_SIZE, BATCH_SIZE_WITHOUT_ENDPOINTS
from fhirpub.webhooks.dispatch.worker import WebhookWorker, _rules
from fhirpub.webhooks.policy.outcome import FAILURES
from fhirpub.webhooks.transport.sender import Sender
from tests.unit.webhooks.dispatch.versions import stored
from tests.waiting import until

SETTINGS = WebhooksConfig(
    lease_seconds=10.0, held_days=3.0, delivered_days=1.0, dead_days=2.0, retry_seconds=[1.0, 2.0]
)
CONFIG = Config(webhooks=SETTINGS, server=ServerConfig(drain_seconds=0.05))


class Watched(SqliteStore):
    """A store that notes the bounds of sweeps."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.swept: list[dict[str, int]] = []

    async def sweep_deliveries(self, **bounds: int) -> int:
        self.swept.append(bounds)
        return await super().sweep_deliveries(**bounds)


@pytest.fixture
def clock() -> HandClock:
    return HandClock(100 * DAY_MS)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Watched]:
    store = Watched(tmp_path / "x.db", deadline_seconds=10)
    await store.start()
    yield store
    await store.stop()


@asynccontextmanager
async def working(
    store: Watched, clock: HandClock, metrics: Metrics | None = None
) -> AsyncGenerator[WebhookWorker]:
    async with Sender(SETTINGS, clock=clock) as sender:
        yield WebhookWorker(
            store,
            config=CONFIG,
            seal=SecretCipher([b"k" * 32]),
            metrics=metrics or Metrics(serves=True, sends=True),
            clock=clock,
            sender=sender,
        )


@pytest.fixture
async def worker(store: Watched, clock: HandClock) -> AsyncGenerator[WebhookWorker]:
    async with working(store, clock) as worker:
        yield worker


# Rounds of the relay.


async def test_without_events_an_idle_relay_waits_a_tenth_of_a_second(
    worker: WebhookWorker,
) -> None:
    assert await worker._relay_some() == 0.1
    assert worker._dispatcher.informed


async def test_after_events_the_relay_goes_on_at_once_and_then_often(
    store: Watched, worker: WebhookWorker
) -> None:
    await store.put_endpoint(LAB, an_endpoint())
    await stored(store, LAB)
    begun = asyncio.get_running_loop().time()

    assert await worker._relay_some() == 0.0
    assert begun + 2.0 <= worker._busy_until <= asyncio.get_running_loop().time() + 2.0
    worker._busy_until += 60.0  # a slow machine
    assert await worker._relay_some() == 0.025
    worker._busy_until = asyncio.get_running_loop().time()
    assert await worker._relay_some() == 0.1


async def test_without_an_endpoint_the_relay_looks_less_often(
    store: Watched, worker: WebhookWorker
) -> None:
    worker._dispatcher.heard = False
    await events_added(store, [a_version()])

    assert await worker._relay_some() == 0.25


@pytest.mark.parametrize(
    ("heard", "most"), [(True, BATCH_SIZE), (False, BATCH_SIZE_WITHOUT_ENDPOINTS)]
)
async def test_a_round_takes_more_where_nothing_is_to_be_sent(
    worker: WebhookWorker, monkeypatch: pytest.MonkeyPatch, most: int, *, heard: bool
) -> None:
    asked: list[int] = []

    async def relay(*, most: int) -> int:
        asked.append(most)
        return most

    monkeypatch.setattr(worker._relay, "relay", relay)
    worker._dispatcher.heard = heard

    assert await worker._relay_some() == 0.0
    assert asked == [most]


async def test_a_relay_that_does_not_lead_tries_again_within_the_lease(
    store: Watched, clock: HandClock, worker: WebhookWorker
) -> None:
    assert await worker._relay_some() == 0.1
    async with working(store, clock) as other:
        assert await other._relay_some() == 2.0
        assert not other._dispatcher.informed
        assert not other.relays_at_once
    assert worker.relays_at_once


async def test_a_relay_that_another_has_replaced_informs_its_dispatcher_no_more(
    store: Watched, clock: HandClock, worker: WebhookWorker
) -> None:
    await worker._relay_some()
    informed = worker._dispatcher.informed
    clock.forward(seconds=SETTINGS.lease_seconds)
    async with working(store, clock) as other:
        await other._relay_some()
        await worker._relay_some()

        assert (informed, worker._dispatcher.informed) == (True, False)
        assert other._dispatcher.informed


async def test_a_ring_wakes_the_relay_that_leads_and_has_an_endpoint(
    worker: WebhookWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[bool] = []
    monkeypatch.setattr(worker._relaying, "wake", lambda: woken.append(True))

    worker.ring()
    await worker._relay_some()
    worker.ring()
    worker._dispatcher.heard = False
    worker.ring()

    assert woken == [True]


# Sweeps.


async def test_only_the_relay_that_leads_sweeps(store: Watched, worker: WebhookWorker) -> None:
    assert await worker._sweep() == 10.0
    assert store.swept == []


async def test_deliveries_are_kept_for_as_many_days_as_are_set(
    store: Watched, clock: HandClock, worker: WebhookWorker
) -> None:
    await worker._relay_some()

    assert await worker._sweep() == 600.0
    assert store.swept == [
        {
            "delivered": clock.now - DAY_MS,
            "dead": clock.now - 2 * DAY_MS,
            "open_": clock.now - 3 * DAY_MS,
        }
    ]


async def test_an_endpoint_that_nobody_reads_is_kept_as_long_as_what_is_held(
    store: Watched, clock: HandClock, worker: WebhookWorker
) -> None:
    added = {days: an_endpoint(url="pull:x", created=clock.now - days * DAY_MS) for days in (2, 4)}
    for each in added.values():
        await store.put_endpoint(LAB, each)
    await worker._relay_some()

    await worker._sweep()

    left = [one.id for one in await store.endpoints(LAB) if one.state != "deleted"]
    assert left == [added[2].id]


# Gauges, and lags.


async def test_the_lag_of_a_tenant_is_that_of_its_oldest_event(
    worker: WebhookWorker, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = clock.now
    worker._relay.oldest_by_tenant = {"a": now - 1_000, "b": now - 5_000, "d": now + 9}
    waiting = {"a": now - 3_000, "b": now - 2_000, "c": now - 4_000}
    monkeypatch.setattr(worker._dispatcher, "waiting_since", lambda: waiting)

    assert worker.lags() == {"a": 3.0, "b": 5.0, "c": 4.0, "d": 0.0}


async def test_lags_change_nothing_of_the_relay(worker: WebhookWorker) -> None:
    worker._relay.oldest_by_tenant = {}
    worker.lags()

    assert worker._relay.oldest_by_tenant == {}


async def test_the_gauges_show_the_state_at_each_scrape(store: Watched, clock: HandClock) -> None:
    metrics = Metrics(serves=True, sends=True)
    async with working(store, clock, metrics) as worker:
        before = metrics.text("")[0].decode()
        await worker._relay_some()
        worker._relay.oldest = clock.now - 7_000
        after = metrics.text("")[0].decode()

    assert "relay_leading 0.0\n" in before
    assert "relay_leading 1.0\n" in after
    assert "relay_lag_seconds 7.0\n" in after
    for reason in FAILURES:
        assert f'reason="{reason}"' in before


async def test_the_age_of_the_oldest_delivery_is_shown(
    store: Watched, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = Metrics(serves=True, sends=True)
    async with working(store, clock, metrics) as worker:
        monkeypatch.setattr(worker._dispatcher, "oldest", lambda: clock.now - 9_000)
        text = metrics.text("")[0].decode()

    assert "oldest_pending_seconds 9.0\n" in text


async def test_on_one_loop_no_registration_waits(worker: WebhookWorker) -> None:
    assert worker.pause_for(LAB) == 0.0


# The end.


async def test_the_lease_of_the_relay_is_released_at_the_end(
    store: Watched, clock: HandClock, worker: WebhookWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LAST_SECONDS", 60.0)
    async with worker.running():
        await until(lambda: worker._relay.leading)

    async with working(store, clock) as other:
        assert await other._relay_some() == 0.1


async def test_a_worker_without_work_ends_before_its_time_to_drain_is_over(
    store: Watched, clock: HandClock
) -> None:
    async with working(store, clock) as worker:
        worker._drain_seconds = 3_600.0
        async with asyncio.timeout(60):
            async with worker.running():
                await until(lambda: worker._relay.leading)


async def test_a_store_that_is_away_does_not_stop_the_end(
    worker: WebhookWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []

    def failing(name: str) -> Any:
        async def fail() -> None:
            called.append(name)
            raise StoreUnavailable("away")

        return fail

    monkeypatch.setattr(worker._dispatcher, "flush", failing("flush"))
    monkeypatch.setattr(worker._relay, "finish", failing("finish"))

    await worker._note_last()

    assert called == ["flush", "finish"]


# Rules.


def test_the_rules_are_those_of_the_settings() -> None:
    settings = replace(
        SETTINGS,
        timeout_seconds=7.0,
        retry_forever=True,
        breaker_failures=11,
        breaker_share=0.25,
        breaker_seconds=12.0,
        breaker_seconds_max=13.0,
        failing_hours=14.0,
        give_up_hours=15.0,
        give_up_failures=16,
    )
    config = Config(
        webhooks=settings,
        auth=AuthConfig(environment="production"),
        audit=AuditConfig(enabled=False),
    )

    rules, patience = _rules(config), _rules(config).patience

    assert (rules.timeout_seconds, rules.environment, rules.is_audited) == (
        7.0,
        "production",
        False,
    )
    assert (rules.schedule.waits, rules.schedule.forever) == ([1.0, 2.0], True)
    assert (patience.in_a_row, patience.share) == (11, 0.25)
    assert (patience.open_seconds, patience.open_seconds_max) == (12.0, 13.0)
    assert (patience.failing_hours, patience.given_up_hours) == (14.0, 15.0)
    assert patience.given_up_failures == 16
