"""What those who send know of an endpoint's health, and how it is kept in its ``condition``."""

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

ANEW = b"{}"
"""What is stored of an endpoint of which nothing is noted yet, or nothing counts any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointHealth:
    """An endpoint's health. Times are milliseconds UTC.

    Until ``throttled`` nothing is sent. ``warned`` is the beginning of the streak of failures
    of which the tenant was warned, 0 for none.
    """

    breaker: Breaker = field(default_factory=Breaker)
    streak: FailureStreak = field(default_factory=FailureStreak)
    throttled: int = 0
    warned: int = 0

    @classmethod
    def read(cls, stored: bytes) -> EndpointHealth:
        """Return what was kept; for what cannot be read that of a new endpoint."""
        try:
            value = loads_stored(stored)
            return cls(
                breaker=Breaker(**value.get("breaker", {})),
                streak=FailureStreak(**value.get("streak", {})),
                throttled=int(value.get("throttled", 0)),
                warned=int(value.get("warned", 0)),
            )
        except Exception:  # noqa: BLE001 - whatever it is, it must not keep us from sending
            return cls()

    def serialize(self) -> bytes:
        """Return it as it is kept: without the counts of the last minutes.

        A healthy endpoint's never changes, and is not written again and again.
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
        """Tell whether an attempt may begin."""
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
        """Note that the one attempt begins, if only one may."""
        return replace(self, breaker=self.breaker.probing(now, patience))

    def record(
        self, outcome: Outcome, then: Next, now: int, patience: FailurePolicy
    ) -> EndpointHealth:
        """Note what came of an attempt."""
        delivered = outcome.delivered
        return replace(
            self,
            breaker=self.breaker.record(delivered=delivered, now=now, patience=patience),
            streak=self.streak.record(delivered=delivered, now=now),
            throttled=max(self.throttled, then.throttled),
        )

    def with_failures_reset(self) -> EndpointHealth:
        """Forget since when everything has failed, but not whom to leave in peace."""
        return replace(self, streak=FailureStreak(), warned=0)

    def health(self, now: int, patience: FailurePolicy) -> Health:
        """Return how the endpoint is."""
        return self.streak.health(now, patience)
