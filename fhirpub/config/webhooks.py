"""The settings of webhooks, and their validation."""

# ruff: noqa: FBT003, RUF009 - each setting has its default and its meaning side by side

from __future__ import annotations

import re
from dataclasses import dataclass

from fhirpub.config.allowed_networks import wrong_allowed_networks
from fhirpub.config.reader import LAST_PORT
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
    """Webhooks, which notify integrators of committed changes."""

    enabled: bool = _setting(
        True,
        "Send webhooks. If false, events are kept, and sent once this is true again.",
    )
    dispatch_in_server: bool = _setting(
        True,
        "Send webhooks in the processes of `fhirpub serve`. If false, `fhirpub dispatch` must run "
        "as well.",
    )
    service_name: str = _setting(
        "fhirpub",
        "First part of the User-Agent of webhooks, before -Webhooks/1.0: letters, digits, . _ -",
    )
    keys_file: str = _setting(
        "",
        "Older name of keys_file in [storage], from when only secrets of endpoints were "
        "encrypted. It still works, and so does FHIRPUB_WEBHOOK_KEYS. Set only one of the two.",
    )
    endpoints_per_tenant: int = _setting(100, "Maximum number of endpoints of one tenant.")
    connect_seconds: float = _setting(
        5.0,
        "Maximum time in seconds to connect to an endpoint, including name resolution and TLS.",
    )
    timeout_seconds: float = _setting(
        15.0,
        "Maximum time in seconds of one attempt, from name resolution to the end of the response.",
    )
    retry_seconds: list[float] = _setting(
        [5.0, 30.0, 300.0, 1800.0, 7200.0, 18000.0, 36000.0, 50400.0, 72000.0, 86400.0],
        "Delays in seconds before the second attempt, the third and so on. Each is extended by up "
        "to a fifth at random.",
    )
    retry_forever: bool = _setting(
        False,
        "Repeat the last delay of retry_seconds without limit. If false, a delivery becomes a "
        "dead letter after its last attempt.",
    )
    in_flight: int = _setting(
        200,
        "Maximum number of concurrent attempts of one process. One endpoint gets at most a "
        "quarter of the free slots, and one tenant three quarters of all, so that slow endpoints "
        "leave slots for others.",
    )
    in_flight_per_endpoint: int = _setting(
        8, "Maximum number of concurrent attempts for one endpoint."
    )
    rate_per_endpoint: float = _setting(
        50.0,
        "Maximum number of attempts per second for one endpoint. Bursts up to this number are "
        "allowed.",
    )
    breaker_failures: int = _setting(
        10,
        "Number of consecutive failures that opens the circuit breaker of an endpoint: nothing is "
        "sent to it for breaker_seconds.",
    )
    breaker_share: float = _setting(
        0.7,
        "Failure ratio (0-1) over the last five minutes, with at least ten attempts, that also "
        "opens the circuit breaker of an endpoint.",
    )
    breaker_seconds: float = _setting(
        30.0,
        "Time in seconds for which a circuit breaker stays open before one attempt probes the "
        "endpoint. It doubles with each failed probe.",
    )
    breaker_seconds_max: float = _setting(
        900.0, "Maximum time in seconds for which a circuit breaker stays open between two probes."
    )
    failing_hours: float = _setting(
        24.0,
        "Hours without a successful attempt after which an endpoint counts as failing and the "
        "event endpoint.failing is sent.",
    )
    give_up_hours: float = _setting(
        120.0,
        "Hours without a successful attempt after which an endpoint is disabled, if at least "
        "give_up_failures attempts have failed.",
    )
    give_up_failures: int = _setting(
        20, "Minimum number of consecutive failures before give_up_hours disables an endpoint."
    )
    delivered_days: float = _setting(30.0, "Days for which successful deliveries stay in the log.")
    dead_days: float = _setting(90.0, "Days for which dead letters are kept for replay.")
    held_days: float = _setting(
        30.0,
        "Days for which deliveries are held for an endpoint that is unverified, paused or "
        "disabled. One that its client reads (pull:NAME) is removed if it was not read for so "
        "long.",
    )
    lease_seconds: float = _setting(
        10.0,
        "Time in seconds after which other processes take over the endpoints of a process that "
        "has died or hangs; at least 0.5.",
    )
    ports: list[int] = _setting([443, 8443], "Ports to which webhooks may be sent.")
    allow_networks: list[str] = _setting(
        [],
        "Special-purpose addresses or networks to which webhooks may also be sent, with or "
        "without TLS. '10.1.2.3 port=8443 tenant=ID' opens an address on one port to one tenant; "
        "port= and tenant= may be repeated. Without port= an entry is open on every port, without "
        "tenant= to all tenants. Loopback, link-local and metadata addresses are allowed only by "
        "an entry within their own network.",
    )


def webhook_contradictions(webhooks: WebhooksConfig) -> list[str]:
    """Return the problems of the settings, each alone or in combination."""
    found = []
    if not re.fullmatch(r"[A-Za-z0-9._-]+", webhooks.service_name):
        found.append("[webhooks] service_name must consist of letters, digits, . _ and -")
    if not 0 < webhooks.connect_seconds <= webhooks.timeout_seconds:
        found.append("[webhooks] connect_seconds must be above 0 and at most timeout_seconds")
    if not webhooks.retry_seconds:
        found.append("[webhooks] retry_seconds must not be empty")
    if not all(1 <= port <= LAST_PORT for port in webhooks.ports):
        found.append(f"[webhooks] ports must be between 1 and {LAST_PORT}")
    found += wrong_allowed_networks("[webhooks] allow_networks", webhooks.allow_networks)
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
