"""From a commit to the receiver: every event is delivered in order, whatever receivers do."""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from standardwebhooks import Webhook
from structlog.testing import capture_logs

from fhirpub.errors import StoreUnavailable
from fhirpub.fhir.strict_json import dumps
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.webhook_contract import Delivery, Endpoint
from fhirpub.testing.clock import HandClock
from fhirpub.testing.receiver import Received, Receiver, Reply
from fhirpub.webhooks import verify
from fhirpub.webhooks.dispatch import worker as sending
from fhirpub.webhooks.dispatch.appender import Appender
from fhirpub.webhooks.management.endpoints import EndpointWithSecrets
from fhirpub.webhooks.management.operational_events import ServiceEvents
from fhirpub.webhooks.policy.endpoint_health import EndpointHealth
from fhirpub.webhooks.policy.retry_policy import FailureStreak
from tests import waiting
from tests.webhooks.harness import (
    SETTINGS,
    TENANT,
    WebhookHarness,
    hold_outcomes,
    open_harness,
    until,
)

ONE_REPORT = "22222222-2222-4222-8222-222222222222"


def sequences(received: Sequence[Received]) -> list[int]:
    return [int(item.headers["x-webhook-sequence"]) for item in received]


def logs(deliveries: Sequence[Delivery]) -> list[list[int]]:
    return [[one.status for one in delivery.attempts] for delivery in deliveries]


async def test_everything_that_is_committed_is_delivered_once_and_verifies(
    harness: WebhookHarness, receiver: Receiver
) -> None:
    endpoint = await harness.endpoint(receiver.url)

    await harness.commits(30)
    await harness.until_states(endpoint, delivered=30)

    assert sorted(sequences(receiver.received)) == list(range(1, 31))
    for received in receiver.received:
        assert received.json["sequence"] == int(received.headers["x-webhook-sequence"])
        verify(received.headers, received.body, endpoint.signing_secret, now=time.time())  # noqa: TID251
        Webhook(endpoint.signing_secret).verify(received.body, dict(received.headers))


async def test_an_endpoint_is_sent_only_what_it_asked_for_of_its_own_tenant(
    harness: WebhookHarness, receiver: Receiver, another: Receiver
) -> None:
    await harness.endpoint(receiver.url, event_types=["diagnostic_report.updated"])
    await harness.endpoint(another.url, tenant="somebody else")
    last = await harness.endpoint(another.url)

    await harness.commits(2, ONE_REPORT)
    await harness.until_states(last, delivered=2)
    await asyncio.to_thread(receiver.wait, 1)

    assert [received.headers["x-webhook-event"] for received in receiver.received] == [
        "diagnostic_report.updated"
    ]
    assert len(another.received) == 2


async def test_no_log_line_of_any_level_has_the_token_of_an_endpoint(
    harness: WebhookHarness, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    receiver.answer(Reply(status=500), Reply())
    endpoint = await harness.endpoint(receiver.url)

    with capture_logs() as logged:
        await harness.commit()
        await harness.until_states(endpoint, delivered=1)

    lines = f"{logged} {caplog.text}"
    assert endpoint.token not in lines
    assert endpoint.signing_secret not in lines


async def commit_and_deliver(harness: WebhookHarness, receiver: Receiver) -> EndpointWithSecrets:
    """Commit a version, and move the clock until it is delivered."""
    assert isinstance(harness.clock, HandClock)
    clock, endpoint = harness.clock, await harness.endpoint(receiver.url)
    await harness.commit()

    async def after_an_attempt() -> object:
        if harness.is_done(endpoint):
            clock.forward(seconds=1.5 * SETTINGS.timeout_seconds)
        return await harness.store.count_deliveries(TENANT, endpoint.endpoint.id)

    await until(after_an_attempt, lambda states: states == {"delivered": 1})
    return endpoint


async def test_the_log_lists_each_attempt(
    store_url: str, clock: HandClock, receiver: Receiver
) -> None:
    receiver.answer(Reply(status=500, body=b"oh no"), Reply(misbehaviour="reset"), Reply())

    async with open_harness(store_url, clock=clock) as harness:
        endpoint = await commit_and_deliver(harness, receiver)
        (delivery,) = await harness.deliveries(endpoint)

    assert [(one.number, one.status, one.reason) for one in delivery.attempts] == [
        (1, 500, ""),
        (2, 0, "E_PRIVATE_NETWORK"),
        (3, 204, ""),
    ]
    assert delivery.attempts[0].answer == b"oh no"
    assert delivery.attempts[0].dialled == ("127.0.0.1",)
    assert len({received.body for received in receiver.received}) == 1


async def test_the_order_of_a_report_is_kept_whatever_fails(
    harness: WebhookHarness, receiver: Receiver
) -> None:
    endpoint = await harness.endpoint(receiver.url)
    random = Random(1)
    receiver.answer_by(lambda _: Reply(status=500 if random.random() < 0.2 else 204))
    reports = [f"{number:08d}-2222-4222-8222-222222222222" for number in range(6)]

    await asyncio.gather(*(harness.commits(8, report) for report in reports))
    await harness.until_states(endpoint, delivered=48)

    versions: dict[str, list[int]] = defaultdict(list)
    for received in receiver.received:
        data = received.json["data"]
        versions[data["id"]].append(int(data["version_id"]))
    assert all(a <= b for version in versions.values() for a, b in pairwise(version))
    assert set(versions) == set(reports)


async def test_a_strict_endpoint_gets_everything_in_one_order(
    harness: WebhookHarness, receiver: Receiver
) -> None:
    endpoint = await harness.endpoint(receiver.url, ordering="strict")
    random = Random(2)
    receiver.answer_by(lambda _: Reply(status=500 if random.random() < 0.2 else 204))

    await harness.commits(25)
    await harness.until_states(endpoint, delivered=25)

    assert all(a <= b for a, b in pairwise(sequences(receiver.received)))


async def test_a_slow_endpoint_does_not_delay_another(
    store_url: str, receiver: Receiver, another: Receiver
) -> None:
    settings = replace(SETTINGS, in_flight=4, in_flight_per_endpoint=4, timeout_seconds=60.0)
    receiver.answer(Reply(misbehaviour="silent"))
    async with open_harness(store_url, clock=now_ms, settings=settings) as harness:
        await harness.endpoint(receiver.url)
        fast = await harness.endpoint(another.url)
        await harness.commits(40)

        await harness.until_states(fast, delivered=40)
        await asyncio.to_thread(receiver.wait, 1)

        assert 0 < len(receiver.received) < 4


async def test_many_silent_endpoints_of_a_tenant_do_not_delay_another_tenant(
    store_url: str, receiver: Receiver, another: Receiver
) -> None:
    settings = replace(SETTINGS, in_flight=8, timeout_seconds=60.0)
    receiver.answer(Reply(misbehaviour="silent"))
    async with open_harness(store_url, clock=now_ms, settings=settings) as harness:
        for number in range(9):
            await harness.endpoint(f"{receiver.url}/{number}")
        fast = await harness.endpoint(another.url, tenant="somebody else")
        await harness.commits(2)
        await asyncio.to_thread(receiver.wait, 6)

        await harness.commits(20, tenant="somebody else")

        await harness.until_states(fast, delivered=20)


async def test_an_endpoint_has_no_more_attempts_in_flight_than_it_may(
    store_url: str, receiver: Receiver
) -> None:
    settings = replace(SETTINGS, in_flight_per_endpoint=3, timeout_seconds=60.0)
    receiver.answer(Reply(misbehaviour="silent"))
    async with open_harness(store_url, clock=now_ms, settings=settings) as harness:
        await harness.endpoint(receiver.url)
        await harness.commits(2)
        await asyncio.to_thread(receiver.wait, 2)

        await harness.commits(8)
        await asyncio.to_thread(receiver.wait, 3)
        await asyncio.sleep(0.3)

        assert len(receiver.received) == 3


async def test_one_attempt_at_a_time_is_enough(store_url: str, receiver: Receiver) -> None:
    settings = replace(SETTINGS, in_flight=1)
    async with open_harness(store_url, clock=now_ms, settings=settings) as harness:
        endpoints = [await harness.endpoint(f"{receiver.url}/{number}") for number in range(2)]
        await harness.commits(2)

        for endpoint in endpoints:
            await harness.until_states(endpoint, delivered=2)


@pytest.mark.parametrize("misbehaviour", ["silent", "dripping-headers", "header-flood"])
async def test_a_hostile_receiver_costs_its_own_attempts_only(
    store_url: str, receiver: Receiver, another: Receiver, misbehaviour: str
) -> None:
    settings = replace(
        SETTINGS,
        connect_seconds=0.2,
        timeout_seconds=0.3,
        retry_seconds=[0.05],
        # On a slow machine attempts for the good one time out as well.
        retry_forever=True,
        breaker_failures=1_000_000,
        breaker_share=1.0,
        lease_seconds=3600.0,
    )
    receiver.answer(Reply(misbehaviour=misbehaviour))  # type: ignore[arg-type]
    async with open_harness(store_url, clock=now_ms, settings=settings) as harness:
        hostile = await harness.endpoint(receiver.url)
        good = await harness.endpoint(another.url)

        await harness.commits(3)
        await harness.until_states(good, delivered=3)

        async def ended() -> list[list[str]]:
            deliveries = await harness.deliveries(hostile)
            return [[one.reason for one in each.attempts if one.ended] for each in deliveries]

        await until(ended, lambda found: all(len(reasons) >= 2 for reasons in found))
        found = {reason for reasons in await ended() for reason in reasons}
        assert found == {"E_PRIVATE_NETWORK"}


async def test_a_version_that_cannot_be_read_does_not_stop_the_others(
    harness: WebhookHarness, receiver: Receiver
) -> None:
    endpoint = await harness.endpoint(receiver.url)

    faulty = await harness.commit(events=b'[{"no": "event"}]')
    await harness.commits(3)
    await harness.until_states(endpoint, delivered=3)

    async def pending_outbox() -> list[str]:
        return [entry.id for _, entry in await harness.store.pending_outbox(limit=10)]

    await until(pending_outbox, lambda found: found == [faulty.id])


async def test_one_commit_may_have_several_events(
    harness: WebhookHarness, receiver: Receiver
) -> None:
    endpoint = await harness.endpoint(receiver.url)
    events = [{"id": f"{ONE_REPORT}.1.{n}", "type": "a.b", "data": {"n": n}} for n in (1, 2, 3)]

    await harness.commit(ONE_REPORT, events=dumps(events))
    await harness.until_states(endpoint, delivered=3)

    assert [received.json["data"]["n"] for received in receiver.received] == [1, 2, 3]
    assert len({received.json["transaction_id"] for received in receiver.received}) == 1


async def test_an_endpoint_whose_secret_cannot_be_read_waits_and_uses_up_nothing(
    harness: WebhookHarness, receiver: Receiver, another: Receiver
) -> None:
    broken = await harness.endpoint(receiver.url)
    good = await harness.endpoint(another.url)
    damaged = replace(broken.endpoint, token=b"damaged", revision=2)
    assert await harness.store.put_endpoint(damaged.tenant, damaged)

    await harness.commits(3)
    await harness.until_states(good, delivered=3)
    await harness.until_states(broken, pending=3)
    mended = replace(broken.endpoint, revision=3)
    assert await harness.store.put_endpoint(mended.tenant, mended)

    await harness.until_states(broken, delivered=3)
    assert {received.headers["x-webhook-attempt"] for received in receiver.received} == {"1"}


async def test_an_attempt_that_cannot_be_signed_is_logged_and_repeated(
    harness: WebhookHarness, receiver: Receiver
) -> None:
    endpoint = await harness.endpoint(receiver.url)
    expired = tuple(replace(secret, expires=1) for secret in endpoint.endpoint.secrets)
    damaged = replace(endpoint.endpoint, secrets=expired, revision=2)
    assert await harness.store.put_endpoint(damaged.tenant, damaged)

    with capture_logs() as lines:
        await harness.commit()
        await harness.until_states(endpoint, dead=1)

    (delivery,) = await harness.deliveries(endpoint)
    assert {one.reason for one in delivery.attempts} == {"E_INTERNAL"}
    assert {
        (line["event"], line["event_id"]) for line in lines if line["log_level"] == "error"
    } == {("webhook could not be sent", delivery.event_id)}


async def test_a_paused_endpoint_gathers_and_then_gets_everything(
    harness: WebhookHarness, receiver: Receiver
) -> None:
    endpoint = await harness.endpoint(receiver.url)
    one = endpoint.endpoint
    await harness.administration.pause(one.tenant, one.id)

    await harness.commits(4)
    await harness.until_states(endpoint, pending=4)
    assert receiver.received == []
    await harness.administration.enable(one.tenant, one.id)

    await harness.until_states(endpoint, delivered=4)


async def test_what_is_reopened_is_sent_again_under_its_id(
    harness: WebhookHarness, receiver: Receiver
) -> None:
    endpoint = await harness.endpoint(receiver.url)
    await harness.commits(3)
    await harness.until_states(endpoint, delivered=3)
    one, second = endpoint.endpoint, (await harness.deliveries(endpoint))[1]

    await harness.store.reopen(one.tenant, one.id, [second.event_id], now=now_ms())
    await asyncio.to_thread(receiver.wait, 4)

    assert receiver.received[3].headers["webhook-id"] == second.event_id
    assert receiver.received[3].body == second.body
    await harness.until_states(endpoint, delivered=3)


async def test_secrets_may_be_rotated_under_load(
    harness: WebhookHarness, receiver: Receiver
) -> None:
    endpoint = await harness.endpoint(receiver.url)
    one = endpoint.endpoint
    secrets = [endpoint.signing_secret]

    for _ in range(5):
        await harness.commits(10)
        rotated = await harness.administration.rotate_secret(
            one.tenant, one.id, {"grace_seconds": 3600}
        )
        secrets.append(rotated.signing_secret)
    await harness.until_states(endpoint, delivered=50)
    await harness.commits(10)
    await until(lambda: harness.state(endpoint), lambda state: state == "active")
    await harness.until_states(endpoint, delivered=60)

    for number, received in enumerate(receiver.received):
        verify(received.headers, received.body, secrets, now=time.time())  # noqa: TID251
        # A receiver that has only the secret of before the last rotation verifies as well.
        known = secrets[max(0, min(number // 10, 5) - 1)]
        Webhook(known).verify(received.body, dict(received.headers))


# Tests with a clock that stands still until it is advanced.


async def test_a_busy_receiver_is_left_in_peace_for_as_long_as_it_asks(
    store_url: str, clock: HandClock, receiver: Receiver
) -> None:
    receiver.answer(Reply(status=429, headers={"Retry-After": "60"}), Reply())
    settings = replace(SETTINGS, in_flight_per_endpoint=1)
    async with open_harness(store_url, clock=clock, settings=settings) as harness:
        endpoint = await harness.endpoint(receiver.url)
        await harness.commit()
        await harness.until_states(endpoint, retrying=1)
        await harness.commits(2)
        await harness.until_states(endpoint, retrying=1, pending=2)

        clock.forward(seconds=59)
        await asyncio.sleep(0.3)
        assert len(receiver.received) == 1
        clock.forward(seconds=2)

        await harness.until_states(endpoint, delivered=3)


@pytest.mark.parametrize("delay", [0.0, 0.8], ids=["before", "after"])
async def test_what_a_receiver_asks_for_about_the_time_of_a_pause_is_heeded_after_it(
    store_url: str, clock: HandClock, receiver: Receiver, delay: float
) -> None:
    receiver.answer(Reply(status=429, headers={"Retry-After": "60"}, delay=delay))
    async with open_harness(store_url, clock=clock) as harness:
        endpoint = await harness.endpoint(receiver.url)
        one = endpoint.endpoint
        await harness.commit()
        if delay:
            await asyncio.to_thread(receiver.wait, 1)
        else:
            await harness.until_states(endpoint, retrying=1)
        await harness.administration.pause(one.tenant, one.id)

        def throttled(found: Endpoint) -> bool:
            return EndpointHealth.read(found.condition).throttled == clock() + 60_000

        await until(lambda: harness.store.endpoint(one.tenant, one.id), throttled)


async def test_an_open_breaker_uses_up_no_attempts(
    store_url: str, clock: HandClock, receiver: Receiver
) -> None:
    receiver.answer(Reply(status=500))
    settings = replace(SETTINGS, retry_seconds=[3600.0, 3600.0])
    async with open_harness(store_url, clock=clock, settings=settings) as harness:
        endpoint = await harness.endpoint(receiver.url)
        await harness.commits(40)
        await asyncio.to_thread(receiver.wait, 10)
        await waiting.until(lambda: harness.is_done(endpoint))

        first = len(receiver.received)
        clock.forward(seconds=31)
        await asyncio.to_thread(receiver.wait, first + 1)
        await waiting.until(lambda: harness.is_done(endpoint))
        probes = len(receiver.received) - first
        receiver.answer(Reply())
        clock.forward(seconds=61)
        await harness.until_states(endpoint, retrying=first + 1, delivered=39 - first)

    assert 10 <= first < 20  # those in flight when it opened come back, too
    assert probes == 1


async def test_an_outage_of_three_days_loses_nothing(
    store_url: str, clock: HandClock, receiver: Receiver, another: Receiver
) -> None:
    settings = replace(SETTINGS, retry_seconds=[5.0, 30.0, 300.0, 1800.0, 7200.0, 18000.0])
    settings = replace(settings, retry_forever=True, rate_per_endpoint=20.0)
    settings = replace(settings, lease_seconds=1e6)  # as if it were renewed in each hour
    receiver.answer(Reply(status=503))
    async with open_harness(store_url, clock=clock, settings=settings) as harness:
        endpoint = await harness.endpoint(receiver.url)
        watching = await harness.endpoint(another.url, event_types=["endpoint.failing"])
        await harness.commits(100)
        await until(
            lambda: harness.store.count_deliveries(TENANT, endpoint.endpoint.id),
            lambda found: sum(found.values()) == 100,
        )
        await asyncio.to_thread(receiver.wait, 1)
        for _hours in range(76):
            # An attempt in flight would be retried after the new time, not before it, and its
            # failure could stop those that follow.
            await waiting.until(lambda: harness.is_done(endpoint))
            clock.forward(seconds=3600)
            harness.sending._dispatcher._beginning.wake()
        await harness.until_states(watching, delivered=1)
        await waiting.until(lambda: harness.is_done(endpoint))
        receiver.answer(Reply())
        before = len(receiver.received)
        clock.forward(seconds=6 * 3600)
        await asyncio.to_thread(receiver.wait, before + 15)
        await asyncio.sleep(0.3)

        # First no more than the limits allow, although all were due; then the rest over time.
        assert len(receiver.received) - before <= 20 + 1

        async def a_second_later() -> object:
            clock.forward(seconds=1)
            await asyncio.sleep(0.05)
            return await harness.store.count_deliveries(TENANT, endpoint.endpoint.id)

        await until(a_second_later, lambda states: states == {"delivered": 100})


async def test_a_failing_endpoint_is_reported_before_that_is_stored(
    store_url: str, clock: HandClock, receiver: Receiver, another: Receiver
) -> None:
    settings = replace(SETTINGS, retry_seconds=[1.0], retry_forever=True)
    receiver.answer(Reply(status=500))
    async with open_harness(store_url, clock=clock, settings=settings) as harness:
        failing = (
            await harness.endpoint(receiver.url, event_types=["diagnostic_report.*"])
        ).endpoint
        watching = await harness.endpoint(another.url, event_types=["endpoint.failing"])
        append = harness.store.append

        async def unavailable(deliveries: Sequence[Delivery]) -> int:
            if deliveries[0].endpoint == watching.endpoint.id:
                raise StoreUnavailable("the queue cannot be written")
            return await append(deliveries)

        async def condition() -> EndpointHealth:
            endpoint = await harness.store.endpoint(TENANT, failing.id)
            assert endpoint is not None
            return EndpointHealth.read(endpoint.condition)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(harness.store, "append", unavailable)
            await harness.commit()
            await until(condition, lambda found: found.streak.failures == 1)
            clock.forward(seconds=25 * 3600)
            await until(condition, lambda found: found.streak.failures == 2)
            assert not (await condition()).warned
        await harness.until_states(watching, delivered=1)
        await until(condition, lambda found: found.warned == found.streak.since)


async def test_after_its_last_attempt_a_delivery_is_dead_and_other_endpoints_are_notified(
    store_url: str, clock: HandClock, receiver: Receiver, another: Receiver
) -> None:
    # However slow the machine is, no attempt outlasts its lease while the clock is advanced.
    settings = replace(SETTINGS, retry_seconds=[5.0, 30.0], lease_seconds=3600.0)
    receiver.answer(Reply(status=500))
    async with open_harness(store_url, clock=clock, settings=settings) as harness:
        failing = await harness.endpoint(receiver.url)
        watching = await harness.endpoint(another.url, event_types=["message.exhausted"])
        reading = await harness.endpoint(f"{another.url}/reports")
        await harness.commit(ONE_REPORT)

        async def later() -> object:
            clock.forward(seconds=10)
            await asyncio.sleep(0.05)
            return await harness.store.count_deliveries(TENANT, failing.endpoint.id)

        await until(later, lambda states: states == {"dead": 1})
        await harness.until_states(watching, delivered=1)
        assert len(await harness.deliveries(reading)) == 1

    (notification,) = [received for received in another.received if received.path == "/webhook"]
    (delivery,) = {received.headers["webhook-id"] for received in receiver.received}
    assert notification.headers["x-webhook-event"] == "message.exhausted"
    assert notification.json["data"] == {
        "endpoint_id": failing.endpoint.id,
        "event_id": delivery,
        "event_type": "diagnostic_report.created",
        "sequence": 1,
        "attempts": 3,
        "self": f"http://127.0.0.1:8080/webhooks/v1/endpoints/{failing.endpoint.id}",
    }


async def test_a_receiver_that_is_gone_is_disabled_and_its_deliveries_are_held(
    harness: WebhookHarness, receiver: Receiver, another: Receiver
) -> None:
    receiver.answer(Reply(status=410))
    gone = await harness.endpoint(receiver.url)
    watching = await harness.endpoint(another.url, event_types=["endpoint.disabled"])
    await harness.commit()
    await until(lambda: harness.state(gone), lambda state: state == "disabled")
    await harness.commits(3)

    await harness.until_states(watching, delivered=1)
    await harness.until_states(gone, retrying=1, pending=3)

    (notification,) = another.received
    assert notification.json["data"]["why"] == "gone"
    assert len(receiver.received) == 1
    receiver.answer(Reply())
    await harness.administration.enable(gone.endpoint.tenant, gone.endpoint.id)
    await harness.until_states(gone, delivered=4)


async def test_the_former_receiver_says_nothing_of_the_one_that_took_its_place(
    harness: WebhookHarness,
    receiver: Receiver,
    another: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    receiver.answer(Reply(status=410))
    answered, go_on = hold_outcomes(harness.sender, monkeypatch)
    endpoint = await harness.endpoint(receiver.url)
    await harness.commit()
    await answered.wait()

    one, fields = endpoint.endpoint, {"url": another.url}
    await harness.administration.change(one.tenant, one.id, fields, trusted=True)
    go_on.set()
    await harness.commit()
    await harness.until_states(endpoint, delivered=2)

    assert await harness.state(endpoint) == "active"


async def test_a_new_receiver_does_not_wait_for_what_the_former_one_asked_for(
    harness: WebhookHarness, receiver: Receiver, another: Receiver
) -> None:
    receiver.answer(Reply(status=503, headers={"Retry-After": "86400"}))
    another.answer(Reply(status=200, echo=True))
    endpoint = await harness.endpoint(receiver.url)
    await harness.commit()
    await asyncio.to_thread(receiver.wait, 1)

    one = endpoint.endpoint
    await harness.administration.change(one.tenant, one.id, {"url": another.url})
    assert (await harness.administration.verify(one.tenant, one.id)).passed
    await harness.commit()

    await asyncio.to_thread(another.wait, 2)
    assert another.received[-1].headers["x-webhook-event"] == "diagnostic_report.created"


@pytest.mark.parametrize("step", ["change", "disable"])
async def test_what_was_begun_is_not_sent_once_the_endpoint_is_not_active(
    harness: WebhookHarness, receiver: Receiver, another: Receiver, step: str
) -> None:
    begin, begun, go_on = harness.store.begin, asyncio.Event(), asyncio.Event()

    async def late(*arguments: Any, **options: Any) -> Sequence[Delivery]:
        started = await begin(*arguments, **options)
        begun.set()
        await go_on.wait()
        return started

    endpoint = await harness.endpoint(receiver.url)
    one, administration = endpoint.endpoint, harness.administration
    workers = harness.sending._dispatcher._lines
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(harness.store, "begin", late)
        await harness.commit()
        await begun.wait()
        if step == "change":
            await administration.change(one.tenant, one.id, {"url": another.url})
        else:
            await administration.disable(one.tenant, one.id)
        await waiting.until(lambda: workers[one.id].endpoint.state != "active")
        go_on.set()
        await asyncio.sleep(0.5)

    assert (receiver.received, another.received) == ([], [])


async def test_what_others_put_between_is_sent_in_its_place(
    harness: WebhookHarness, receiver: Receiver
) -> None:
    endpoint = await harness.endpoint(receiver.url, ordering="strict")
    await harness.commit()
    await harness.until_states(endpoint, delivered=1)
    append, other = harness.store.append, Appender(harness.store, clock=harness.clock)
    began: list[int] = []

    async def interrupted(deliveries: Sequence[Delivery]) -> int:
        """Append one, as the contract allows, after which another process appends one."""
        began.append(len(deliveries))
        if len(deliveries) == 1 or len(began) > 1:
            return await append(deliveries)
        added = await append(deliveries[:1])
        event = ServiceEvents("http://h").failing(endpoint.endpoint, since=0, now=harness.clock())
        await other.append(endpoint.endpoint, [event])
        return added

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(harness.store, "append", interrupted)
        events = [{"id": f"{ONE_REPORT}.1.{n}", "type": "a.b", "data": {}} for n in (1, 2, 3)]
        await harness.commit(ONE_REPORT, events=dumps(events))
        await harness.until_states(endpoint, delivered=5)

    assert max(began) > 1
    assert sequences(receiver.received) == [1, 2, 3, 4, 5]


async def test_an_endpoint_without_one_success_in_five_days_is_given_up(
    store_url: str, clock: HandClock, receiver: Receiver
) -> None:
    settings = replace(SETTINGS, retry_seconds=[1.0], retry_forever=True, lease_seconds=1e6)
    receiver.answer(Reply(status=500))
    async with open_harness(store_url, clock=clock, settings=settings) as harness:
        endpoint = await harness.endpoint(receiver.url)
        await harness.commits(30)
        await asyncio.to_thread(receiver.wait, 10)

        async def after_a_probe() -> str:
            if harness.is_done(endpoint):
                clock.forward(seconds=11 * 3600)
            return await harness.state(endpoint)

        await until(after_a_probe, lambda state: state == "disabled")
        found = await harness.store.endpoint(endpoint.endpoint.tenant, endpoint.endpoint.id)
        assert found is not None
        assert found.why == "given-up"


@pytest.mark.parametrize("seconds", [0.1, 1.0])
async def test_failures_before_an_endpoint_was_enabled_count_no_more_however_soon_that_was(
    store_url: str, receiver: Receiver, seconds: float
) -> None:
    five_days = FailureStreak(failures=20, since=now_ms() - 121 * 3_600_000)
    async with open_harness(store_url, clock=now_ms, sends=False) as harness:
        endpoint = await harness.endpoint(receiver.url)
        name, administration = endpoint.endpoint.id, harness.administration
        await harness.store.save_health(name, EndpointHealth(streak=five_days).serialize())
        receiver.answer(Reply(status=500, delay=seconds))
        async with harness.another():
            await harness.commit()
            await asyncio.to_thread(receiver.wait, 1)
            receiver.answer(Reply())
            await administration.disable(TENANT, name)
            await administration.enable(TENANT, name, operator=True)

            await harness.until_states(endpoint, delivered=1)
            assert await harness.state(endpoint) == "active"


async def test_a_pause_is_no_time_of_failures(store_url: str, receiver: Receiver) -> None:
    six_days = FailureStreak(failures=5, since=now_ms() - 144 * 3_600_000)
    settings = replace(SETTINGS, retry_seconds=[60.0])
    receiver.answer(Reply(status=503))
    async with open_harness(store_url, clock=now_ms, settings=settings, sends=False) as harness:
        endpoint = await harness.endpoint(receiver.url)
        name = endpoint.endpoint.id
        await harness.store.save_health(name, EndpointHealth(streak=six_days).serialize())

        async def condition() -> EndpointHealth:
            return EndpointHealth.read(
                (await harness.administration.endpoint(TENANT, name)).condition
            )

        async with harness.another():
            await harness.commit()
            await until(condition, lambda found: found.streak.failures == 6)
            await harness.administration.pause(TENANT, name)

            await until(condition, lambda found: found.streak == FailureStreak())
            assert (await condition()).throttled > now_ms()


async def test_the_first_endpoint_is_sent_what_is_committed_after_it(
    harness: WebhookHarness, receiver: Receiver
) -> None:
    async def pending_outbox() -> int:
        return len(await harness.store.pending_outbox(limit=10))

    await harness.commits(5)
    await until(pending_outbox, lambda found: found == 0)
    endpoint = await harness.endpoint(receiver.url)

    await harness.commits(3)

    await harness.until_states(endpoint, delivered=3)


async def test_what_was_delivered_long_ago_is_swept_and_the_sequence_goes_on(
    store_url: str, clock: HandClock, receiver: Receiver
) -> None:
    settings = replace(SETTINGS, lease_seconds=1.0)  # the first sweep comes so late
    async with open_harness(store_url, clock=clock, settings=settings) as harness:
        endpoint = await harness.endpoint(receiver.url)
        await harness.commits(5)
        await harness.until_states(endpoint, delivered=5)
    clock.forward(seconds=31 * 86_400)
    async with open_harness(store_url, clock=clock, settings=settings) as harness:
        await harness.until_states(endpoint, delivered=1)

        await harness.commit()
        await harness.until_states(endpoint, delivered=2)

        assert [delivery.sequence for delivery in await harness.deliveries(endpoint)] == [5, 6]


async def test_the_lag_of_the_relay_is_shown_until_it_has_caught_up(
    store_url: str, clock: HandClock
) -> None:
    def lag() -> bytes:
        text, _ = harness.metrics.text("")
        return text.partition(b"\nfhirpub_webhook_relay_lag_seconds ")[2].partition(b"\n")[0]

    async with open_harness(store_url, clock=clock, sends=False) as harness:
        await harness.commit()
        clock.forward(seconds=5)

        before = lag()
        await harness.sending._relay_some()
        behind = lag()
        await harness.sending._relay_some()

        assert (before, behind, lag()) == (b"0.0", b"5.0", b"0.0")


async def test_the_relay_rests_only_after_all_events_without_a_receiver(
    store_url: str, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "BATCH_SIZE_WITHOUT_ENDPOINTS", 2)
    async with open_harness(store_url, clock=clock, sends=False) as harness:
        harness.sending._dispatcher.heard = False
        await harness.commits(3)

        pauses = [await harness.sending._relay_some() for _ in range(2)]

    assert pauses == [0.0, sending._UNHEARD_SECONDS]


async def records_of_tenant(harness: WebhookHarness) -> list[dict[str, Any]]:
    """Return the audit records that wait to be sealed."""
    while True:
        unsealed = await harness.store.unsealed_audit(limit=1_000)
        if unsealed.is_complete:
            break
    lines = [line for entry in unsealed.entries for line in entry.records.splitlines()]
    return [json.loads(line) for line in lines]


async def test_each_attempt_leaves_an_audit_record_with_the_resource_and_the_endpoint(
    harness: WebhookHarness, receiver: Receiver
) -> None:
    receiver.answer(Reply(status=500), Reply())
    endpoint = await harness.endpoint(receiver.url)
    version = await harness.commit()
    await harness.until_states(endpoint, delivered=1)

    records = await records_of_tenant(harness)

    what = [f"DiagnosticReport/{version.id}", f"Endpoint/{endpoint.endpoint.id}"]
    assert [(record["action"], record["status"]) for record in records] == [
        ("event.deliver", 500),
        ("event.deliver", 204),
    ]
    assert all(record["what"] == what for record in records)


async def test_an_attempt_without_a_response_is_recorded(
    store_url: str, clock: HandClock, receiver: Receiver
) -> None:
    receiver.answer(Reply(misbehaviour="reset"), Reply())
    async with open_harness(store_url, clock=clock) as harness:
        await commit_and_deliver(harness, receiver)

        records = await records_of_tenant(harness)

    assert [record["status"] for record in records] == [504, 204]
