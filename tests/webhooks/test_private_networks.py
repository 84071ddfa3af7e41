"""Deliveries into networks that the operator has opened: whose they are, and what is logged."""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import Iterator
from dataclasses import asdict, replace

import pytest
from structlog.testing import capture_logs

from fhirpub.runtime.clock import now_ms
from fhirpub.storage.webhook_contract import Delivery
from fhirpub.testing.receiver import Receiver, Reply
from fhirpub.webhooks.management.delivery_log import DeliveryLog
from fhirpub.webhooks.management.serializers import delivery_record, stats_record
from fhirpub.webhooks.policy.endpoint_health import EndpointHealth
from tests.webhooks.harness import SETTINGS, TENANT, WebhookHarness, open_harness, until

ANOTHER = "22222222-2222-4222-8222-222222222222"
TIMEOUT_MS = 1_000
WAIT_MS = 4_000
"""A fifth of it, by which it varies, is less than the timeout."""
QUICK = replace(
    SETTINGS,
    connect_seconds=TIMEOUT_MS / 1000,
    timeout_seconds=TIMEOUT_MS / 1000,
    retry_seconds=[WAIT_MS / 1000],
)
ONCE = replace(SETTINGS, retry_seconds=[3600.0])
"""One attempt, with time for a machine that is slow."""


@pytest.fixture
def closed() -> Iterator[str]:
    """The URL of a port that refuses connections."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/webhook"


async def one_failure(harness: WebhookHarness, url: str) -> Delivery:
    """Return the delivery of a new tenant after its first attempt has failed."""
    tenant = str(uuid.uuid4())
    endpoint = await harness.endpoint(url, tenant=tenant)
    await harness.commit(tenant=tenant)
    async with asyncio.timeout(30):
        while True:  # as it is read then: it will be tried again
            for delivery in await harness.deliveries(endpoint):
                if delivery.state == "retrying":
                    return delivery
            await asyncio.sleep(0.01)


async def test_the_log_of_a_failure_does_not_show_how_it_failed(
    each_store_url: str, receiver: Receiver, another: Receiver, closed: str
) -> None:
    receiver.answer(Reply(misbehaviour="reset"))
    another.answer(Reply(misbehaviour="silent"))
    async with open_harness(each_store_url, clock=now_ms, settings=QUICK) as harness:
        urls = (closed, receiver.url, another.url)
        failed = [await one_failure(harness, url) for url in urls]

        attempts = []
        for delivery in failed:
            (attempt,) = delivery.attempts
            assert attempt.ended == attempt.begun + TIMEOUT_MS
            assert WAIT_MS <= delivery.due - attempt.ended <= WAIT_MS * 1.2
            attempts.append(asdict(replace(attempt, begun=0, ended=0)))

    assert attempts == [attempts[0]] * 3
    assert attempts[0] == {
        "number": 1,
        "begun": 0,
        "ended": 0,
        "status": 0,
        "reason": "E_PRIVATE_NETWORK",
        "duration": TIMEOUT_MS,
        "dialled": (),
        "answer": b"",
    }


async def test_the_statistics_do_not_show_how_it_failed(
    store_url: str, receiver: Receiver, closed: str
) -> None:
    receiver.answer(Reply(misbehaviour="reset"))
    settings = replace(QUICK, retry_seconds=[3600.0])
    async with open_harness(store_url, clock=now_ms, settings=settings) as harness:
        shown = []
        for url in (closed, receiver.url):
            delivery = await one_failure(harness, url)
            (attempt,) = delivery.attempts

            async def failing_since(delivery: Delivery = delivery) -> int:
                stored = await harness.store.endpoint(delivery.tenant, delivery.endpoint)
                assert stored is not None
                return EndpointHealth.read(stored.condition).streak.since

            await until(failing_since, bool)
            assert await failing_since() == attempt.begun + TIMEOUT_MS
            stored = await harness.store.endpoint(delivery.tenant, delivery.endpoint)
            assert stored is not None
            log = DeliveryLog(harness.store, clock=now_ms)
            stats = stats_record(await log.stats(stored), stored)
            record = delivery_record(delivery, stored, now=now_ms())
            for times in ("failing_since", "oldest_undelivered"):
                assert stats.pop(times)
            for count in (*stats["by_hour"], *stats["by_day"]):
                del count["since"]
            del record["attempts"][0]["begun"]
            shown.append((stats, record["attempts"]))

    assert shown[0] == shown[1]
    assert shown[0][0]["p95_milliseconds"] == TIMEOUT_MS
    assert shown[0][1][0]["milliseconds"] == TIMEOUT_MS


async def test_the_operator_gets_the_cause_in_the_log_and_in_the_metrics(
    store_url: str, closed: str
) -> None:
    async with open_harness(store_url, clock=now_ms, settings=ONCE) as harness:
        with capture_logs() as lines:
            delivery = await one_failure(harness, closed)
        text = harness.metrics.text("")[0].decode()

    (line,) = [line for line in lines if line["event"] == "webhook to a private address failed"]
    assert line.pop("milliseconds") < ONCE.timeout_seconds * 1000
    assert line == {
        "event": "webhook to a private address failed",
        "log_level": "info",
        "endpoint": delivery.endpoint,
        "event_id": delivery.event_id,
        "outcome": "E_CONNECT",
        "dialled": ["127.0.0.1"],
    }
    assert 'fhirpub_webhook_attempts_total{outcome="E_CONNECT"} 1.0' in text
    assert "E_PRIVATE_NETWORK" not in text


async def test_an_answer_is_logged_as_it_came(store_url: str, receiver: Receiver) -> None:
    receiver.answer(Reply(status=503, body=b"busy"))
    async with open_harness(store_url, clock=now_ms, settings=ONCE) as harness:
        delivery = await one_failure(harness, receiver.url)

    (attempt,) = delivery.attempts
    assert (attempt.status, attempt.reason, attempt.answer) == (503, "", b"busy")


async def test_deliveries_go_only_where_an_entry_is_for_their_tenant(
    each_store_url: str, receiver: Receiver, another: Receiver
) -> None:
    async with open_harness(each_store_url, clock=now_ms, sends=False) as before:
        of_both = [
            [await before.endpoint(target.url, tenant=tenant) for target in (receiver, another)]
            for tenant in (TENANT, ANOTHER)
        ]
    entries = [f"127.0.0.1 port={receiver.port} tenant={TENANT}"]
    entries += [f"127.0.0.1 port={another.port} tenant={ANOTHER}"]
    settings = replace(ONCE, allow_networks=entries)

    async with open_harness(each_store_url, clock=now_ms, settings=settings) as harness:
        for tenant in (TENANT, ANOTHER):
            await harness.commit(tenant=tenant)
        await harness.until_states(of_both[0][0], delivered=1)
        await harness.until_states(of_both[1][1], delivered=1)
        for blocked in (of_both[0][1], of_both[1][0]):
            await harness.until_states(blocked, retrying=1)
            (delivery,) = await harness.deliveries(blocked)
            assert [one.reason for one in delivery.attempts] == ["E_BLOCKED_ADDRESS"]

    assert [len(target.received) for target in (receiver, another)] == [1, 1]
