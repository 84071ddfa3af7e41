"""A tenant with many endpoints that do not respond takes no more memory than one with a few."""

from __future__ import annotations

from dataclasses import replace

from fhirpub.runtime.clock import now_ms
from fhirpub.testing.receiver import Receiver, Reply
from fhirpub.webhooks.dispatch.queue import WINDOW
from tests.waiting import until
from tests.webhooks.harness import SETTINGS, WebhookHarness, open_harness

ENDPOINTS, COMMITS = 100, 250


def depth(harness: WebhookHarness) -> float:
    ((sample, *_),) = (family.samples for family in harness.metrics.queue_depth.collect())
    return float(sample.value)


async def test_the_queues_of_a_tenant_hold_a_bounded_number_of_deliveries(
    store_url: str, receiver: Receiver
) -> None:
    settings = replace(SETTINGS, in_flight=4, timeout_seconds=600.0)
    receiver.answer(Reply(misbehaviour="silent"))
    async with open_harness(store_url, clock=now_ms, settings=settings) as harness:
        endpoints = [
            await harness.endpoint(f"{receiver.url}/{number}") for number in range(ENDPOINTS)
        ]
        await harness.commits(COMMITS)
        for endpoint in endpoints:
            await harness.until_states(endpoint, pending=COMMITS, seconds=120.0)

        # Endpoints may be new to the dispatcher for a second, and some not yet known to it.
        await until(lambda: WINDOW / 3 < depth(harness) <= 2 * WINDOW, seconds=30)
        held = depth(harness)

    assert WINDOW / 3 < held <= 2 * WINDOW < ENDPOINTS * COMMITS
