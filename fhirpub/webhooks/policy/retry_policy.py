"""Retry decisions, the circuit breaker and the failure streak of an endpoint; all pure.

Times are milliseconds UTC, waits are in seconds (D-177 to D-180).
"""

from __future__ import annotations

import typing
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from fhirpub.webhooks.policy.outcome import Outcome

MAX_RETRY_AFTER = 86_400.0
_JITTER = 0.2
_BUSY = frozenset({429, 502, 503, 504})
_GONE = 410

State = Literal["delivered", "retrying", "dead", "held"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The waits before attempts 2, 3 and so on; ``forever`` repeats the last without end."""

    waits: Sequence[float]
    forever: bool = False

    def wait(self, attempt: int) -> float | None:
        """Return the shortest wait after an attempt, which is 1 for the first; None: the last."""
        if attempt <= len(self.waits):
            return self.waits[attempt - 1]
        return self.waits[-1] if self.forever and self.waits else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What becomes of a delivery, and of its endpoint.

    ``due`` is when a delivery that is retrying may be tried again, 0 for all others. Until
    ``throttled`` nothing at all is sent to the endpoint; 0: no limit. ``disable``: the receiver
    wants no more.
    """

    state: State
    due: int = 0
    throttled: int = 0
    disable: bool = False


def decide_retry(
    outcome: Outcome, *, attempt: int, schedule: Schedule, now: int, chance: float
) -> Next:
    """Return what an outcome leads to.

    ``attempt`` is the number of the attempt, from 1; ``chance``, from 0 to 1, says by how much, at
    most a fifth, the wait is longer than the schedule's.
    """
    disable = outcome.wish == "disable" or outcome.status == _GONE
    if outcome.delivered:
        return Next(state="delivered", disable=disable)
    if outcome.wish == "abort-message":
        return Next(state="dead", disable=disable)
    if disable:
        return Next(state="held", disable=True)
    throttled = _throttle_until(outcome, schedule, now)
    wait = schedule.wait(attempt)
    if wait is None:
        return Next(state="dead", throttled=throttled)
    due = now + round(wait * (1 + _JITTER * chance) * 1000)
    return Next(state="retrying", due=max(due, throttled), throttled=throttled)


def _throttle_until(outcome: Outcome, schedule: Schedule, now: int) -> int:
    """Return until when nothing is sent to a busy receiver: its Retry-After, or the first wait."""
    if outcome.status not in _BUSY:
        return 0
    first = schedule.wait(1) or 0.0
    asked = first if outcome.retry_after is None else outcome.retry_after
    return now + round(min(max(asked, 0.0), MAX_RETRY_AFTER) * 1000)


# The circuit breaker: nothing is sent to a failing receiver for a while. That uses up no attempts.

_BUCKET_MS = 30_000
_BUCKETS = 10  # five minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class FailurePolicy:
    """Thresholds of the circuit breaker and of endpoint health.

    A breaker opens after ``in_a_row`` consecutive failures, or when a ratio ``share`` (0 to 1) of
    at least ``judged`` attempts of the last five minutes failed. It stays open for
    ``open_seconds``, doubled after each failed probe up to ``open_seconds_max``. An endpoint is
    failing after ``failing_hours`` without a success, and given up after ``given_up_hours`` and
    at least ``given_up_failures``.
    """

    in_a_row: int = 10
    judged: int = 10
    share: float = 0.7
    open_seconds: float = 30.0
    open_seconds_max: float = 900.0
    failing_hours: float = 24.0
    given_up_hours: float = 120.0
    given_up_failures: int = 20


USUAL = FailurePolicy()

BreakerState = Literal["closed", "open", "half-open"]
BREAKER_STATES: tuple[BreakerState, ...] = typing.get_args(BreakerState)


@dataclass(frozen=True, slots=True)
class _Bucket:
    """The attempts counted in one half minute, the ``number``-th since 1970."""

    number: int
    delivered: int = 0
    failed: int = 0

    def counting(self, *, delivered: bool) -> _Bucket:
        if delivered:
            return replace(self, delivered=self.delivered + 1)
        return replace(self, failed=self.failed + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """Whether an endpoint may be tried. Each method returns the next breaker.

    ``patience`` defines when it opens, and for how long.
    """

    state: BreakerState = "closed"
    in_a_row: int = 0
    until: int = 0
    open_for: int = 0
    recent: tuple[_Bucket, ...] = ()

    def allows(self, now: int) -> bool:
        """Return whether an attempt may begin; unless closed, only after :meth:`probing`."""
        return self.state == "closed" or now >= self.until

    def probing(self, now: int, patience: FailurePolicy = USUAL) -> Breaker:
        """Take the one probe. If it never ends, the next may begin ``open_seconds`` later."""
        if self.state == "closed":
            return self
        return replace(self, state="half-open", until=now + _ms(patience.open_seconds))

    def record(self, *, delivered: bool, now: int, patience: FailurePolicy = USUAL) -> Breaker:
        """Count an attempt. One that began before the breaker opened can close, not prolong it."""
        if self.state == "open" and not delivered:
            return self
        if self.state == "half-open" and not delivered:
            open_for = min(self.open_for * 2, _ms(patience.open_seconds_max))
            return replace(self, state="open", until=now + open_for, open_for=open_for)
        if self.state != "closed":
            return Breaker()
        in_a_row = 0 if delivered else self.in_a_row + 1
        recent = _count(self.recent, delivered=delivered, now=now)
        too_many = in_a_row >= patience.in_a_row or _mostly_failed(recent, patience)
        if not delivered and too_many:
            open_for = _ms(patience.open_seconds)
            return Breaker(state="open", until=now + open_for, open_for=open_for)
        return replace(self, in_a_row=in_a_row, recent=recent)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _mostly_failed(recent: tuple[_Bucket, ...], patience: FailurePolicy) -> bool:
    failed = sum(bucket.failed for bucket in recent)
    judged = failed + sum(bucket.delivered for bucket in recent)
    return judged >= patience.judged and failed >= patience.share * judged


def _count(recent: tuple[_Bucket, ...], *, delivered: bool, now: int) -> tuple[_Bucket, ...]:
    number = now // _BUCKET_MS
    kept = tuple(bucket for bucket in recent if number - _BUCKETS < bucket.number < number)
    latest = next((bucket for bucket in recent if bucket.number == number), _Bucket(number))
    return (*kept, latest.counting(delivered=delivered))


# Giving up an endpoint.

_HOUR_MS = 3_600_000

Health = Literal["good", "failing", "given-up"]


@dataclass(frozen=True, slots=True)
class FailureStreak:
    """How many attempts for an endpoint have failed in a row, and when the first of them was."""

    failures: int = 0
    since: int = 0

    def record(self, *, delivered: bool, now: int) -> FailureStreak:
        """Count an attempt."""
        if delivered:
            return FailureStreak()
        return FailureStreak(self.failures + 1, self.since if self.failures else now)

    def health(self, now: int, patience: FailurePolicy = USUAL) -> Health:
        """Return ``failing`` or ``given-up`` after the policy's hours of failures, or ``good``.

        Call it after every failure, not only when a delivery has used up its attempts.
        """
        lasted = (now - self.since) / _HOUR_MS if self.failures else 0.0
        enough = self.failures >= patience.given_up_failures
        if lasted >= patience.given_up_hours and enough:
            return "given-up"
        return "failing" if lasted >= patience.failing_hours else "good"
