"""A breaker opens by the share of attempts that failed, but never by one that succeeded."""

from __future__ import annotations

import pytest

from fhirpub.webhooks.policy.retry_policy import Breaker, FailurePolicy

NOW = 1_795_242_833_412
HALF = FailurePolicy(in_a_row=100, judged=4, share=0.5, open_seconds=7.0)


def after(attempts: str, patience: FailurePolicy = HALF) -> Breaker:
    """Return the breaker after attempts: ``+`` was delivered, ``-`` has failed."""
    breaker = Breaker()
    for attempt in attempts:
        breaker = breaker.record(delivered=attempt == "+", now=NOW, patience=patience)
    return breaker


@pytest.mark.parametrize(
    ("attempts", "state"),
    [
        ("---", "closed"),
        ("----", "open"),
        ("++--", "open"),
        ("+++--", "closed"),
        ("+++---", "open"),
        ("--+", "closed"),
    ],
)
def test_it_opens_once_enough_of_enough_attempts_have_failed(attempts: str, state: str) -> None:
    assert after(attempts).state == state


def test_a_success_does_not_open_it_however_many_failed_before() -> None:
    breaker = after("---+")

    assert (breaker.state, breaker.in_a_row) == ("closed", 0)


def test_it_stays_open_for_the_time_of_the_settings() -> None:
    breaker = after("----")

    assert (breaker.until, breaker.open_for) == (NOW + 7_000, 7_000)


def test_once_it_is_open_another_failure_does_not_prolong_it() -> None:
    breaker = after("----")

    assert breaker.record(delivered=False, now=NOW + 5_000, patience=HALF) == breaker


def test_a_success_closes_it_and_forgets_what_was_counted() -> None:
    assert after("----+") == Breaker()


@pytest.mark.parametrize(("open_for", "then"), [(7_000, 14_000), (20_000, 30_000)])
def test_a_probe_that_fails_doubles_the_time_up_to_the_longest(open_for: int, then: int) -> None:
    patience = FailurePolicy(open_seconds=7.0, open_seconds_max=30.0)
    probing = Breaker(state="half-open", until=NOW, open_for=open_for)

    found = probing.record(delivered=False, now=NOW, patience=patience)

    assert (found.state, found.until, found.open_for) == ("open", NOW + then, then)
