"""Endpoint health as recorded by the dispatcher, and its stored form, the ``condition``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from fhirpub.fhir.strict_json import dumps, loads_stored
from fhirpub.webhooks.policy.outcome import Outcome
from fhirpub.webhooks.policy.retry_policy import (
    USUAL,
    Breaker,
    FailurePolicy,
    FailureStreak,
    Health,
    Next,
)

NEW_HEALTH = b"{}"
"""The stored health of an endpoint without history, or whose history was reset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointHealth:
    """An endpoint's health. Times are milliseconds UTC.

    Nothing is sent until ``throttled``. ``warned`` is the start of the failure streak for which
    the tenant was warned, 0 for none.
    """

    breaker: Breaker = field(default_factory=Breaker)
    streak: FailureStreak = field(default_factory=FailureStreak)
    throttled: int = 0
    warned: int = 0

    @classmethod
    def read(cls, stored: bytes) -> EndpointHealth:
        """Parse the stored form; what cannot be parsed yields the health of a new endpoint."""
        try:
            value = loads_stored(stored)
            return cls(
                breaker=Breaker(**value.get("breaker", {})),
                streak=FailureStreak(**value.get("streak", {})),
                throttled=int(value.get("throttled", 0)),
                warned=int(value.get("warned", 0)),
            )
        except Exception:  # noqa: BLE001 - damaged health must not stop deliveries
            return cls()

    def serialize(self) -> bytes:
        """Return the stored form, without the counts of the last minutes.

        The form of a healthy endpoint never changes, so that it is not written repeatedly.
        """
        breaker, streak = self.breaker, self.streak
        value: dict[str, Any] = {"throttled": self.throttled, "warned": self.warned}
        value["breaker"] = {
            "state": breaker.state,
            "in_a_row": breaker.in_a_row,
            "until": breaker.until,
            "open_for": breaker.open_for,
        }
        value["streak"] = {"failures": streak.failures, "since": streak.since}
        return dumps(value)

    def allows(self, now: int) -> bool:
        """Return whether an attempt may begin."""
        return now >= self.throttled and self.breaker.allows(now)

    @property
    def until(self) -> int:
        """When the next attempt may begin, if none may now."""
        waits = self.breaker.state != "closed"
        return max(self.throttled, self.breaker.until if waits else 0)

    @property
    def probes(self) -> bool:
        """Whether only one attempt may begin, to see whether the receiver is back."""
        return self.breaker.state != "closed"

    def probing(self, now: int, patience: FailurePolicy = USUAL) -> EndpointHealth:
        """Record that a probe begins, if only a probe is allowed."""
        return replace(self, breaker=self.breaker.probing(now, patience))

    def record(
        self, outcome: Outcome, then: Next, now: int, patience: FailurePolicy, *, ended: int
    ) -> EndpointHealth:
        """Record the outcome of an attempt. ``ended`` is when it ended according to its log."""
        delivered = outcome.delivered
        return replace(
            self,
            breaker=self.breaker.record(delivered=delivered, now=now, patience=patience),
            streak=self.streak.record(delivered=delivered, now=ended),
            throttled=max(self.throttled, then.throttled),
        )

    def with_failures_reset(self) -> EndpointHealth:
        """Reset the failure streak; keep the breaker and throttle state."""
        return replace(self, streak=FailureStreak(), warned=0)

    def health(self, now: int, patience: FailurePolicy) -> Health:
        """Return the endpoint's health under a policy."""
        return self.streak.health(now, patience)
