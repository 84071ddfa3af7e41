"""Events go to the sinks of plugins with the promises of webhooks, over each store."""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

import pytest

from fhirpub.errors import InvalidContent
from fhirpub.plugin_api import EventRejected, EventSink, SinkEvent
from fhirpub.runtime.clock import now_ms
from fhirpub.webhooks import verify
from tests.webhooks.harness import SETTINGS, TENANT, WebhookHarness, open_harness

ANOTHER = "33333333-3333-4333-8333-333333333333"
RESOURCES = ["44444444-4444-4444-8444-444444444444", "55555555-5555-4555-8555-555555555555"]


@dataclass
class Shelf(EventSink):
    """A sink that keeps events in memory, and fails as often as it is asked to."""

    name: str = "shelf"
    failures: int = 0
    hangs: int = 0
    rejects: str = ""
    events: list[SinkEvent] = field(default_factory=list)
    closed: int = 0

    async def send(self, event: SinkEvent) -> None:
        if self.hangs:
            self.hangs -= 1
            await asyncio.sleep(3600)
        if self.failures:
            self.failures -= 1
            raise ConnectionError("no broker at amqp://guest:secret@broker")
        if self.rejects and self.rejects in event.event_type:
            raise EventRejected
        self.events.append(event)

    async def close(self) -> None:
        self.closed += 1


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
async def harness(each_store_url: str, shelf: Shelf) -> AsyncIterator[WebhookHarness]:
    settings = replace(SETTINGS, timeout_seconds=0.5)
    async with open_harness(
        each_store_url, clock=now_ms, settings=settings, sinks=[shelf]
    ) as harness:
        yield harness


async def test_all_events_arrive_without_a_gap_and_in_order_for_each_resource(
    harness: WebhookHarness, shelf: Shelf
) -> None:
    endpoint = await harness.endpoint("sink:shelf/reports")

    await asyncio.gather(*(harness.commits(10, each) for each in RESOURCES))
    await harness.until_states(endpoint, delivered=20)

    assert sorted(event.sequence for event in shelf.events) == list(range(1, 21))
    versions = defaultdict(list)
    for event in shelf.events:
        versions[event.resource].append(int(json.loads(event.body)["data"]["version_id"]))
    assert versions == {f"DiagnosticReport/{each}": list(range(1, 11)) for each in RESOURCES}
    assert {event.destination for event in shelf.events} == {"reports"}


async def test_a_sink_can_pass_on_the_signature_that_a_webhook_has(
    harness: WebhookHarness, shelf: Shelf
) -> None:
    endpoint = await harness.endpoint("sink:shelf")

    await harness.commit()
    await harness.until_states(endpoint, delivered=1)

    (event,) = shelf.events
    verify(event.headers, event.body, endpoint.signing_secret, now=time.time())  # noqa: TID251
    assert "Authorization" not in event.headers


async def test_a_sink_that_fails_gets_the_event_again_before_the_next_of_its_resource(
    harness: WebhookHarness, shelf: Shelf
) -> None:
    shelf.failures, shelf.hangs = 1, 1
    endpoint = await harness.endpoint("sink:shelf")

    await harness.commits(3, RESOURCES[0])
    await harness.until_states(endpoint, delivered=3)

    assert [event.sequence for event in shelf.events] == [1, 2, 3]
    first = (await harness.deliveries(endpoint))[0]
    assert [each.reason for each in first.attempts] == ["E_TIMEOUT", "E_SINK", ""]
    assert [each.status for each in first.attempts] == [0, 0, 200]


async def test_an_event_that_a_sink_rejects_is_a_dead_letter_at_once_and_can_be_replayed(
    harness: WebhookHarness, shelf: Shelf
) -> None:
    shelf.rejects = "updated"
    endpoint = await harness.endpoint("sink:shelf")

    await harness.commits(2, RESOURCES[0])
    await harness.until_states(endpoint, delivered=1, dead=1)
    dead = (await harness.deliveries(endpoint))[1]
    assert [each.reason for each in dead.attempts] == ["E_REJECTED"]
    shelf.rejects = ""
    one = endpoint.endpoint
    await harness.store.reopen(one.tenant, one.id, [dead.event_id], now=harness.clock())

    await harness.until_states(endpoint, delivered=2)
    assert [event.sequence for event in shelf.events] == [1, 2]


async def test_events_of_another_tenant_do_not_reach_the_endpoint(
    harness: WebhookHarness, shelf: Shelf
) -> None:
    endpoint = await harness.endpoint("sink:shelf")

    await harness.commit(tenant=ANOTHER)
    await harness.commit()
    await harness.until_states(endpoint, delivered=1)

    assert [event.tenant for event in shelf.events] == [TENANT]


async def test_only_the_operator_can_name_a_sink(harness: WebhookHarness) -> None:
    with pytest.raises(InvalidContent):
        await harness.administration.add(TENANT, {"url": "sink:shelf"})


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sink:shelve", "did you mean shelf?"),
        ("sink:broker", "there are: shelf"),
        ("sink:shelf/a b", "must be sink:NAME or sink:NAME/DESTINATION"),
        ("sink:shelf/" + "a" * 3000, "must be sink:NAME or sink:NAME/DESTINATION"),
    ],
)
async def test_a_sink_that_is_not_there_is_refused(
    harness: WebhookHarness, url: str, words: str
) -> None:
    with pytest.raises(InvalidContent) as refusal:
        await harness.endpoint(url)

    (issue,) = refusal.value.issues
    assert words in issue.diagnostics


async def test_events_wait_for_a_sink_whose_plugin_is_off(
    each_store_url: str, shelf: Shelf
) -> None:
    settings = replace(SETTINGS, retry_seconds=[0.05], retry_forever=True)
    async with open_harness(
        each_store_url, clock=now_ms, settings=settings, sinks=[shelf], sends=False
    ) as harness:
        endpoint = await harness.endpoint("sink:shelf")
        async with harness.another(sinks=[]):
            await harness.commit()
            await harness.until_states(endpoint, retrying=1)
        async with harness.another(sinks=[shelf]):
            await harness.until_states(endpoint, delivered=1)

        (delivery,) = await harness.deliveries(endpoint)
    assert delivery.attempts[0].reason == "E_NO_SINK"
    assert len(shelf.events) == 1


async def test_sinks_are_closed_with_what_sends(each_store_url: str, shelf: Shelf) -> None:
    async with open_harness(each_store_url, clock=now_ms, sinks=[shelf]):
        pass

    assert shelf.closed == 1
