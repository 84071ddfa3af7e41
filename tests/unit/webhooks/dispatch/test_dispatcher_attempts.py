"""Which deliveries are loaded and begun, when the next ones are, and how attempts end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from fhirpub.errors import StoreUnavailable
from fhirpub.testing.contracts.webhooks.records import NOW, a_delivery
from fhirpub.testing.samples import OTHER
from tests.unit.webhooks.dispatch.dispatching import Process
from tests.waiting import until

AFTER_TIMEOUT = 25_000
"""The usual timeout of an attempt, and the usual length of a lease, in milliseconds."""


# Queues


async def test_new_deliveries_are_begun_without_a_read(process: Process) -> None:
    added = await process.add()
    line = await process.ready(added)
    made = await process.store_deliveries(added, 1, 2)

    process.dispatcher.enqueue(made)
    await process.begin()
    await process.settle()

    assert process.sent.events == ["evt_1", "evt_2"]
    assert not line.behind


async def test_new_deliveries_of_another_process_are_left_to_it(process: Process) -> None:
    line = await process.ready(await process.add())

    process.dispatcher.enqueue([a_delivery("other")])
    process.dispatcher.enqueue([])

    assert (len(line.queue), line.behind, process.dispatcher.depth()) == (0, False, 0)


@pytest.mark.parametrize(
    ("attribute", "value", "first"),
    [
        ("behind", False, 2),
        ("read", 0, 1),
        ("reading", True, 1),
        ("behind", True, 1),
        ("most_queued", 1, 1),
    ],
    ids=["gap", "stale", "reading", "behind", "full"],
)
async def test_new_deliveries_that_cannot_follow_are_read_later(
    process: Process, attribute: str, value: int, first: int
) -> None:
    line = await process.ready(await process.add())
    assert (line.reading, line.behind) == (False, False)
    setattr(line, attribute, value)

    process.dispatcher.enqueue([a_delivery(line.endpoint.id, first + one) for one in range(2)])

    assert (len(line.queue), line.behind) == (0, True)


async def test_a_queue_takes_as_many_as_it_has_room_for(process: Process) -> None:
    line = await process.ready(await process.add())
    line.most_queued = 2

    process.dispatcher.enqueue([a_delivery(line.endpoint.id, 1 + one) for one in range(2)])

    assert (len(line.queue), line.behind) == (2, False)


async def test_deliveries_that_another_process_made_are_found(process: Process) -> None:
    added = await process.add()
    line = await process.ready(added, 1)
    await process.store_deliveries(added, 2)

    await asyncio.sleep(0.001)
    process.dispatcher._polled = 0.0
    pause = await process.load()

    assert (len(line.queue), pause) == (2, 0.025)


async def test_an_idle_process_asks_ten_times_a_second(process: Process) -> None:
    await process.ready(await process.add())

    assert await process.load() == 0.1


async def test_a_process_that_learns_of_each_delivery_asks_once_a_second(
    process: Process,
) -> None:
    await process.ready(await process.add())
    process.dispatcher.informed = True
    process.dispatcher._busy_until = float("inf")

    assert await process.load() == 1.0


async def test_the_store_is_not_asked_again_before_the_pause_is_over(process: Process) -> None:
    added = await process.add()
    line = await process.ready(added, 1)
    process.dispatcher._polled = asyncio.get_running_loop().time() + 60
    await process.store_deliveries(added, 2)

    await process.load()

    assert len(line.queue) == 1


# Attempts


async def test_what_was_begun_is_begun_again_at_once(process: Process) -> None:
    await process.ready(await process.add(), 1)

    assert await process.begin() == 0.0


async def test_with_nothing_to_do_a_process_looks_again_after_a_second(process: Process) -> None:
    assert await process.begin() == 1.0


async def test_a_process_sleeps_until_the_next_delivery_is_due(process: Process) -> None:
    line = await process.ready(await process.add())
    line.queue.add([])
    process.dispatcher._awake.clear()
    for wait, pause in ((60_000, 0.1), (40, 0.04), (0, 0.001)):
        process.dispatcher._alarms.pop_due(NOW + 10**9)
        process.dispatcher._alarms.add(NOW + wait + (wait == 0), line.endpoint.id)
        assert await process.begin() == pause


async def test_a_delivery_is_leased_for_an_attempt_and_the_margin(process: Process) -> None:
    added = await process.add()
    await process.ready(added, 1)
    process.sent.gate.clear()
    await process.begin()

    lease = NOW + AFTER_TIMEOUT
    keys = [(added.id, "evt_1")]

    during = await process.store.begin(keys, now=lease - 1, until=lease)
    after = await process.store.begin(keys, now=lease, until=lease + 1)

    assert (len(during), len(after)) == (0, 1)
    process.sent.gate.set()


async def test_no_more_attempts_are_in_flight_than_the_setting(process: Process) -> None:
    small = Process(process.store, in_flight=2)
    tenants = [f"{number}1111111-1111-4111-8111-111111111111" for number in range(1, 5)]
    added = [await small.add(tenant=one) for one in tenants]
    for one in added[1:]:
        await small.store_deliveries(one, 1)
    await small.ready(added[0], 1)
    small.sent.gate.clear()

    for _round in range(3):
        await small.begin()
    await asyncio.sleep(0)
    first = len(small.sent.events)
    small.sent.gate.set()
    await small.settle()
    await small.begin()
    await asyncio.sleep(0)

    assert (first, len(small.sent.events)) == (2, 4)


async def test_nothing_is_begun_of_an_endpoint_whose_lease_has_ended(process: Process) -> None:
    await process.ready(await process.add(), 1)
    process.clock.forward(seconds=31)

    await process.begin()

    assert process.sent.events == []


async def test_slots_of_a_tenant_are_free_again_once_its_attempts_have_ended(
    process: Process,
) -> None:
    first, other = await process.add(), await process.add(tenant=OTHER)
    await process.store_deliveries(first, 1, 2)
    await process.ready(other, 1)
    process.sent.gate.clear()
    await process.begin()
    counted = dict(process.dispatcher._tenants)

    process.sent.gate.set()
    await process.settle()

    assert counted == {first.tenant: 2, OTHER: 1}
    assert not process.dispatcher._tenants


async def test_what_another_process_has_begun_waits_and_is_read_again(process: Process) -> None:
    added = await process.add()
    line = await process.ready(added, 1)
    await process.store.begin([(added.id, "evt_1")], now=NOW, until=NOW + 60_000)

    await process.begin()

    assert process.sent.events == []
    assert line.stale
    assert line.next_moment(NOW) == NOW + 1_000


async def test_what_could_not_be_begun_waits_and_is_read_again(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = await process.ready(await process.add(), 1)

    async def fail(*_arguments: Any, **_named: Any) -> None:
        raise StoreUnavailable("it is away")

    monkeypatch.setattr(process.store, "begin", fail)
    with pytest.raises(StoreUnavailable):
        await process.begin()

    assert line.stale
    assert line.queue.taken == 0


async def test_each_endpoint_of_which_nothing_could_be_begun_is_read_again(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = [await process.add(), await process.add(tenant=OTHER)]
    await process.store_deliveries(added[0], 1, 2)
    await process.ready(added[1], 1, 2)

    async def of_others(*_arguments: Any, **_named: Any) -> tuple[()]:
        return ()

    monkeypatch.setattr(process.store, "begin", of_others)
    await process.begin()

    lines = [process.line(one) for one in added]
    assert [(line.stale, line.queue.taken) for line in lines] == [(True, 0)] * 2


async def test_an_attempt_whose_outcome_is_lost_is_due_when_its_lease_has_ended(
    process: Process,
) -> None:
    line = await process.ready(await process.add(), 1)
    process.sent.problem = RuntimeError("a secret")

    with capture_logs() as logs:
        await process.begin()
        await process.settle()

    assert line.next_moment(NOW) == NOW + AFTER_TIMEOUT
    (entry,) = [one for one in logs if one["event"] == "outcome of a webhook lost"]
    assert (entry["log_level"], entry["event_id"]) == ("error", "evt_1")
    assert "a secret" not in str(entry)


async def test_an_attempt_whose_outcome_is_lost_late_waits_for_its_lease_from_then_on(
    process: Process,
) -> None:
    line = await process.ready(await process.add(), 1)
    process.sent.problem = RuntimeError("a fault")
    process.sent.gate.clear()
    await process.begin()
    process.clock.forward(seconds=10)

    process.sent.gate.set()
    await process.settle()

    assert line.queue.next_moment() == NOW + 10_000 + AFTER_TIMEOUT


async def test_a_delivery_that_failed_is_begun_when_it_is_due(process: Process) -> None:
    line = await process.ready(await process.add(), 1)
    process.sent.problem = RuntimeError()
    await process.begin()
    await process.settle()
    process.sent.problem = None
    await process.begin()

    waits = line.alarm
    process.clock.forward(seconds=AFTER_TIMEOUT / 1000)
    await process.shares.update([line.endpoint.id])
    await process.begin()
    await process.settle()

    assert waits == NOW + AFTER_TIMEOUT
    assert line.alarm is None
    assert process.sent.events == ["evt_1", "evt_1"]


async def test_an_earlier_alarm_replaces_a_later_one_and_not_the_other_way_round(
    process: Process,
) -> None:
    line = await process.ready(await process.add(), 1)
    line.queue.take(NOW, 1)
    alarms = []
    for due in (NOW + 500, NOW + 300, NOW + 400):
        line.queue.back("evt_1", due=due, number=1)
        process.dispatcher._schedule_wake_up(line, NOW)
        alarms.append((line.alarm, process.dispatcher._alarms.earliest))
        line.queue.take(due, 1)

    assert alarms == [(NOW + 500,) * 2, (NOW + 300,) * 2, (NOW + 300,) * 2]


async def test_an_alarm_that_has_rung_is_not_set_any_more_although_the_endpoint_was_awake(
    process: Process,
) -> None:
    line = await process.ready(await process.add(), 1)
    line.queue.take(NOW, 1)
    line.queue.back("evt_1", due=NOW + 500, number=1)
    process.dispatcher._schedule_wake_up(line, NOW)
    process.dispatcher._wake(line)
    process.clock.now = NOW + 500

    process.dispatcher._choose(NOW + 500)

    assert (line.queue.taken, line.alarm) == (1, None)


async def test_an_endpoint_with_nothing_to_send_is_not_looked_at_again(process: Process) -> None:
    line = await process.ready(await process.add())
    process.dispatcher._awake.clear()

    process.dispatcher._schedule_wake_up(line, NOW)

    assert (line.alarm, dict(process.dispatcher._awake)) == (None, {})


# The end


async def test_attempts_that_end_in_time_are_waited_for(process: Process) -> None:
    await process.ready(await process.add(), 1)
    process.sent.gate.clear()
    await process.begin()
    loop = asyncio.get_running_loop()
    loop.call_later(0.01, process.sent.gate.set)

    await process.dispatcher.drain(loop.time() + 30)

    assert process.dispatcher.depth() == 0


async def test_attempts_that_do_not_end_in_time_are_cancelled(process: Process) -> None:
    await process.ready(await process.add(), 1)
    process.sent.gate.clear()
    await process.begin()

    async with asyncio.timeout(30):
        await process.dispatcher.drain(asyncio.get_running_loop().time())

    assert process.dispatcher.depth() == 1
    assert not process.dispatcher._under_way


async def test_a_process_runs_until_it_is_stopped(process: Process) -> None:
    added = await process.add()
    await process.store_deliveries(added, 1)
    running = asyncio.create_task(process.dispatcher.run())

    await until(lambda: process.sent.events == ["evt_1"])
    assert not running.done()
    process.dispatcher.stop()

    await asyncio.wait_for(running, 30)
