"""An endpoint's health, and its stored form."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.webhooks.policy.endpoint_health import EndpointHealth
from fhirpub.webhooks.policy.outcome import Outcome
from fhirpub.webhooks.policy.retry_policy import USUAL, FailurePolicy, FailureStreak, Next

NOW = 1_795_000_000_000
FAILED = Outcome(status=500)
RETRYING = Next(state="retrying", due=NOW)


def failed(times: int, condition: EndpointHealth | None = None) -> EndpointHealth:
    condition = condition or EndpointHealth()
    for number in range(times):
        now = NOW + number
        condition = condition.record(FAILED, RETRYING, now, USUAL, ended=now)
    return condition


def test_what_is_kept_reads_as_it_was() -> None:
    condition = failed(10)

    read = EndpointHealth.read(condition.serialize())

    assert (read.breaker.state, read.breaker.until) == ("open", NOW + 9 + 30_000)
    assert read.streak == condition.streak
    assert read.serialize() == condition.serialize()


@pytest.mark.parametrize("stored", [b"{}", b"", b"no json", b'{"breaker":{"colour":1}}', b"[]"])
def test_what_cannot_be_read_is_a_new_endpoint(stored: bytes) -> None:
    assert EndpointHealth.read(stored) == EndpointHealth()


def test_a_healthy_endpoint_is_not_written_again_and_again() -> None:
    condition = EndpointHealth()
    for number in range(100):
        done, now = Next(state="delivered"), NOW + number
        condition = condition.record(Outcome(status=204), done, now, USUAL, ended=now)

    assert condition.serialize() == EndpointHealth().serialize()


def test_an_open_breaker_and_a_busy_receiver_both_let_nothing_through() -> None:
    busy = EndpointHealth(throttled=NOW + 1000)
    broken = failed(10)

    assert not busy.allows(NOW + 999)
    assert busy.allows(NOW + 1000)
    assert (broken.allows(NOW + 20_000), broken.probes) == (False, True)
    assert broken.until == NOW + 9 + 30_000


def test_a_wait_is_never_shortened_by_a_later_answer() -> None:
    asked = EndpointHealth().record(
        FAILED, Next(state="retrying", throttled=NOW + 60_000), NOW, USUAL, ended=NOW
    )

    assert failed(1, asked).throttled == NOW + 60_000


def test_of_two_waits_that_a_receiver_asks_for_the_later_end_counts() -> None:
    condition = EndpointHealth()
    for end in (NOW + 60_000, NOW + 5_000):
        then = Next(state="retrying", throttled=end)
        condition = condition.record(FAILED, then, NOW, USUAL, ended=NOW)

    assert condition.throttled == NOW + 60_000


@pytest.mark.parametrize(
    "condition", [EndpointHealth(warned=NOW), EndpointHealth(throttled=NOW)], ids=str
)
def test_a_warning_and_a_wait_are_kept(condition: EndpointHealth) -> None:
    assert EndpointHealth.read(condition.serialize()) == condition


@pytest.mark.parametrize(
    ("stored", "condition"),
    [
        (b'{"warned":5}', EndpointHealth(warned=5)),
        (b'{"throttled":5}', EndpointHealth(throttled=5)),
    ],
)
def test_what_is_not_stored_is_as_in_a_new_endpoint(
    stored: bytes, condition: EndpointHealth
) -> None:
    assert EndpointHealth.read(stored) == condition


def test_a_pause_ends_the_streak_of_failures_and_no_wait() -> None:
    condition = replace(failed(10), throttled=NOW, warned=NOW)

    assert condition.with_failures_reset() == replace(condition, streak=FailureStreak(), warned=0)


def test_the_policy_of_the_settings_counts() -> None:
    patience = FailurePolicy(in_a_row=2, open_seconds=5.0, failing_hours=1.0)
    condition = EndpointHealth()
    for _ in range(2):
        condition = condition.record(FAILED, RETRYING, NOW, patience, ended=NOW)

    assert condition.until == NOW + 5_000
    assert condition.probing(NOW + 5_000, patience).until == NOW + 10_000
    assert condition.health(NOW + 3_600_000, patience) == "failing"
    assert condition.health(NOW + 3_599_999, patience) == "good"


def test_failures_begin_when_the_log_says_and_the_breaker_opens_from_now_on() -> None:
    condition = EndpointHealth()
    for _ in range(10):
        condition = condition.record(FAILED, RETRYING, NOW, USUAL, ended=NOW + 15_000)

    assert condition.streak.since == NOW + 15_000
    assert condition.breaker.until == NOW + 30_000


def test_a_healthy_endpoint_waits_for_nothing() -> None:
    assert EndpointHealth().until == 0


def test_failures_in_a_row_are_kept_although_the_breaker_is_closed() -> None:
    condition = failed(7)

    read = EndpointHealth.read(condition.serialize())

    assert (read.breaker.state, read.breaker.in_a_row) == ("closed", 7)
