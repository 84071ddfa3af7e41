"""More deliveries are begun than are sent at a time, but only for a fast receiver."""

from __future__ import annotations

from fhirpub.webhooks.dispatch.send_window import SendWindow


def test_before_the_first_attempt_no_more_is_begun_than_is_sent() -> None:
    assert SendWindow(8).size == 8


def test_for_a_fast_receiver_more_is_begun() -> None:
    window = SendWindow(8)

    window.note_attempt(20, delivered=True)

    assert window.size == 32


def test_for_a_slow_receiver_no_more_is_begun() -> None:
    window = SendWindow(8)
    window.note_attempt(20, delivered=True)

    for _ in range(10):
        window.note_attempt(2_000, delivered=True)

    assert window.size == 8


def test_a_failure_ends_beginning_ahead() -> None:
    window = SendWindow(8)
    window.note_attempt(20, delivered=True)

    window.note_attempt(1, delivered=False)

    assert window.size == 8


def test_four_times_as_many_are_begun_below_a_quarter_of_a_second_only() -> None:
    fast, slow = SendWindow(3), SendWindow(3)

    fast.note_attempt(249, delivered=True)
    slow.note_attempt(250, delivered=True)

    assert (fast.size, slow.size) == (12, 3)


def test_a_receiver_of_no_measurable_time_is_fast() -> None:
    window = SendWindow(1)

    window.note_attempt(0, delivered=True)

    assert window.size == 4


def test_each_attempt_counts_for_a_fifth() -> None:
    window = SendWindow(8)
    window.note_attempt(200, delivered=True)

    window.note_attempt(449, delivered=True)  # 249.8 ms on average
    still_fast = window.size
    window.note_attempt(260, delivered=True)  # 251.84 ms

    assert (still_fast, window.size) == (32, 8)


def test_after_a_failure_the_average_begins_again() -> None:
    window = SendWindow(8)
    window.note_attempt(5_000, delivered=True)
    window.note_attempt(1, delivered=False)

    window.note_attempt(20, delivered=True)

    assert window.size == 32


def test_a_slow_receiver_that_becomes_fast_is_noticed() -> None:
    window = SendWindow(8)
    window.note_attempt(300, delivered=True)

    window.note_attempt(20, delivered=True)

    assert window.size == 32


async def test_as_many_attempts_as_slots_are_made_at_the_same_time() -> None:
    window = SendWindow(2)

    await window.slots.acquire()
    one_is_left = not window.slots.locked()
    await window.slots.acquire()

    assert (one_is_left, window.slots.locked()) == (True, True)
