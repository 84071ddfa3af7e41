"""The settings of webhooks, and what of them cannot be together."""

# ruff: noqa: FBT003, RUF009 - a setting is its default and its meaning, side by side

from __future__ import annotations

import re
from dataclasses import dataclass

from fhirpub.config.reader import LAST_PORT, wrong_networks
from fhirpub.config.reader import setting as _setting

_SHORTEST_LEASE = 0.5
_ABOVE_NOTHING = (
    *("in_flight", "in_flight_per_endpoint", "rate_per_endpoint", "lease_seconds"),
    *("breaker_failures", "breaker_share", "breaker_seconds", "breaker_seconds_max"),
    *("failing_hours", "give_up_hours", "give_up_failures"),
    *("delivered_days", "dead_days", "held_days"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhooksConfig:
    """How integrators are told of what was committed."""

    enabled: bool = _setting(
        True,
        "Tell anybody of anything. If not, events are kept, and told once this is true again.",
    )
    dispatch_in_server: bool = _setting(
        True,
        "Send in the processes of `fhirpub serve`; if not, `fhirpub dispatch` has to run beside.",
    )
    service_name: str = _setting(
        "fhirpub", "First part of the User-Agent, before -Webhooks/1.0: letters, digits, . _ -"
    )
    keys_file: str = _setting(
        "",
        "File of the keys that encrypt the secrets of endpoints, 32 bytes in base64 a line: the "
        "first encrypts, all decrypt. FHIRPUB_WEBHOOK_KEYS in the environment comes first. With "
        "neither, a file is made beside an embedded store, and endpoints on MongoDB are refused.",
    )
    endpoints_per_tenant: int = _setting(100, "Most endpoints that a tenant may have.")
    connect_seconds: float = _setting(
        5.0, "Longest wait for a connection, with the look-up of the name and TLS."
    )
    timeout_seconds: float = _setting(
        15.0, "Longest time of one attempt, from the look-up to the end of the answer."
    )
    retry_seconds: list[float] = _setting(
        [5.0, 30.0, 300.0, 1800.0, 7200.0, 18000.0, 36000.0, 50400.0, 72000.0, 86400.0],
        "Waits before the second attempt, the third and so on. Each is made up to a fifth "
        "longer, by chance.",
    )
    retry_forever: bool = _setting(
        False, "Repeat the last wait instead of giving up after the last attempt."
    )
    in_flight: int = _setting(
        200,
        "Attempts that one process makes at the same time. An endpoint takes at most a quarter of "
        "what is still free, and a tenant three quarters of all, so that slow ones leave room.",
    )
    in_flight_per_endpoint: int = _setting(8, "Attempts for one endpoint at the same time.")
    rate_per_endpoint: float = _setting(
        50.0, "Attempts a second for one endpoint; a second's worth may go at once."
    )
    breaker_failures: int = _setting(
        10, "After so many failures in a row an endpoint is left in peace for a while."
    )
    breaker_share: float = _setting(
        0.7, "So is one of which this share failed, of at least ten attempts in five minutes."
    )
    breaker_seconds: float = _setting(
        30.0, "For how long; twice as long each time that the next attempt fails too."
    )
    breaker_seconds_max: float = _setting(900.0, "For how long at most.")
    failing_hours: float = _setting(
        24.0, "After so many hours without one success an endpoint is failing, and it is told."
    )
    give_up_hours: float = _setting(
        120.0, "After so many it is disabled, if there were enough failures."
    )
    give_up_failures: int = _setting(20, "How many are enough.")
    delivered_days: float = _setting(30.0, "How long what was delivered is kept, for the log.")
    dead_days: float = _setting(90.0, "How long what was given up is kept, to be sent again.")
    held_days: float = _setting(
        30.0, "How long deliveries wait for an endpoint that is paused or disabled."
    )
    lease_seconds: float = _setting(
        10.0,
        "When a process has died or hangs, others take over its part of the work after this time.",
    )
    ports: list[int] = _setting([443, 8443], "Ports that may be called.")
    allow_networks: list[str] = _setting(
        [],
        "Special-purpose addresses or networks, such as 10.1.0.0/16, that may be called all the "
        "same; only to these without TLS, and on any port. Loopback, link-local and metadata "
        "addresses are opened only by an entry that lies within their own network.",
    )


def webhook_contradictions(webhooks: WebhooksConfig) -> list[str]:
    """Return what is wrong with the settings, each by itself or with another."""
    found = []
    if not re.fullmatch(r"[A-Za-z0-9._-]+", webhooks.service_name):
        found.append("[webhooks] service_name must be of letters, digits, . _ and -")
    if not 0 < webhooks.connect_seconds <= webhooks.timeout_seconds:
        found.append("[webhooks] connect_seconds must be above 0 and at most timeout_seconds")
    if not webhooks.retry_seconds:
        found.append("[webhooks] retry_seconds must not be empty")
    if not all(1 <= each <= LAST_PORT for each in webhooks.ports):
        found.append(f"[webhooks] ports must be between 1 and {LAST_PORT}")
    found += wrong_networks("[webhooks] allow_networks", webhooks.allow_networks)
    return found + _wrong_limits(webhooks)


def _wrong_limits(webhooks: WebhooksConfig) -> list[str]:
    found = [
        f"[webhooks] {name} must be above 0"
        for name in _ABOVE_NOTHING
        if not getattr(webhooks, name) > 0
    ]
    if 0 < webhooks.lease_seconds < _SHORTEST_LEASE:
        found.append(f"[webhooks] lease_seconds must be at least {_SHORTEST_LEASE}")
    if webhooks.breaker_share > 1:
        found.append("[webhooks] breaker_share must be at most 1")
    return found
