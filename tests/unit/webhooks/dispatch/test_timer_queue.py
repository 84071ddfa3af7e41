"""Timers fire once, in order, and need no more memory when they are set repeatedly."""

from __future__ import annotations

from fhirpub.webhooks.dispatch.timer_queue import TimerQueue


def test_what_has_come_rings_in_its_order_and_once() -> None:
    alarms = TimerQueue()
    for moment, name in ((30, "c"), (10, "a"), (20, "b")):
        alarms.add(moment, name)

    assert [alarms.pop_due(9), alarms.pop_due(20), alarms.pop_due(20)] == [[], ["a", "b"], []]
    assert (alarms.earliest, alarms.pop_due(30), alarms.earliest) == (30, ["c"], None)


def test_a_far_alarm_is_kept_once_however_often_nearer_ones_ring() -> None:
    alarms = TimerQueue()

    for now in range(1_000):
        alarms.add(86_400_000, "e")
        alarms.add(now, "e")
        alarms.pop_due(now)

    assert len(alarms) == 1
