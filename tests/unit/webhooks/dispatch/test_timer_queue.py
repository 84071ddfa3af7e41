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


def test_a_queue_without_alarms_has_no_earliest() -> None:
    alarms = TimerQueue()

    assert (len(alarms), alarms.earliest, alarms.pop_due(10**15)) == (0, None, [])


def test_an_alarm_rings_at_its_moment_and_not_before() -> None:
    alarms = TimerQueue()
    alarms.add(10, "a")

    assert alarms.pop_due(9) == []
    assert alarms.pop_due(10) == ["a"]


def test_one_name_may_have_alarms_at_several_moments() -> None:
    alarms = TimerQueue()
    for moment in (20, 10, 20):
        alarms.add(moment, "a")

    assert (len(alarms), alarms.earliest) == (2, 10)
    assert alarms.pop_due(20) == ["a", "a"]


def test_alarms_of_one_moment_ring_for_each_name() -> None:
    alarms = TimerQueue()
    for name in ("b", "a"):
        alarms.add(10, name)

    assert alarms.pop_due(10) == ["a", "b"]


def test_an_alarm_that_has_rung_may_be_set_again() -> None:
    alarms = TimerQueue()
    alarms.add(10, "a")
    alarms.pop_due(10)

    alarms.add(10, "a")

    assert alarms.pop_due(10) == ["a"]
