"""What is read of a receiver's response: when to come back, its wishes, and nothing secret."""

from __future__ import annotations

import pytest

from fhirpub.webhooks.transport.response import as_kept, retry_after, wish_in

NOW = 1_795_242_954_500  # 2026-11-21T06:35:54.500Z


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        ("007", 7.0),
        ("999999999", 999_999_999.0),
        ("Sat, 21 Nov 2026 06:36:54 GMT", 59.5),
        ("Saturday, 21-Nov-26 06:36:54 GMT", 59.5),
        ("Wednesday, 25-Nov-26 06:35:54 GMT", 4 * 86_400 - 0.5),
        ("Sat Nov 21 06:36:54 2026", 59.5),
        ("2026-11-21T06:35:55Z", 0.5),
        ("Sat, 21 Nov 2026 06:35:54 GMT", 0.0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0.0),
    ],
)
def test_a_receiver_names_seconds_or_a_date(text: str, seconds: float) -> None:
    assert retry_after(text, NOW) == seconds


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "soon", "-1", "1.5", "+5", " 5", "5 ", "1e3", "0x10", "5\n"),
        *("1000000000", "\u0661\u0662", "Sat, 99 Nov 2026 06:36:54 GMT", "2026-11-21"),
        "Sat, 21 Nov 2026 06:36:54 GMT" + " " * 5,
    ],
)
def test_what_names_no_time_is_passed_over(text: str) -> None:
    assert retry_after(text, NOW) is None


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("disable", "disable"),
        ("abort-message", "abort-message"),
        (" Disable\t", "disable"),
        ("ABORT-MESSAGE", "abort-message"),
        ("", None),
        ("disabled", None),
        ("disable, abort-message", None),
        ("abort", None),
    ],
)
def test_a_receiver_may_wish_for_one_of_two_things(text: str, wish: str | None) -> None:
    assert wish_in(text) == wish


def test_the_token_is_kept_of_no_answer() -> None:
    answer = b"Bearer whtok_x was sent: whtok_x\xff"

    assert as_kept(answer, "whtok_x") == b"Bearer [token] was sent: [token]\xff"


def test_an_answer_without_the_token_is_kept_as_it_came() -> None:
    assert as_kept(b"whtok_ \xff\x00", "whtok_x") == b"whtok_ \xff\x00"
