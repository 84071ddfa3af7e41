"""The consequences of an attempt for the delivery and for its endpoint."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.webhooks.policy.outcome import Outcome, Wish
from fhirpub.webhooks.policy.retry_policy import (
    Breaker,
    FailurePolicy,
    FailureStreak,
    Next,
    Schedule,
    decide_retry,
)

NOW = 1_795_000_000_000
SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
SCHEDULE = Schedule(waits=WebhooksConfig().retry_seconds)


def following(outcome: Outcome, *, attempt: int = 1, chance: float = 0.0) -> Next:
    return decide_retry(outcome, attempt=attempt, schedule=SCHEDULE, now=NOW, chance=chance)


def status(number: int, *, wish: Wish | None = None, retry_after: float | None = None) -> Outcome:
    return Outcome(status=number, wish=wish, retry_after=retry_after)


# The schedule


def test_eleven_attempts_take_three_days() -> None:
    waits = [SCHEDULE.wait(attempt) or 0.0 for attempt in range(1, 11)]

    assert waits[:3] == [5.0, 30.0, 300.0]
    assert sum(waits) / 3600 == pytest.approx(75.6, abs=0.1)
    assert SCHEDULE.wait(11) is None


def test_the_last_wait_may_be_repeated_for_ever() -> None:
    schedule = Schedule(waits=[1.0, 2.0, 3.0], forever=True)

    assert [schedule.wait(attempt) for attempt in (1, 2, 3, 4, 100)] == [1.0, 2.0, 3.0, 3.0, 3.0]


@given(st.integers(1, 10), st.floats(0, 1))
def test_an_attempt_is_never_early_and_at_most_a_fifth_late(attempt: int, chance: float) -> None:
    wait = (SCHEDULE.wait(attempt) or 0.0) * SECOND

    due = following(status(500), attempt=attempt, chance=chance).due

    assert NOW + wait <= due <= NOW + 1.2 * wait


# Outcomes


@pytest.mark.parametrize("number", [200, 201, 202, 204, 299])
def test_2xx_is_delivered(number: int) -> None:
    assert following(status(number)) == Next(state="delivered")


@pytest.mark.parametrize("number", [300, 302, 304, 307, 400, 401, 404, 409, 413, 422, 500, 501])
def test_redirects_and_other_errors_are_tried_again(number: int) -> None:
    assert following(status(number)) == Next(state="retrying", due=NOW + 5 * SECOND)


@pytest.mark.parametrize("reason", ["E_TIMEOUT", "E_DNS", "E_BLOCKED_ADDRESS"])
def test_without_an_answer_it_is_tried_again(reason: str) -> None:
    outcome = Outcome(reason=reason)  # type: ignore[arg-type] # any of them

    assert following(outcome) == Next(state="retrying", due=NOW + 5 * SECOND)


def test_the_last_attempt_that_fails_ends_it() -> None:
    assert following(status(500), attempt=10).state == "retrying"
    assert following(status(500), attempt=11) == Next(state="dead")


def test_an_endpoint_that_is_gone_is_disabled_and_the_delivery_held() -> None:
    assert following(status(410)) == Next(state="held", disable=True)


@pytest.mark.parametrize(("number", "state"), [(500, "held"), (200, "delivered"), (429, "held")])
def test_an_endpoint_that_asks_for_it_is_disabled_with_any_status(number: int, state: str) -> None:
    outcome = following(status(number, wish="disable"))

    assert (outcome.state, outcome.disable) == (state, True)


@pytest.mark.parametrize(("number", "state"), [(500, "dead"), (200, "delivered")])
def test_a_message_that_the_receiver_aborts_is_not_sent_again(number: int, state: str) -> None:
    assert following(status(number, wish="abort-message")) == Next(state=state)  # type: ignore[arg-type]


def test_a_receiver_that_is_gone_and_aborts_a_message_is_disabled_all_the_same() -> None:
    assert following(status(410, wish="abort-message")) == Next(state="dead", disable=True)


def test_a_busy_receiver_is_left_in_peace_also_after_the_last_attempt_of_a_delivery() -> None:
    then = following(status(503, retry_after=60.0), attempt=11)

    assert then == Next(state="dead", throttled=NOW + 60 * SECOND)


@pytest.mark.parametrize(("retry_after", "milliseconds"), [(0.5, 500), (-5.0, 0), (None, 0)])
def test_a_wait_that_is_asked_for_is_kept_however_short(
    retry_after: float | None, milliseconds: int
) -> None:
    then = decide_retry(
        status(429, retry_after=retry_after),
        attempt=1,
        schedule=Schedule(waits=[]),
        now=NOW,
        chance=0.0,
    )

    assert then.throttled == NOW + milliseconds


@pytest.mark.parametrize("number", [429, 502, 503, 504])
def test_a_busy_receiver_is_left_in_peace_as_a_whole(number: int) -> None:
    asked = following(status(number, retry_after=90.0))
    not_asked = following(status(number))

    assert asked == Next(state="retrying", due=NOW + 90 * SECOND, throttled=NOW + 90 * SECOND)
    assert not_asked.throttled == NOW + 5 * SECOND


def test_retry_after_never_shortens_the_schedule() -> None:
    outcome = following(status(503, retry_after=1.0), attempt=3)

    assert outcome.due == NOW + 300 * SECOND
    assert outcome.throttled == NOW + 1 * SECOND


def test_retry_after_holds_for_a_day_at_most() -> None:
    assert following(status(429, retry_after=1e9)).due == NOW + 24 * HOUR


@pytest.mark.parametrize("number", [200, 400, 500])
def test_retry_after_of_others_is_ignored(number: int) -> None:
    assert following(status(number, retry_after=90.0)).throttled == 0


# The breaker


def failed(times: int, breaker: Breaker | None = None, *, now: int = NOW) -> Breaker:
    breaker = breaker or Breaker()
    for _ in range(times):
        breaker = breaker.record(delivered=False, now=now)
    return breaker


def test_ten_failures_in_a_row_open_it_for_half_a_minute() -> None:
    assert failed(9).allows(NOW)
    assert not failed(10).allows(NOW + 30 * SECOND - 1)
    assert failed(10).allows(NOW + 30 * SECOND)


def test_the_row_of_failures_is_counted_apart_from_the_share_of_them() -> None:
    patience = FailurePolicy(in_a_row=3, judged=100)
    breaker = Breaker()
    for number in range(2):
        breaker = breaker.record(delivered=False, now=NOW + number, patience=patience)
    assert breaker.state == "closed"

    breaker = breaker.record(delivered=False, now=NOW + 2, patience=patience)

    assert breaker.state == "open"


def test_a_probe_that_fails_leaves_it_open() -> None:
    breaker = Breaker(state="half-open", until=NOW, open_for=MINUTE)

    assert breaker.record(delivered=False, now=NOW).state == "open"


def test_what_was_counted_ten_half_minutes_ago_does_not_count_any_more() -> None:
    start = NOW // (30 * SECOND) * 30 * SECOND
    breaker = Breaker().record(delivered=True, now=start)

    later = [
        breaker.record(delivered=True, now=start + number * 30 * SECOND + 1) for number in (9, 10)
    ]

    counted = [sum(bucket.delivered for bucket in one.recent) for one in later]
    assert counted == [2, 1]


def test_attempts_of_one_half_minute_are_counted_together() -> None:
    start = NOW // (30 * SECOND) * 30 * SECOND
    breaker = Breaker()
    for number in range(30):
        breaker = breaker.record(delivered=True, now=start + number * SECOND)

    assert [bucket.delivered for bucket in breaker.recent] == [30]


def test_a_delivery_among_them_begins_the_row_again() -> None:
    breaker = failed(6)
    for _ in range(6):
        breaker = breaker.record(delivered=True, now=NOW)

    assert failed(7, breaker).state == "closed"


def mixed(failures: int, deliveries: int, *, between: int = 0) -> Breaker:
    """Return a breaker after deliveries, and failures of which there are never ten in a row."""
    breaker = Breaker()
    for _ in range(deliveries):
        breaker = breaker.record(delivered=True, now=NOW)
    return failed(failures, breaker, now=NOW + between)


def test_seven_of_ten_failures_open_it() -> None:
    assert mixed(6, 3).state == "closed"
    assert mixed(6, 4).state == "closed"
    assert mixed(7, 3).state == "open"


def test_what_is_older_than_five_minutes_does_not_count() -> None:
    assert mixed(9, 4, between=4 * MINUTE).state == "closed"
    assert failed(9, mixed(0, 1, between=0), now=NOW + 6 * MINUTE).state == "closed"
    late = Breaker()
    for minute in range(100):
        late = late.record(delivered=minute % 3 == 0, now=NOW + minute * MINUTE)
    assert late.state == "closed"
    assert len(late.recent) <= 10


def test_one_probe_at_a_time() -> None:
    later = NOW + 30 * SECOND
    probing = failed(10).probing(later)

    assert not probing.allows(later)
    assert probing.allows(later + 30 * SECOND)


def test_a_probe_that_succeeds_closes_it() -> None:
    probing = failed(10).probing(NOW + 30 * SECOND)

    assert probing.record(delivered=True, now=NOW + 31 * SECOND) == Breaker()


def test_each_probe_that_fails_doubles_the_time_up_to_a_quarter_of_an_hour() -> None:
    breaker, now, waits = failed(10), NOW, []
    for _ in range(8):
        waits.append((breaker.until - now) // SECOND)
        now = breaker.until
        breaker = breaker.probing(now).record(delivered=False, now=now)

    assert waits == [30, 60, 120, 240, 480, 900, 900, 900]


def test_late_failures_do_not_keep_it_open_longer() -> None:
    breaker = failed(10)

    assert failed(5, breaker, now=NOW + 10 * SECOND) == breaker


def test_a_late_success_closes_it() -> None:
    assert failed(10).record(delivered=True, now=NOW + 1).allows(NOW + 1)


def test_a_closed_breaker_needs_no_probe() -> None:
    assert Breaker().probing(NOW) == Breaker()


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 10 * MINUTE)), max_size=60))
def test_it_never_stays_shut_longer_than_a_quarter_of_an_hour(
    steps: list[tuple[bool, int]],
) -> None:
    breaker, now = Breaker(), NOW
    for delivered, pause in steps:
        now += pause
        if breaker.allows(now):
            breaker = breaker.probing(now).record(delivered=delivered, now=now)
        assert breaker.allows(now + 15 * MINUTE)


# Giving up


def streak(failures: int, *, over: int) -> tuple[FailureStreak, int]:
    """Return a streak of failures that are spread evenly over a time, and its end."""
    result, now = FailureStreak(), NOW
    for number in range(failures):
        now = NOW + over * number // max(failures - 1, 1)
        result = result.record(delivered=False, now=now)
    return result, now


@pytest.mark.parametrize(
    ("failures", "hours", "health"),
    [
        (0, 0, "good"),
        (100, 23, "good"),
        (2, 24, "failing"),
        (19, 200, "failing"),
        (100, 119, "failing"),
        (20, 120, "given-up"),
    ],
)
def test_an_endpoint_is_given_up_after_five_days_and_twenty_failures(
    failures: int, hours: int, health: str
) -> None:
    result, now = streak(failures, over=hours * HOUR)

    assert result.health(now) == health


def test_an_endpoint_without_failures_is_good_however_soon_others_are_failing() -> None:
    assert FailureStreak().health(NOW, FailurePolicy(failing_hours=0.5)) == "good"


def test_one_delivery_makes_it_good_again() -> None:
    result, now = streak(50, over=200 * HOUR)

    assert result.record(delivered=True, now=now).health(now) == "good"


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=50))
def test_health_never_improves_by_failing(pauses: list[int]) -> None:
    order = ["good", "failing", "given-up"]
    result, now, seen = FailureStreak(), NOW, []
    for pause in pauses:
        now += pause * SECOND
        result = result.record(delivered=False, now=now)
        seen.append(order.index(result.health(now)))

    assert all(earlier <= later for earlier, later in pairwise(seen))
