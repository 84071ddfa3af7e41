"""Which deliveries of an endpoint's queue may be sent now."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.storage.webhook_contract import Ordering, QueuedDelivery
from fhirpub.webhooks.dispatch.queue import WINDOW, Bucket, Queue
from tests.unit.webhooks.dispatch.queues import NOW, ORDERINGS, dequeued, queue_of, waiting


@pytest.mark.parametrize(
    ("ordering", "first"), [("none", [1, 2, 3]), ("per_resource", [1, 3]), ("strict", [1])]
)
def test_only_the_head_of_a_lane_may_be_sent(ordering: Ordering, first: list[int]) -> None:
    queue = queue_of(ordering, waiting(1, "a"), waiting(2, "a"), waiting(3, "b"))

    assert dequeued(queue) == first
    assert dequeued(queue) == []


def test_the_next_of_a_resource_follows_when_the_earlier_has_ended() -> None:
    queue = queue_of("per_resource", waiting(1, "a"), waiting(2, "a"))
    queue.take(NOW, 9)

    queue.remove("evt_1")

    assert dequeued(queue) == [2]
    assert len(queue) == 1


def test_one_that_failed_holds_back_its_resource_until_it_is_due() -> None:
    queue = queue_of("per_resource", waiting(1, "a"), waiting(2, "a"), waiting(3, "b"))
    queue.take(NOW, 9)

    queue.back("evt_1", due=NOW + 5, number=1)

    assert dequeued(queue, NOW + 4) == []
    assert queue.next_moment() == NOW + 5
    assert dequeued(queue, NOW + 5) == [1]


def test_an_event_of_no_resource_waits_for_nothing() -> None:
    assert dequeued(queue_of("per_resource", waiting(1), waiting(2))) == [1, 2]


def test_a_delivery_that_another_process_may_be_sending_waits_until_the_lease_expires() -> None:
    queue = queue_of("none", waiting(1, leased=NOW + 7))

    assert dequeued(queue, NOW + 6) == []
    assert dequeued(queue, NOW + 7) == [1]


def test_a_queue_that_is_reloaded_keeps_what_is_taken() -> None:
    queue = queue_of("strict", waiting(1), waiting(2))
    queue.take(NOW, 1)

    queue.watch()
    queue.renew([waiting(1, leased=NOW + 9), waiting(2)], ordering="strict", last=2)

    assert dequeued(queue, NOW + 100) == []
    queue.remove("evt_1")
    assert dequeued(queue) == [2]


def test_what_ends_while_the_queue_is_read_does_not_come_back() -> None:
    queue = queue_of("none", waiting(1), waiting(2))
    queue.take(NOW, 2)

    queue.watch()
    queue.remove("evt_1")
    queue.back("evt_2", due=NOW + 5, number=1)
    queue.renew([waiting(1), waiting(2)], ordering="none", last=2)

    assert dequeued(queue, NOW + 4) == []
    assert dequeued(queue, NOW + 5) == [2]


def test_a_later_one_that_comes_back_does_not_send_a_reopened_one_twice() -> None:
    queue = queue_of("strict", waiting(2))
    assert dequeued(queue) == [2]
    queue.watch()
    queue.renew([waiting(1), waiting(2)], ordering="strict", last=2)

    queue.back("evt_2", due=NOW, number=1)

    assert dequeued(queue) == [1]


def test_an_earlier_one_that_was_reopened_does_not_free_a_later_one_in_flight() -> None:
    queue = queue_of("per_resource", waiting(8, "a"))
    queue.take(NOW, 1)
    queue.watch()
    queue.renew([waiting(3, "a"), waiting(8, "a")], ordering="per_resource", last=8)

    assert dequeued(queue) == [3]
    queue.remove("evt_3")
    assert dequeued(queue) == []
    queue.remove("evt_8")
    assert len(queue) == 0


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "take", "end", "back", "read"]), st.integers(0, 5)),
    max_size=60,
)


class Model:
    """A queue, with its open, active and finished deliveries as the store would have them."""

    def __init__(self, ordering: Ordering) -> None:
        self.queue = Queue(ordering)
        self.now = NOW
        self.open: dict[str, QueuedDelivery] = {}
        self.in_flight: list[QueuedDelivery] = []
        self.ended: list[QueuedDelivery] = []

    def add(self, number: int) -> None:
        new = waiting(len(self.open) + len(self.ended) + 1, f"r{number}")
        self.open[new.event_id] = new
        self.queue.add([new])

    def take(self, number: int) -> None:
        for delivery in self.queue.take(self.now, number):
            assert delivery.event_id not in {one.event_id for one in self.in_flight}
            self.in_flight.append(delivery)

    def end(self, number: int) -> None:
        if self.in_flight:
            each = self.in_flight.pop(number % len(self.in_flight))
            self.queue.remove(each.event_id)
            del self.open[each.event_id]
            self.ended.append(each)

    def back(self, number: int) -> None:
        if self.in_flight:
            each = self.in_flight.pop(number % len(self.in_flight))
            self.queue.back(each.event_id, due=self.now + number, number=1)

    def read(self, _number: int) -> None:
        self.queue.watch()
        last = len(self.open) + len(self.ended)
        self.queue.renew(list(self.open.values()), ordering=self.queue.ordering, last=last)


@given(st.sampled_from(ORDERINGS), STEPS)
def test_whatever_happens_all_is_sent_in_order_and_nothing_twice_at_once(
    ordering: Ordering, steps: list[tuple[str, int]]
) -> None:
    model = Model(ordering)

    for what, number in steps:
        model.now += 1
        getattr(model, what)(number)
    model.now += 100
    while model.open:
        model.take(100)
        assert model.in_flight
        model.end(0)

    assert len(model.queue) == 0
    lanes: dict[str, list[int]] = {}
    for delivery in model.ended:
        lane = {"strict": "all", "none": delivery.event_id}.get(ordering, delivery.resource)
        lanes.setdefault(lane, []).append(delivery.sequence)
    assert all(a < b for lane in lanes.values() for a, b in pairwise(lane))


def test_a_bucket_lets_a_second_s_worth_go_and_then_one_after_the_other() -> None:
    bucket = Bucket.full(50.0, NOW)

    assert bucket.available(NOW) == 50
    bucket.take(50)

    assert bucket.available(NOW) == 0
    assert bucket.next_moment() == NOW + 20
    assert bucket.available(NOW + 20) == 1
    assert bucket.available(NOW + 10_000) == 50


def test_a_slow_bucket_has_one_at_least() -> None:
    bucket = Bucket.full(0.1, NOW)
    assert bucket.available(NOW) == 1

    bucket.take(1)

    assert bucket.available(NOW + 9_999) == 0
    assert bucket.available(NOW + 10_000) == 1


def test_ten_thousand_reports_that_wait_take_less_than_five_megabytes_of_order() -> None:
    found = [waiting(number, f"DiagnosticReport/{number}") for number in range(1, WINDOW + 1)]
    tracemalloc.start()
    queue = Queue("per_resource")

    queue.add(found)

    used_bytes, _peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used_bytes < 500 * WINDOW


@pytest.mark.parametrize("ordering", ORDERINGS)
def test_the_oldest_is_the_first_in_the_sequence_that_has_not_ended(ordering: Ordering) -> None:
    queue = queue_of(ordering, *(waiting(number, "r") for number in (1, 2, 3)))

    (first, *_) = queue.take(NOW, 1)
    queue.back(first.event_id, due=NOW, number=1)
    tried_again = queue.oldest
    (first, *_) = queue.take(NOW, 1)
    queue.remove(first.event_id)
    ended = queue.oldest
    queue.watch()
    queue.renew([], ordering=ordering, last=3)

    assert (tried_again, ended, queue.oldest) == (NOW + 1, NOW + 2, None)


def test_a_full_bucket_has_a_second_s_worth_and_one_at_least() -> None:
    assert Bucket.full(2.5, NOW) == Bucket(2.5, 2.5, NOW)
    assert Bucket.full(0.1, NOW) == Bucket(0.1, 1.0, NOW)


def test_a_clock_that_was_set_back_fills_no_bucket() -> None:
    bucket = Bucket(10.0, 0.0, NOW)

    assert bucket.available(NOW - 5_000) == 0
    assert bucket.available(NOW - 4_900) == 1


def test_a_bucket_fills_by_parts_of_an_attempt() -> None:
    bucket = Bucket(10.0, 0.0, NOW)

    assert [bucket.available(NOW + passed) for passed in (50, 99, 100, 199, 200)] == [
        0,
        0,
        1,
        1,
        2,
    ]


def test_one_more_may_begin_when_what_is_missing_has_come() -> None:
    assert Bucket(4.0, 0.5, NOW).next_moment() == NOW + 125
    assert Bucket(4.0, -1.0, NOW).next_moment() == NOW + 500


def test_one_more_is_never_looked_for_at_the_same_moment() -> None:
    assert Bucket(4.0, 1.0, NOW).next_moment() == NOW + 1
    assert Bucket(4.0, 3.0, NOW).next_moment() == NOW + 1
    assert Bucket(4.0, 0.9999, NOW).next_moment() == NOW + 1


def test_a_slow_bucket_has_one_at_most_however_long_it_fills() -> None:
    bucket = Bucket(0.1, 0.0, NOW)

    assert bucket.next_moment() == NOW + 10_000
    assert bucket.available(NOW + 1_000_000) == 1
