"""Endpoints that are read: what is queued for them, and how long, over each store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from fhirpub.runtime.clock import DAY_MS
from fhirpub.testing.clock import HandClock
from fhirpub.webhooks.dispatch import worker
from fhirpub.webhooks.management.arrivals import Arrivals
from fhirpub.webhooks.management.delivery_log import DeliveryLog
from fhirpub.webhooks.management.pull_endpoints import note_read
from tests.webhooks.harness import SETTINGS, WebhookHarness, open_harness, until


@pytest.fixture
async def harness(
    each_store_url: str, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[WebhookHarness]:
    """A harness whose clock moves by hand, and that sweeps often."""
    monkeypatch.setattr(worker, "_SWEEP_SECONDS", 0.05)
    settings = replace(SETTINGS, lease_seconds=1.0)  # the first sweep comes so late
    async with open_harness(each_store_url, clock=clock, settings=settings) as harness:
        yield harness


async def test_events_are_queued_without_a_gap_and_never_sent(harness: WebhookHarness) -> None:
    added = await harness.endpoint("pull:laptop")
    arrivals, log = Arrivals(harness.store), DeliveryLog(harness.store, clock=harness.clock)

    await harness.commits(20)
    async with asyncio.timeout(20):
        await arrivals.wait(added.endpoint, client="c", after=19, seconds=20)

    page = await log.events(added.endpoint, after=0, limit=100)
    assert [delivery.sequence for delivery in page.deliveries] == list(range(1, 21))
    assert await harness.state(added) == "paused"
    await asyncio.sleep(1.2)  # another endpoint would be leased and sent to by now
    left = await harness.deliveries(added)
    assert {(delivery.state, delivery.number) for delivery in left} == {("pending", 0)}


async def test_events_are_kept_as_long_as_those_of_other_paused_endpoints(
    harness: WebhookHarness, clock: HandClock
) -> None:
    added = await harness.endpoint("pull:laptop")
    await harness.commits(5)
    await harness.until_states(added, pending=5)
    await note_read(harness.store, added.endpoint, now=clock() + DAY_MS)

    clock.forward(seconds=30.5 * 86_400)

    await harness.until_states(added, pending=1)
    assert [delivery.sequence for delivery in await harness.deliveries(added)] == [5]


async def test_an_endpoint_that_is_not_read_is_removed_by_the_sweep(
    harness: WebhookHarness, clock: HandClock
) -> None:
    left, read = await harness.endpoint("pull:left"), await harness.endpoint("pull:read")
    await note_read(harness.store, read.endpoint, now=clock() + DAY_MS)

    clock.forward(seconds=30.5 * 86_400)

    await until(lambda: harness.state(left), lambda state: state == "deleted")

    assert await harness.state(read) == "paused"
