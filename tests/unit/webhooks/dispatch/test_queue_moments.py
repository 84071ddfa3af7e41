"""When the next delivery of a queue may be sent, and what is unknown to it."""

from __future__ import annotations

import pytest

from fhirpub.storage.webhook_contract import Ordering
from fhirpub.webhooks.dispatch.queue import Queue
from tests.unit.webhooks.dispatch.queues import NOW, ORDERINGS, dequeued, queue_of, waiting


@pytest.mark.parametrize("ordering", ORDERINGS)
def test_an_empty_queue_has_nothing_to_send(ordering: Ordering) -> None:
    queue = Queue(ordering)

    assert (len(queue), queue.oldest, queue.taken, queue.last) == (0, None, 0, 0)
    assert (queue.next_moment(), queue.ready_since, queue.take(NOW, 9)) == (None, None, [])
    assert queue.ordering == ordering


def test_no_more_are_taken_than_may_be_and_the_rest_may_be_sent_at_once() -> None:
    queue = queue_of("none", waiting(1), waiting(2), waiting(3))

    assert dequeued(queue, most=2) == [1, 2]
    assert (queue.taken, len(queue), queue.next_moment()) == (2, 3, 0)
    assert dequeued(queue, most=0) == []
    assert dequeued(queue, most=1) == [3]
    assert queue.next_moment() is None


def test_of_what_is_due_the_first_in_sequence_is_sent_whenever_it_became_due() -> None:
    queue = queue_of("none", waiting(1, due=NOW), waiting(2, due=NOW - 9), waiting(3))

    assert dequeued(queue) == [1, 2, 3]


def test_the_next_moment_is_when_the_first_is_due() -> None:
    queue = queue_of("none", waiting(1, due=NOW + 9), waiting(2, due=NOW + 5))
    queue.take(NOW, 9)

    assert queue.next_moment() == NOW + 5
    assert dequeued(queue, NOW + 5) == [2]
    assert queue.next_moment() == NOW + 9


def test_what_is_due_and_leased_waits_for_both() -> None:
    queue = queue_of("none", waiting(1, due=NOW + 3, leased=NOW + 5), waiting(2, due=NOW + 7))
    queue.take(NOW, 9)

    assert queue.next_moment() == NOW + 5


def test_since_when_a_delivery_could_be_sent_is_when_it_was_made_or_due() -> None:
    queue = queue_of("none", waiting(1), waiting(2, due=NOW + 50))

    queue.take(NOW, 0)
    made = queue.ready_since
    queue.take(NOW, 1)
    not_yet = queue.ready_since
    queue.take(NOW + 60, 0)

    assert (made, not_yet, queue.ready_since) == (NOW + 1, None, NOW + 50)


def test_what_a_killed_process_had_leased_could_be_sent_since_its_lease_ended() -> None:
    queue = queue_of("none", waiting(1, due=NOW + 3, leased=NOW + 50))

    queue.take(NOW + 60, 0)

    assert queue.ready_since == NOW + 50


def test_what_is_known_is_not_added_twice() -> None:
    queue = queue_of("none", waiting(1), waiting(2))

    queue.add([waiting(1), waiting(2), waiting(2), waiting(3)])

    assert (len(queue), queue.last, dequeued(queue)) == (3, 3, [1, 2, 3])


def test_what_comes_one_by_one_is_known_afterwards() -> None:
    queue = Queue("none")

    for _twice in range(2):
        queue.add(waiting(number) for number in (1, 2))

    assert (len(queue), queue.last, dequeued(queue)) == (2, 2, [1, 2])


def test_what_was_never_taken_changes_nothing() -> None:
    queue = queue_of("strict", waiting(1), waiting(2))

    queue.remove("evt_9")
    queue.back("evt_9", due=NOW, number=1)
    queue.remove("evt_2")

    assert (len(queue), queue.taken, dequeued(queue)) == (2, 0, [1])


def test_one_that_comes_back_has_its_time_and_its_number_and_no_lease() -> None:
    queue = queue_of("none", waiting(1, leased=NOW - 1))
    queue.take(NOW, 1)

    queue.back("evt_1", due=NOW + 5, number=3)

    (again,) = queue.take(NOW + 5, 1)
    assert (again.due, again.number, again.leased) == (NOW + 5, 3, 0)
    assert (again.event_id, again.created) == ("evt_1", NOW + 1)


def test_what_comes_back_or_ends_is_no_longer_taken() -> None:
    queue = queue_of("none", waiting(1), waiting(2), waiting(3))
    queue.take(NOW, 3)

    queue.back("evt_1", due=NOW + 5, number=1)
    queue.remove("evt_2")

    assert (queue.taken, len(queue)) == (1, 2)


def test_a_lane_begins_again_after_it_was_empty() -> None:
    queue = queue_of("per_resource", waiting(1, "a"))
    queue.take(NOW, 1)
    queue.remove("evt_1")

    queue.add([waiting(2, "a"), waiting(3, "a")])

    assert dequeued(queue) == [2]


# Reloading


def test_a_queue_that_is_read_again_has_what_was_found_in_its_new_order() -> None:
    queue = queue_of("strict", waiting(1), waiting(2))
    queue.watch()

    queue.renew([waiting(2), waiting(3)], ordering="none", last=3)

    assert queue.ordering == "none"
    assert dequeued(queue) == [2, 3]
    assert len(queue) == 2


def test_what_is_known_after_a_reload_is_all_up_to_where_it_was_read() -> None:
    queue = queue_of("none", waiting(1))

    queue.watch()
    queue.renew([waiting(1)], ordering="none", last=5)
    queue.add([waiting(5), waiting(6)])

    assert dequeued(queue) == [1, 6]


def test_what_was_found_behind_where_it_was_read_is_known_too() -> None:
    queue = Queue("none")

    queue.watch()
    queue.renew([waiting(2), waiting(7)], ordering="none", last=5)
    queue.add([waiting(6), waiting(7), waiting(8)])

    assert (queue.last, dequeued(queue)) == (8, [2, 7, 8])


def test_what_is_in_flight_and_was_not_found_is_still_taken() -> None:
    queue = queue_of("none", waiting(1))
    queue.take(NOW, 1)

    queue.watch()
    queue.renew([], ordering="none", last=1)

    assert (queue.taken, len(queue), queue.oldest) == (1, 0, None)
    queue.back("evt_1", due=NOW, number=1)
    assert (queue.taken, queue.next_moment()) == (0, None)


def test_changes_of_an_earlier_reload_are_forgotten() -> None:
    queue = queue_of("none", waiting(1))
    queue.take(NOW, 1)
    queue.watch()
    queue.back("evt_1", due=NOW + 500, number=1)
    queue.renew([waiting(1)], ordering="none", last=1)

    queue.watch()
    queue.renew([waiting(1, due=NOW + 3)], ordering="none", last=1)

    assert dequeued(queue, NOW + 3) == [1]


def test_what_changes_before_a_reload_begins_is_taken_from_what_was_read() -> None:
    queue = queue_of("none", waiting(1))
    queue.take(NOW, 1)
    queue.back("evt_1", due=NOW + 500, number=1)

    queue.renew([waiting(1, due=NOW + 3)], ordering="none", last=1)

    assert dequeued(queue, NOW + 3) == [1]


def test_the_moment_of_what_came_back_during_a_reload_is_the_latest() -> None:
    queue = queue_of("strict", waiting(1), waiting(2))
    queue.take(NOW, 1)
    queue.watch()

    queue.back("evt_1", due=NOW + 8, number=1)
    queue.renew([waiting(1, leased=NOW + 900), waiting(2)], ordering="strict", last=2)
    queue.take(NOW, 9)

    assert queue.next_moment() == NOW + 8


def test_the_order_follows_the_sequence_of_each_resource_after_a_reload() -> None:
    queue = queue_of("strict", waiting(1, "a"))
    queue.watch()

    found = [waiting(1, "a"), waiting(2, "b"), waiting(3, "a"), waiting(4)]
    queue.renew(found, ordering="per_resource", last=4)

    assert dequeued(queue) == [1, 2, 4]


def test_what_is_in_flight_and_comes_after_a_reload_is_known_once() -> None:
    queue = queue_of("none", waiting(1))
    queue.take(NOW, 1)
    queue.watch()
    queue.renew([], ordering="none", last=0)

    for _again in range(2):
        queue.add([waiting(1)])

    queue.remove("evt_1")
    assert (len(queue), queue.last, dequeued(queue)) == (0, 1, [])
