"""Several processes over one store, and a store that does not always respond."""

from __future__ import annotations

import asyncio
import base64
import inspect
import signal
import sys
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.clock import Clock, now_ms
from fhirpub.storage.leases import Leases
from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import AttemptResult, Delivery, OutboxEntry
from fhirpub.testing.clock import HandClock
from fhirpub.testing.receiver import Receiver, Reply
from fhirpub.webhooks.dispatch.appender import Appender
from fhirpub.webhooks.dispatch.leases import EndpointAssignments
from fhirpub.webhooks.dispatch.relay import Relay
from fhirpub.webhooks.management.endpoints import EndpointWithSecrets
from fhirpub.webhooks.policy.endpoint_health import EndpointHealth
from fhirpub.webhooks.transport.envelope import events_of
from tests.webhooks.harness import (
    KEY,
    SETTINGS,
    TENANT,
    WebhookHarness,
    hold_outcomes,
    open_harness,
    until,
)


def shares_of(store: Store, owner: str, clock: Clock) -> EndpointAssignments:
    return EndpointAssignments(
        Leases(store, owner=owner, seconds=10.0, clock=clock), Random(owner)
    )


async def settle(shares: list[EndpointAssignments], wanted: set[str], clock: HandClock) -> None:
    """Let each update several times, one second after the other, as processes do."""
    for _ in range(20):
        for share in shares:
            surplus = await share.update(wanted)
            await share.give_up(sorted(share.owned)[:surplus])
        clock.forward(seconds=1)


async def test_processes_share_the_endpoints_and_take_over_from_the_dead(
    each_store_url: str, clock: HandClock
) -> None:
    wanted = {f"e{number}" for number in range(9)}
    async with open_harness(each_store_url, clock=clock, sends=False) as harness:
        three = [shares_of(harness.store, owner, clock) for owner in "abc"]
        await settle(three[:1], wanted, clock)
        assert three[0].owned == wanted

        await settle(three, wanted, clock)
        assert [len(assignments.owned) for assignments in three] == [3, 3, 3]
        assert set.union(*(assignments.owned for assignments in three)) == wanted

        await settle(three[1:], wanted, clock)
        assert not any(three[0].holds(name) for name in wanted)
        assert sorted(len(assignments.owned) for assignments in three[1:]) == [4, 5]
        assert three[1].owned | three[2].owned == wanted


async def test_what_one_process_leaves_another_goes_on_with(
    harness: WebhookHarness, receiver: Receiver, another: Receiver
) -> None:
    endpoints = [await harness.endpoint(item.url) for item in (receiver, another)]
    async with harness.another():
        await harness.commits(20)
        for endpoint in endpoints:
            await harness.until_states(endpoint, delivered=20)
    await harness.commits(20)

    for endpoint in endpoints:
        await harness.until_states(endpoint, delivered=40)
    assert len(receiver.received) == len(another.received) == 40


async def test_a_process_that_stops_finishes_what_is_in_flight(
    each_store_url: str, receiver: Receiver
) -> None:
    receiver.answer(Reply(delay=0.5))
    # An attempt that a slow machine ends too late would be repeated.
    patient = replace(SETTINGS, timeout_seconds=20.0, lease_seconds=3600.0)
    async with open_harness(
        each_store_url, clock=now_ms, settings=patient, drain_seconds=20.0
    ) as harness:
        endpoint = await harness.endpoint(receiver.url)
        await harness.commit()
        await asyncio.to_thread(receiver.wait, 1)

    async with open_harness(each_store_url, clock=now_ms, sends=False) as harness:
        (delivery,) = await harness.deliveries(endpoint)
        assert (delivery.state, delivery.number) == ("delivered", 1)


class Unanswering:
    """A store that stops responding when ``silent`` is set."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.silent = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def tried(*values: Any, **named: Any) -> Any:
            if self.silent.is_set():
                await asyncio.sleep(3600)
            return await method(*values, **named)

        return tried


async def test_a_process_that_stops_while_the_store_is_away_does_not_wait_for_it(
    store_url: str, receiver: Receiver
) -> None:
    receiver.answer(Reply(delay=0.3))
    async with open_harness(store_url, clock=now_ms, sends=False) as harness:
        await harness.endpoint(receiver.url)
        store: Any = Unanswering(harness.store)
        async with asyncio.timeout(60), harness.another(store):
            await harness.commit()
            await asyncio.to_thread(receiver.wait, 1)
            store.silent.set()
            begun = asyncio.get_running_loop().time()

        took = asyncio.get_running_loop().time() - begun
        assert took < harness.config.server.drain_seconds + 20  # and not an hour


async def deliver_elsewhere(harness: WebhookHarness, begun: Delivery, *, now: int) -> None:
    """Record that another process has delivered what it had started."""
    attempt = replace(begun.attempts[-1], ended=now, status=204)
    await harness.store.finish([AttemptResult(key=begun.key, attempt=attempt, state="delivered")])


async def deliver_in_time(
    harness: WebhookHarness, clock: HandClock, endpoint: EndpointWithSecrets, *, seconds: float
) -> None:
    """Let the clock go on by such steps until both deliveries of an endpoint are delivered."""

    async def a_step_later() -> object:
        clock.forward(seconds=seconds)
        await asyncio.sleep(0.1)
        return await harness.store.count_deliveries(TENANT, endpoint.endpoint.id)

    await until(a_step_later, lambda states: states == {"delivered": 2})


async def test_nothing_waits_for_what_another_process_has_delivered(
    each_store_url: str, clock: HandClock, receiver: Receiver
) -> None:
    receiver.answer(Reply(status=500))
    async with open_harness(each_store_url, clock=clock) as harness:
        endpoint = await harness.endpoint(receiver.url)
        first = await harness.commit()
        await harness.until_states(endpoint, retrying=1)
        (delivery,) = await harness.deliveries(endpoint)
        now = clock() + 1_000
        (begun,) = await harness.store.begin([delivery.key], now=now, until=now + 1_000)
        await deliver_elsewhere(harness, begun, now=now)
        receiver.answer(Reply())

        await harness.commit(first.id)

        await deliver_in_time(harness, clock, endpoint, seconds=1)


async def test_nothing_overtakes_what_another_process_has_begun_since(
    each_store_url: str, clock: HandClock, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_harness(each_store_url, clock=clock) as harness:
        answered, go_on = hold_outcomes(harness.sender, monkeypatch)
        endpoint = await harness.endpoint(receiver.url)
        first = await harness.commit()
        await harness.commit(first.id)
        await answered.wait()
        await harness.until_states(endpoint, pending=2)
        delivery = (await harness.deliveries(endpoint))[0]
        clock.forward(seconds=SETTINGS.timeout_seconds + SETTINGS.lease_seconds)
        now = clock()
        (begun,) = await harness.store.begin([delivery.key], now=now, until=now + 60_000)
        go_on.set()
        for _seconds in range(4):
            await asyncio.sleep(0.2)
            clock.forward(seconds=1)
        assert len(receiver.received) == 1

        await deliver_elsewhere(harness, begun, now=now)

        await deliver_in_time(harness, clock, endpoint, seconds=60)


async def test_a_later_attempt_waits_its_time_also_after_a_pause_while_one_is_in_flight(
    store_url: str, clock: HandClock, receiver: Receiver
) -> None:
    receiver.answer(Reply(status=500, delay=0.6))
    settings = replace(SETTINGS, retry_seconds=[3600.0])
    async with open_harness(store_url, clock=clock, settings=settings) as harness:
        endpoint = await harness.endpoint(receiver.url)
        one = endpoint.endpoint
        await harness.commit()
        await asyncio.to_thread(receiver.wait, 1)
        await harness.administration.pause(one.tenant, one.id)
        await asyncio.sleep(0.3)
        await harness.administration.enable(one.tenant, one.id)
        await harness.until_states(endpoint, retrying=1)

        for _seconds in range(5):
            clock.forward(seconds=1)
            await asyncio.sleep(0.1)

        assert len(receiver.received) == 1


class Leaving:
    """A store whose endpoint another process gives up, storing its health at the last moment."""

    def __init__(self, store: Store, endpoint: str, condition: EndpointHealth) -> None:
        self._store = store
        self._endpoint = endpoint
        self._condition = condition

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def lease(self, names: Collection[str], **more: Any) -> frozenset[str]:
        if f"endpoint/{self._endpoint}" in names:
            await self._store.save_health(self._endpoint, self._condition.serialize())
        return await self._store.lease(names, **more)


async def test_what_the_former_noted_last_is_heeded(
    store_url: str, receiver: Receiver, another: Receiver
) -> None:
    async with open_harness(store_url, clock=now_ms, sends=False) as harness:
        busy, idle = [await harness.endpoint(item.url) for item in (receiver, another)]
        store: Any = Leaving(
            harness.store, busy.endpoint.id, EndpointHealth(throttled=now_ms() + 3_600_000)
        )
        await harness.commit()
        async with harness.another(store):
            await harness.until_states(idle, delivered=1)

        await harness.until_states(busy, pending=1)
        assert not receiver.received


async def test_what_was_opened_again_without_a_word_is_sent_in_the_end(
    each_store_url: str, clock: HandClock, receiver: Receiver
) -> None:
    async with open_harness(each_store_url, clock=clock) as harness:
        endpoint = await harness.endpoint(receiver.url)
        await harness.commit()
        await harness.until_states(endpoint, delivered=1)
        # This is the state after a process dies before the endpoint counts what was reopened.
        (delivery,) = await harness.deliveries(endpoint)
        await harness.store.put_deliveries(
            [replace(delivery, state="pending", number=0, ended=None)]
        )

        clock.forward(seconds=601)

        await harness.until_states(endpoint, delivered=1)
        assert len(receiver.received) == 2


class Late:
    """A store whose first confirmation that an attempt has begun comes very late."""

    def __init__(self, store: Store, clock: HandClock, *, seconds: float) -> None:
        self._store = store
        self._clock = clock
        self._seconds = seconds
        self.confirmed = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def begin(self, keys: Any, *, now: int, until: int) -> Any:
        begun = await self._store.begin(keys, now=now, until=until)
        self._clock.forward(seconds=self._seconds)
        self._seconds = 0.0
        self.confirmed.set()
        return begun


@pytest.mark.parametrize("seconds", [1.5, 100.0])
async def test_an_attempt_that_could_outlast_its_lease_is_not_made(
    store_url: str, clock: HandClock, receiver: Receiver, seconds: float
) -> None:
    async with open_harness(store_url, clock=clock, sends=False) as harness:
        endpoint = await harness.endpoint(receiver.url)
        late: Any = Late(harness.store, clock, seconds=seconds)
        async with harness.another(late, lease_seconds=1.0):
            await harness.commit()
            await late.confirmed.wait()
            clock.forward(seconds=SETTINGS.timeout_seconds)
            await harness.until_states(endpoint, delivered=1)

        assert [received.headers["x-webhook-attempt"] for received in receiver.received] == ["2"]


class Unconditional:
    """A store that is unavailable when the health of an endpoint is to be stored."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def save_health(self, endpoint_id: str, condition: bytes) -> None:
        raise StoreUnavailable("gone")


async def test_an_endpoint_that_asked_for_it_is_disabled_whatever_comes_next(
    store_url: str, receiver: Receiver
) -> None:
    receiver.answer(Reply(status=410))
    async with open_harness(store_url, clock=now_ms, sends=False) as harness:
        endpoint = await harness.endpoint(receiver.url)
        await harness.commit()
        async with harness.another(Unconditional(harness.store)):  # type: ignore[arg-type]
            await until(lambda: harness.state(endpoint), lambda state: state == "disabled")


class Unreliable:
    """A store whose calls for webhooks fail one time in ten, before or after they worked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._random = Random(7)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        return self._tried(method) if inspect.iscoroutinefunction(method) else method

    def _tried(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def tried(*words: Any, **more: Any) -> Any:
            chance = self._random.random()
            if chance < 0.05:
                raise StoreUnavailable("gone")
            answer = await method(*words, **more)
            if chance < 0.1:
                raise StoreUnavailable("the answer was lost")
            return answer

        return tried


async def test_a_store_that_often_fails_loses_nothing(
    each_store_url: str, receiver: Receiver
) -> None:
    async with open_harness(each_store_url, clock=now_ms, sends=False) as harness:
        endpoint = await harness.endpoint(receiver.url)
        unreliable: Any = Unreliable(harness.store)
        settings: dict[str, Any] = dict.fromkeys(["connect_seconds", "timeout_seconds"], 0.2)
        # On a slow machine many attempts time out.
        settings |= {"retry_forever": True, "breaker_failures": 1_000_000, "breaker_share": 1.0}
        async with harness.another(unreliable, lease_seconds=1.0, **settings):
            await harness.commits(40)
            await harness.until_states(endpoint, delivered=40, seconds=60.0)

        deliveries = await harness.deliveries(endpoint)
        assert [delivery.sequence for delivery in deliveries] == list(range(1, 41))
        received = {item.headers["webhook-id"] for item in receiver.received}
        assert received == {delivery.event_id for delivery in deliveries}


@pytest.mark.parametrize("seconds", [0, 60])  # the difference between the two clocks
async def test_two_relays_that_both_believe_to_lead_publish_everything_once(
    each_store_url: str, clock: HandClock, seconds: int
) -> None:
    def relay_of(owner: str, clock: Clock) -> Relay:
        leases = Leases(harness.store, owner=owner, seconds=30.0, clock=clock)
        appender = Appender(harness.store, clock=clock)
        return Relay(
            harness.store,
            appender=appender,
            leases=leases,
            fhir_url="http://x",
            enqueue=lambda _: None,
        )

    async with open_harness(each_store_url, clock=clock, sends=False) as harness:
        endpoint = await harness.endpoint("http://127.0.0.1:9/")
        two = [relay_of("a", clock), relay_of("b", lambda: clock() + seconds * 1000)]
        await two[0].relay()
        for _round in range(10):
            await harness.commits(5)
            await asyncio.gather(*(relay.relay() for relay in two))
        await asyncio.gather(*(relay.relay() for relay in two))

        assert sum(relay.leading for relay in two) == (2 if seconds else 1)
        deliveries = await harness.deliveries(endpoint)
        assert [delivery.sequence for delivery in deliveries] == list(range(1, 51))
        assert len({delivery.event_id for delivery in deliveries}) == 50


async def freeze(process: asyncio.subprocess.Process, store: Store) -> None:
    """Stop a process, at a moment when it does not hold the write lock of a SQLite file."""
    while True:
        process.send_signal(signal.SIGSTOP)
        try:
            await store.save_health("no endpoint", b"")
        except StoreUnavailable:
            process.send_signal(signal.SIGCONT)
            await asyncio.sleep(0.05)
        else:
            return


async def test_the_deliveries_of_a_process_that_is_frozen_are_taken_over(
    tmp_path: Path, each_store_url: str, receiver: Receiver
) -> None:
    (tmp_path / "keys").write_bytes(base64.b64encode(KEY))
    file = tmp_path / "fhirpub.toml"
    file.write_text(
        f"""[storage]
url = "{each_store_url}"
[webhooks]
keys_file = "{tmp_path}/keys"
allow_networks = ["127.0.0.1/32"]
lease_seconds = 1
"""
    )
    async with open_harness(each_store_url, clock=now_ms, sends=False) as harness:
        endpoint = await harness.endpoint(receiver.url)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "fhirpub", "dispatch", "--config", str(file)),
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        assert await process.stdout.readline() == b"fhirpub sends webhooks\n"
        await harness.commits(5)
        await harness.until_states(endpoint, delivered=5)

        await freeze(process, harness.store)
        async with harness.another(lease_seconds=1.0):
            await harness.commits(5)
            await harness.until_states(endpoint, delivered=10)

        process.send_signal(signal.SIGCONT)
        await harness.commits(5)
        await harness.until_states(endpoint, delivered=15)
        process.terminate()
        assert await process.wait() == 0


async def test_a_relay_that_was_killed_before_it_marked_adds_nothing_when_repeated(
    harness: WebhookHarness, receiver: Receiver
) -> None:
    endpoint = await harness.endpoint(receiver.url)
    version = await harness.commit()
    await harness.until_states(endpoint, delivered=1)

    again = Appender(harness.store, clock=harness.clock)
    made = await again.append(
        endpoint.endpoint, events_of(OutboxEntry.of(version), fhir_url="http://x")
    )

    assert made == []
    assert len(await harness.deliveries(endpoint)) == 1


class FailingAppender(Appender):
    """An appender over a store that is away."""

    async def append(self, *_words: Any) -> list[Delivery]:
        raise StoreUnavailable("gone")


async def test_what_could_not_be_appended_is_not_marked_as_published(
    each_store_url: str, clock: HandClock
) -> None:
    async with open_harness(each_store_url, clock=clock, sends=False) as harness:
        await harness.endpoint("http://127.0.0.1:9/")
        relay = Relay(
            harness.store,
            appender=FailingAppender(harness.store, clock=clock),
            leases=Leases(harness.store, owner="a", seconds=30.0, clock=clock),
            fhir_url="http://x",
            enqueue=lambda _: None,
        )
        version = await harness.commit()

        for _round in range(2):
            with pytest.raises(StoreUnavailable):
                await relay.relay()
        await relay.finish()

        pending = await harness.store.pending_outbox(limit=10)
        assert [entry.id for _tenant, entry in pending] == [version.id]


class AtTheEnd:
    """A store that notes what an endpoint has when the last attempt of a delivery is stored."""

    def __init__(self, harness: WebhookHarness, watching: EndpointWithSecrets) -> None:
        self._harness, self._watching = harness, watching
        self.noted: list[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._harness.store, name)

    async def finish(self, results: Sequence[AttemptResult]) -> Any:
        """Note the types of the events, and store the results."""
        if any(result.state == "dead" for result in results):
            deliveries = await self._harness.deliveries(self._watching)
            self.noted.append([delivery.event_type for delivery in deliveries])
        return await self._harness.store.finish(results)


async def test_an_exhausted_delivery_has_its_event_before_its_end_is_stored(
    each_store_url: str, receiver: Receiver
) -> None:
    receiver.answer(Reply(status=500))
    async with open_harness(each_store_url, clock=now_ms, sends=False) as harness:
        endpoint = await harness.endpoint(receiver.url)
        watching = await harness.endpoint("http://127.0.0.1:9/", event_types=["message.exhausted"])
        store: Any = AtTheEnd(harness, watching)

        async with harness.another(store, retry_seconds=[0.01]):
            await harness.commit()
            await harness.until_states(endpoint, dead=1)

        assert store.noted[0] == ["message.exhausted"]
