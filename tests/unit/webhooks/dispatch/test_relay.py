"""The relay marks what it has published as soon as that is safe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from fhirpub.errors import StoreUnavailable
from fhirpub.interactions.versions import with_trace
from fhirpub.runtime.clock import Clock, now_ms
from fhirpub.storage.leases import Leases
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.webhook_contract import Delivery, DeliveryQuery
from fhirpub.testing.clock import HandClock
from fhirpub.testing.samples import LAB, OTHER, a_version
from fhirpub.testing.webhook_contract import an_endpoint, events_added, pending_keys
from fhirpub.webhooks.dispatch.appender import Appender
from fhirpub.webhooks.dispatch.relay import Relay
from fhirpub.webhooks.transport.envelope import trace_of
from tests.unit.runtime.tracing.traces import PARENT, TRACE, Traces
from tests.unit.webhooks.dispatch.versions import CREATED, stored


def relay_of(store: SqliteStore, tracer: Traces | None = None, *, clock: Clock = now_ms) -> Relay:
    return Relay(
        store,
        appender=Appender(store, clock=clock),
        leases=Leases(store, owner="this", seconds=10, clock=clock),
        fhir_url="https://fhir.example/r4",
        enqueue=lambda _deliveries: None,
        tracer=tracer,
    )


@pytest.fixture
def relay(store: SqliteStore) -> Relay:
    """The relay of the store."""
    return relay_of(store)


async def test_versions_without_an_endpoint_are_marked_in_the_same_round(
    store: SqliteStore, relay: Relay
) -> None:
    await events_added(store, [a_version() for _ in range(3)])

    assert await relay.relay(most=2) == 2
    assert len(await pending_keys(store)) == 1
    assert await relay.relay() == 1
    assert await pending_keys(store) == []
    assert await relay.relay() == 0


async def test_versions_with_deliveries_are_marked_in_the_next_round(
    store: SqliteStore, relay: Relay
) -> None:
    endpoint = an_endpoint()
    await store.put_endpoint(LAB, endpoint)
    version = await stored(store, LAB)

    assert await relay.relay() == 1
    assert [each.sequence for each in await store.waiting(endpoint.id)] == [1]
    assert await pending_keys(store) == [(version, 1)]
    assert await relay.relay() == 0
    assert await pending_keys(store) == []


async def test_the_lag_of_a_tenant_is_that_of_its_oldest_version_in_any_order(
    store: SqliteStore, relay: Relay
) -> None:
    await store.put_endpoint(LAB, an_endpoint())
    await events_added(store, [a_version(updated=moment) for moment in (3_000, 1_000, 2_000)])
    await events_added(store, [a_version(updated=500)], OTHER)

    await relay.relay()

    assert relay.oldest == 500
    assert relay.oldest_by_tenant == {LAB: 1_000}


async def test_a_round_that_finds_nothing_leaves_no_lag(store: SqliteStore, relay: Relay) -> None:
    await store.put_endpoint(LAB, an_endpoint())
    await stored(store, LAB)

    await relay.relay()
    await relay.relay()

    assert (relay.oldest, relay.oldest_by_tenant) == (None, {})


async def test_a_relay_that_is_replaced_by_another_has_no_lag(store: SqliteStore) -> None:
    clock = HandClock()
    relay = relay_of(store, clock=clock)
    await store.put_endpoint(LAB, an_endpoint())
    await stored(store, LAB)
    await relay.relay()
    assert relay.oldest_by_tenant.keys() == {LAB}

    clock.forward(seconds=10)
    await Leases(store, owner="other", seconds=10, clock=clock).take(["relay"])
    assert await relay.relay() is None

    assert (relay.oldest, relay.oldest_by_tenant) == (None, {})


async def waiting(store: SqliteStore, endpoint: str) -> int:
    return len(await store.waiting(endpoint))


async def test_events_are_for_the_endpoints_of_their_tenant_that_want_them(
    store: SqliteStore, relay: Relay
) -> None:
    wanting, other = an_endpoint(), an_endpoint(events=("patient.*",))
    foreign = an_endpoint(tenant=OTHER)
    for each in (wanting, other, foreign):
        await store.put_endpoint(each.tenant, each)
    await stored(store, LAB)

    await relay.relay()

    counts = [await waiting(store, each.id) for each in (wanting, other, foreign)]
    assert counts == [1, 0, 0]


async def test_a_version_that_cannot_be_read_stays_and_holds_up_no_other(
    store: SqliteStore, relay: Relay
) -> None:
    endpoint = an_endpoint()
    await store.put_endpoint(LAB, endpoint)
    broken = await stored(store, LAB, b'[{"id":"x"}]')
    await stored(store, LAB)

    assert await relay.relay(most=2) == 1
    assert await relay.relay(most=1) == 0
    assert await pending_keys(store) == [(broken, 1)]
    await stored(store, LAB)
    assert await relay.relay(most=1) == 1
    assert await waiting(store, endpoint.id) == 2


async def test_a_later_version_that_cannot_be_read_stays_and_the_first_does_not(
    store: SqliteStore, relay: Relay
) -> None:
    await store.put_endpoint(LAB, an_endpoint())
    version = a_version()
    first = replace(version, events=CREATED % version.id.encode())
    await store.add(LAB, first)
    await store.add(LAB, replace(version, version=2, events=b'[{"id":"x"}]'))

    assert [await relay.relay() for _round in range(3)] == [1, 0, 0]
    assert await pending_keys(store) == [(version.id, 2)]


async def test_a_version_that_cannot_be_read_is_logged_once_and_is_no_lag(
    store: SqliteStore, relay: Relay
) -> None:
    await store.put_endpoint(LAB, an_endpoint())
    await stored(store, LAB, b'[{"id":"x"}]')

    with capture_logs() as logs:
        for _round in range(3):
            await relay.relay()

    assert [line["event"] for line in logs] == ["events not relayed"]
    assert (relay.oldest, relay.oldest_by_tenant) == (None, {})


async def test_while_another_process_relays_this_one_does_not(
    store: SqliteStore, relay: Relay
) -> None:
    other = Leases(store, owner="other", seconds=10, clock=now_ms)
    await other.take(["relay"])
    await stored(store, LAB)

    assert await relay.relay() is None
    assert not relay.leading
    assert relay.oldest is None
    assert len(await pending_keys(store)) == 1


async def test_what_was_relayed_last_is_marked_at_the_end(
    store: SqliteStore, relay: Relay
) -> None:
    await store.put_endpoint(LAB, an_endpoint())
    await stored(store, LAB)
    await relay.relay()

    await relay.finish()

    assert await pending_keys(store) == []


# Traces


async def trace_of_delivery(store: SqliteStore, tracer: Traces | None, trace: str = PARENT) -> str:
    """Relay an event of a request with a trace, and return the trace that is sent with it."""
    endpoint = an_endpoint()
    await store.put_endpoint(LAB, endpoint)
    await stored(store, LAB, with_trace(CREATED, trace) if trace else CREATED)
    await relay_of(store, tracer).relay()
    (delivery,) = await store.deliveries(LAB, DeliveryQuery(endpoint=endpoint.id))
    return trace_of(delivery.body)


async def test_deliveries_follow_the_span_of_their_relay_in_the_trace_of_the_request(
    store: SqliteStore,
) -> None:
    tracer = Traces()

    sent = await trace_of_delivery(store, tracer)

    (span,) = tracer.spans
    assert (span.name, span.kind, span.ends) == ("relay", "producer", [({}, False)])
    assert span.parent is not None
    assert (span.parent.header, sent) == (PARENT, f"00-{TRACE}-{1:016x}-01")


async def test_a_span_ends_once_however_often_the_relay_works(store: SqliteStore) -> None:
    tracer = Traces()
    relay = relay_of(store, tracer)
    await store.put_endpoint(LAB, an_endpoint())

    for _event in range(2):
        await stored(store, LAB, with_trace(CREATED, PARENT))
        await relay.relay()

    assert [span.ends for span in tracer.spans] == [[({}, False)]] * 2


@pytest.mark.parametrize(
    "tracer", [None, Traces(is_sent=False)], ids=["no tracer", "a trace that is not sent"]
)
async def test_without_a_span_deliveries_follow_the_request(
    store: SqliteStore, tracer: Traces | None
) -> None:
    assert await trace_of_delivery(store, tracer) == PARENT


async def test_an_event_of_a_request_without_a_trace_begins_none(store: SqliteStore) -> None:
    tracer = Traces()

    assert await trace_of_delivery(store, tracer, trace="") == ""
    assert tracer.spans == []


# Endpoints of one tenant


async def test_each_endpoint_of_a_tenant_gets_each_event(store: SqliteStore, relay: Relay) -> None:
    endpoints = [an_endpoint() for _number in range(3)]
    for each in endpoints:
        await store.put_endpoint(LAB, each)
    for _event in range(2):
        await stored(store, LAB)

    await relay.relay()

    assert [await waiting(store, each.id) for each in endpoints] == [2, 2, 2]


async def test_what_could_not_be_appended_to_one_queue_is_relayed_again_and_to_no_other_twice(
    store: SqliteStore, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing, other = an_endpoint(), an_endpoint()
    for each in (failing, other):
        await store.put_endpoint(LAB, each)
    version = await stored(store, LAB)
    append = store.append

    async def fail(deliveries: Sequence[Delivery]) -> int:
        if deliveries[0].endpoint == failing.id:
            raise StoreUnavailable("away")
        return await append(deliveries)

    with monkeypatch.context() as patched:
        patched.setattr(store, "append", fail)
        with pytest.raises(StoreUnavailable):
            await relay.relay()
        with pytest.raises(StoreUnavailable):
            await relay.relay()
    assert await pending_keys(store) == [(version, 1)]
    assert await relay.relay() == 1

    assert [await waiting(store, each.id) for each in (failing, other)] == [1, 1]


async def test_all_spans_of_a_round_end_also_if_it_fails(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracer = Traces()
    relay = relay_of(store, tracer)
    await store.put_endpoint(LAB, an_endpoint())
    for _event in range(2):
        await stored(store, LAB, with_trace(CREATED, PARENT))

    async def fail(_deliveries: Sequence[Delivery]) -> int:
        raise StoreUnavailable("away")

    monkeypatch.setattr(store, "append", fail)
    with pytest.raises(StoreUnavailable):
        await relay.relay()

    assert [len(span.ends) for span in tracer.spans] == [1, 1]
