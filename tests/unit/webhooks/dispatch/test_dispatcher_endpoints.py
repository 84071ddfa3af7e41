"""Which endpoints a process sends to, what it knows of their queues, and what it counts."""

from __future__ import annotations

import pytest

from fhirpub.testing.contracts.webhooks.records import NOW
from fhirpub.testing.samples import OTHER
from fhirpub.webhooks.policy.endpoint_health import EndpointHealth
from fhirpub.webhooks.policy.retry_policy import Breaker, FailureStreak
from tests.unit.webhooks.dispatch.dispatching import Process

TEN_MINUTES = 600_000
WARNED = EndpointHealth(streak=FailureStreak(failures=7, since=NOW))
OPEN = EndpointHealth(breaker=Breaker(state="open", until=NOW + 60_000, open_for=60_000))


# Endpoints


async def test_a_process_alone_sends_to_all_active_endpoints(process: Process) -> None:
    added = [await process.add() for _number in range(3)]

    pause = await process.look()

    assert process.lines == {one.id for one in added}
    assert process.dispatcher.heard
    assert pause == 1.0


async def test_without_endpoints_nothing_is_heard(process: Process) -> None:
    await process.look()

    assert not process.dispatcher.heard
    assert process.lines == set()


async def test_an_endpoint_that_is_paused_is_heard_as_its_deliveries_wait_for_it(
    process: Process,
) -> None:
    await process.add(state="paused")

    await process.look()

    assert process.dispatcher.heard


async def test_endpoints_are_looked_after_four_times_in_a_lease(process: Process) -> None:
    assert await Process(process.store, lease_seconds=2.0).look() == 0.5


async def test_a_new_revision_reaches_the_worker(process: Process) -> None:
    added = await process.add()
    await process.look()
    line = process.line(added)

    changed = await process.change(added, url="https://93.184.215.14/other")
    await process.look()

    assert process.line(added) is line
    assert line.endpoint.url == changed.url


async def test_an_endpoint_that_is_not_active_any_more_is_given_up(process: Process) -> None:
    added = await process.add()
    await process.look()

    await process.change(added, state="paused")
    await process.look()

    assert process.lines == set()
    assert not process.shares.holds(added.id)


async def test_an_endpoint_that_rests_is_given_up_without_its_failures(process: Process) -> None:
    added = await process.add()
    await process.look()
    process.line(added).condition = WARNED

    await process.change(added, state="paused")
    await process.look()

    stored = await process.store.endpoint(added.tenant, added.id)
    assert stored is not None
    assert EndpointHealth.read(stored.condition).streak.failures == 0


async def test_an_endpoint_with_an_attempt_in_flight_is_kept_until_it_ends(
    process: Process,
) -> None:
    added = await process.add()
    line = await process.ready(added, 1)
    process.sent.gate.clear()
    await process.begin()
    await process.change(added, state="paused")

    await process.look()
    kept, leaving = process.lines, line.leaving
    process.sent.gate.set()
    await process.settle()
    await process.look()

    assert (kept, leaving, process.lines) == ({added.id}, True, set())


async def test_of_two_processes_each_gets_half_of_the_endpoints(process: Process) -> None:
    added = {(await process.add()).id for _number in range(4)}
    await process.look()
    second = Process(process.store, "b")

    for _round in range(5):  # the least of some counts is right
        await second.look()
        await process.look()
        for one in (process, second):
            one.clock.forward(seconds=10)
    await second.look()

    assert (len(process.lines), len(second.lines)) == (2, 2)
    assert process.lines | second.lines == added


async def test_health_is_stored_when_it_has_changed_and_not_again(process: Process) -> None:
    added = await process.add()
    await process.look()
    process.line(added).condition = WARNED
    await process.dispatcher.flush()
    first = await process.store.endpoint(added.tenant, added.id)
    await process.store.save_health(added.id, b"{}")

    await process.dispatcher.flush()

    assert first is not None
    assert EndpointHealth.read(first.condition) == WARNED
    assert process.line(added).saved == WARNED.serialize()
    second = await process.store.endpoint(added.tenant, added.id)
    assert second is not None
    assert second.condition == b"{}"
    assert process.sent.drained == 2


# Queues that are read again


@pytest.mark.parametrize(("age", "read"), [(TEN_MINUTES, NOW), (TEN_MINUTES + 1, 0)])
async def test_a_queue_that_was_read_ten_minutes_ago_is_read_again(
    process: Process, age: int, read: int
) -> None:
    line = await process.ready(await process.add(), 1)
    assert line.read == NOW

    process.clock.forward(seconds=age / 1000)
    process.dispatcher._reload_stalest()

    assert line.read == read


async def test_only_the_queue_that_was_read_first_is_read_again(process: Process) -> None:
    first, second = await process.add(), await process.add()
    await process.ready(first, 1)
    process.line(first).read = NOW - 1
    process.clock.forward(seconds=2 * TEN_MINUTES / 1000)

    process.dispatcher._reload_stalest()

    assert [process.line(one).read for one in (first, second)] == [0, NOW]


# What moves to another process


async def test_the_idle_one_of_two_active_endpoints_is_given_away(process: Process) -> None:
    busy, idle = await process.add(), await process.add()
    await process.ready(busy, 1)
    process.sent.gate.clear()
    await process.begin()

    assert process.dispatcher._choose_surplus(1) == [idle.id]
    assert (process.line(busy).leaving, process.line(idle).leaving) == (False, True)
    process.sent.gate.set()


async def test_an_endpoint_that_was_leaving_goes_on_leaving(process: Process) -> None:
    one, other = await process.add(), await process.add()
    await process.look()
    for leaving in (one, other):
        process.line(one).leaving = leaving is one
        process.line(other).leaving = leaving is other
        assert process.dispatcher._choose_surplus(1) == [leaving.id]


async def test_without_a_surplus_nothing_leaves(process: Process) -> None:
    added = await process.add()
    await process.look()
    process.line(added).leaving = True

    assert process.dispatcher._choose_surplus(0) == []
    assert not process.line(added).leaving


# Metrics


async def test_what_waits_is_counted_over_all_endpoints(process: Process) -> None:
    first, second = await process.add(), await process.add()
    await process.store_deliveries(first, 3, 4)
    await process.ready(second, 2)

    assert process.dispatcher.depth() == 3
    assert process.dispatcher.oldest() == NOW + 2


async def test_without_deliveries_there_is_no_oldest_one(process: Process) -> None:
    await process.add()
    await process.look()

    assert process.dispatcher.oldest() is None
    assert process.dispatcher.depth() == 0


async def test_breakers_are_counted_by_their_state(process: Process) -> None:
    await process.add()
    await process.add(condition=OPEN.serialize())
    await process.add(condition=OPEN.serialize())
    await process.look()

    counts = [process.dispatcher.breakers(state) for state in ("closed", "open", "half-open")]

    assert counts == [1, 2, 0]


async def test_of_each_tenant_the_delivery_that_waits_longest_counts(process: Process) -> None:
    first, second = await process.add(), await process.add()
    other = await process.add(tenant=OTHER)
    await process.store_deliveries(first, 5)
    await process.store_deliveries(second, 3)
    await process.ready(other, 4)
    process.clock.forward(seconds=10)
    for line in process.dispatcher._lines.values():
        line.queue.take(process.clock(), 0)

    assert process.dispatcher.waiting_since() == {first.tenant: NOW + 3, OTHER: NOW + 4}


async def test_what_the_receiver_holds_up_waits_for_no_process(process: Process) -> None:
    closed = await process.add(condition=OPEN.serialize())
    await process.ready(closed, 1)

    assert process.dispatcher.waiting_since() == {}


async def test_an_endpoint_that_is_gone_waits_for_nothing(process: Process) -> None:
    line = await process.ready(await process.add(), 1)
    line.queue.take(process.clock(), 0)
    process.dispatcher._lines.clear()

    assert process.dispatcher.waiting_since() == {}
    assert line.waits_for_process(process.clock()) is not None


async def test_an_endpoint_without_deliveries_waits_for_nothing(process: Process) -> None:
    await process.add()
    await process.look()
    await process.load()

    assert process.dispatcher.waiting_since() == {}


async def test_health_that_changed_between_two_reads_is_known(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = await process.add()
    share = process.shares.update

    async def update(active: set[str]) -> int:
        await process.store.save_health(added.id, WARNED.serialize())  # by the previous owner
        return await share(active)

    monkeypatch.setattr(process.shares, "update", update)

    await process.look()

    assert process.line(added).condition == WARNED


async def test_health_that_was_stored_is_known(process: Process) -> None:
    added = await process.add(condition=WARNED.serialize())

    await process.look()

    assert process.line(added).condition == WARNED


async def test_health_that_changes_while_it_is_stored_is_stored_again(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = await process.add()
    await process.look()
    line, save = process.line(added), process.store.save_health
    former, latest = EndpointHealth(throttled=NOW + 1), EndpointHealth(throttled=NOW + 2)

    async def then_change(endpoint_id: str, condition: bytes) -> None:
        await save(endpoint_id, condition)
        line.condition = latest

    line.condition = former
    monkeypatch.setattr(process.store, "save_health", then_change)
    for _again in range(2):
        await process.dispatcher.flush()

    stored = await process.store.endpoint(added.tenant, added.id)
    assert stored is not None
    assert stored.condition == latest.serialize()


async def test_the_queue_of_an_endpoint_that_was_taken_is_read_without_a_pause(
    process: Process,
) -> None:
    await process.add()

    await process.look()

    assert process.dispatcher._loading._bell.is_set()


async def test_health_of_another_endpoint_that_changed_between_two_reads_is_known(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    await process.add()
    await process.look()
    added = await process.add()
    share = process.shares.update

    async def update(active: set[str]) -> int:
        await process.store.save_health(added.id, WARNED.serialize())  # by the previous owner
        return await share(active)

    monkeypatch.setattr(process.shares, "update", update)
    await process.look()

    assert process.line(added).condition == WARNED


async def test_an_endpoint_with_nothing_to_send_hides_no_other_that_waits(
    process: Process,
) -> None:
    await process.add()
    waiting = await process.add()
    (await process.ready(waiting, 1)).queue.take(process.clock(), 0)
    idle = next(name for name in process.lines if name != waiting.id)
    process.dispatcher._awake = dict.fromkeys([idle, waiting.id])
    process.clock.forward(seconds=10)
    process.line(waiting).queue.take(process.clock(), 0)

    assert process.dispatcher.waiting_since() == {waiting.tenant: NOW + 1}
