"""Settings that must be above 0."""

from __future__ import annotations

WEBHOOKS_ABOVE_ZERO = [
    "in_flight",
    "in_flight_per_endpoint",
    "rate_per_endpoint",
    "lease_seconds",
    "breaker_failures",
    "breaker_share",
    "breaker_seconds",
    "breaker_seconds_max",
    "failing_hours",
    "give_up_hours",
    "give_up_failures",
    "delivered_days",
    "dead_days",
    "held_days",
]
