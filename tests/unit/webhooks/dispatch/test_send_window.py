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
