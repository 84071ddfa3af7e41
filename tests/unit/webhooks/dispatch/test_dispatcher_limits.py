"""What a process takes at most, what it gives away, and what it does again after a failure."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.testing.contracts.webhooks.records import NOW, a_delivery
from fhirpub.testing.samples import OTHER
from fhirpub.webhooks.dispatch import dispatcher
from fhirpub.webhooks.dispatch.queue import WINDOW
from fhirpub.webhooks.policy.endpoint_health import EndpointHealth
from fhirpub.webhooks.policy.retry_policy import FailureStreak
from tests.unit.webhooks.dispatch.dispatching import Process

WARNED = EndpointHealth(streak=FailureStreak(failures=7, since=NOW))


async def test_the_share_of_a_tenant_counts_over_all_of_its_endpoints(process: Process) -> None:
    small = Process(process.store, in_flight=8)
    for _number in range(8):
        await small.store_deliveries(await small.add(), 1)
    other = await small.add(tenant=OTHER)
    await small.look()
    await small.load()
    small.sent.gate.clear()

    for _round in range(2):
        await small.begin()
    first = len(small.dispatcher._under_way)
    await small.store_deliveries(other, 1)
    small.dispatcher._polled = 0.0
    await small.load()
    await small.begin()

    assert (first, dict(small.dispatcher._tenants)[OTHER]) == (6, 1)
    small.sent.gate.set()


async def test_the_endpoints_of_a_tenant_divide_what_its_queues_may_hold(process: Process) -> None:
    added = [await process.add() for _number in range(4)]
    alone = await process.add(tenant=OTHER)

    await process.look()

    assert [process.line(one).most_queued for one in added] == [WINDOW // 4] * 4
    assert process.line(alone).most_queued == WINDOW


async def test_a_queue_that_was_read_long_ago_is_read_again_after_a_look(process: Process) -> None:
    line = await process.ready(await process.add(), 1)
    process.clock.forward(seconds=601)

    await process.look()
    assert line.stale
    await process.load()

    assert line.read == process.clock()


async def test_attempts_are_begun_in_batches(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "_BATCH_SIZE", 2)
    added = [await process.add() for _number in range(4)]
    for one in added[1:]:
        await process.store_deliveries(one, 1)
    await process.ready(added[0], 1)
    process.sent.gate.clear()

    begun = []
    for _batch in range(2):
        await process.begin()
        begun.append(len(process.dispatcher._under_way))

    assert begun == [2, 4]
    process.sent.gate.set()


async def test_while_slots_are_taken_a_process_looks_again_after_a_tenth_of_a_second(
    process: Process,
) -> None:
    small = Process(process.store, in_flight=1)
    await small.store_deliveries(await small.add(), 1)
    await small.ready(await small.add(), 1)
    small.sent.gate.clear()

    assert [await small.begin() for _round in range(2)] == [0.0, 0.1]
    small.sent.gate.set()


async def test_deliveries_with_a_gap_between_them_are_read(process: Process) -> None:
    line = await process.ready(await process.add())

    process.dispatcher.enqueue([a_delivery(line.endpoint.id, number) for number in (1, 3)])

    assert (len(line.queue), line.behind) == (0, True)


async def test_a_queue_that_has_room_for_more_is_loaded_on_at_once(process: Process) -> None:
    added = await process.add()
    line = await process.ready(added)
    line.most_queued = 100
    await process.store_deliveries(added, *range(1, 111))
    line.behind = True

    pauses = [await process.load() for _page in range(2)]

    assert (len(line.queue), pauses[0]) == (100, 0.0)
    assert pauses[1] > 0


async def test_a_process_knows_when_it_has_asked_the_store(process: Process) -> None:
    await process.ready(await process.add())

    assert process.dispatcher._polled > 0


async def test_an_inactive_endpoint_counts_among_those_given_away(process: Process) -> None:
    active = [await process.add() for _number in range(3)]
    paused = await process.add()
    await process.look()
    process.line(paused).endpoint = replace(paused, state="paused", revision=2)

    assert process.dispatcher._choose_surplus(1) == [paused.id]
    assert not any(process.line(one).leaving for one in active)


async def test_an_endpoint_that_leaves_after_its_attempts_is_not_replaced_by_an_idle_one(
    process: Process,
) -> None:
    busy, idle = await process.add(), await process.add()
    await process.ready(busy, 1)
    process.sent.gate.clear()
    await process.begin()
    process.line(busy).leaving = True

    assert process.dispatcher._choose_surplus(1) == []
    assert (process.line(busy).leaving, process.line(idle).leaving) == (True, False)
    process.sent.gate.set()


async def test_an_endpoint_that_was_deleted_is_given_up(process: Process) -> None:
    added, other = await process.add(), await process.add()
    await process.look()

    await process.change(added, state="deleted")
    for _round in range(2):
        await process.look()

    assert process.lines == {other.id}
    assert process.shares.owned == {other.id}


async def test_a_new_url_reaches_the_worker_with_all_that_follows(process: Process) -> None:
    added = await process.add()
    await process.look()
    line = process.line(added)
    line.condition, line.disabling = WARNED, True

    await process.change(added, url="https://93.184.215.14/other")
    await process.look()

    assert (line.condition, line.disabling) == (EndpointHealth(), False)


async def away(*_arguments: Any) -> None:
    raise StoreUnavailable("away")


async def test_health_that_could_not_be_stored_is_stored_later(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = await process.add()
    await process.look()
    process.line(added).condition = WARNED
    with monkeypatch.context() as patched:
        patched.setattr(process.store, "save_health", away)
        with pytest.raises(StoreUnavailable):
            await process.dispatcher.flush()
    drained = process.sent.drained

    await process.dispatcher.flush()

    stored = await process.store.endpoint(added.tenant, added.id)
    assert stored is not None
    assert (stored.condition, drained) == (WARNED.serialize(), 1)


async def test_an_endpoint_whose_health_could_not_be_stored_is_not_given_away(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = await process.add()
    await process.look()
    process.line(added).condition = EndpointHealth(throttled=NOW + 60_000)
    await process.change(added, state="paused")

    with monkeypatch.context() as patched:
        patched.setattr(process.store, "save_health", away)
        with pytest.raises(StoreUnavailable):
            await process.look()
    kept = process.shares.holds(added.id)
    await process.look()

    assert (kept, process.shares.holds(added.id)) == (True, False)


async def test_attempts_that_end_are_not_cancelled_with_those_that_do_not(
    process: Process,
) -> None:
    first, other = await process.add(), await process.add()
    await process.store_deliveries(first, 1)
    await process.ready(other, 1)
    process.sent.gate.clear()
    await process.begin()
    tasks = [*process.dispatcher._under_way]

    process.sent.gate.set()
    await process.dispatcher.drain(asyncio.get_running_loop().time() + 30)

    assert [task.cancelled() for task in tasks] == [False, False]


# What is noticed at once


async def test_new_deliveries_are_begun_although_nothing_was_due_before(process: Process) -> None:
    added = await process.add()
    await process.ready(added)
    await process.begin()

    process.dispatcher.enqueue(await process.store_deliveries(added, 1))
    await process.begin()
    await process.settle()

    assert process.sent.events == ["evt_1"]


async def test_deliveries_that_were_read_are_begun_although_nothing_was_due_before(
    process: Process,
) -> None:
    added = await process.add()
    line = await process.ready(added)
    await process.begin()

    await process.store_deliveries(added, 1)
    line.behind = True
    await process.load()
    await process.begin()
    await process.settle()

    assert process.sent.events == ["evt_1"]


async def test_deliveries_that_cannot_be_added_are_read_without_a_pause(process: Process) -> None:
    line = await process.ready(await process.add())
    process.dispatcher._loading._bell.clear()

    process.dispatcher.enqueue([a_delivery(line.endpoint.id, 2)])

    assert process.dispatcher._loading._bell.is_set()


# Leases


async def test_an_endpoint_that_is_paused_is_not_taken_again(process: Process) -> None:
    added = await process.add(state="paused")

    for _round in range(2):
        await process.look()
        assert process.lines == set()
        assert not process.shares.holds(added.id)


async def test_only_active_endpoints_are_divided_among_processes(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted: list[set[str]] = []
    share = process.shares.update

    async def update(active: set[str]) -> int:
        wanted.append(active)
        return await share(active)

    monkeypatch.setattr(process.shares, "update", update)
    active = await process.add()
    for state in ("paused", "disabled", "unverified", "deleted"):
        await process.add(state=state)

    await process.look()

    assert wanted == [{active.id}]


async def test_an_endpoint_that_another_process_has_taken_over_is_forgotten(
    process: Process,
) -> None:
    added = await process.add()
    await process.look()
    second = Process(process.store, "b")
    for one in (process, second):
        one.clock.forward(seconds=31)
    await second.look()

    await process.look()

    assert (process.lines, second.lines) == (set(), {added.id})


async def test_all_endpoints_that_rest_are_given_up_at_once(process: Process) -> None:
    added = [await process.add() for _number in range(3)]
    await process.look()
    for one in added:
        await process.change(one, state="paused")

    await process.look()

    assert process.lines == set()
    assert not any(process.shares.holds(one.id) for one in added)
