"""The settings of webhooks: their defaults, and each at its limit."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from fhirpub.config.webhooks import WebhooksConfig, webhook_contradictions
from tests.unit.config.limits import WEBHOOKS_ABOVE_ZERO

CONNECT = "connect_seconds must be above 0 and at most timeout_seconds"
NAME = "service_name must consist of letters, digits, . _ and -"
NETWORKS = "allow_networks: x is neither port=NUMBER nor tenant=ID of a tenant"
PORTS = "ports must be between 1 and 65535"


def contradictions(**given: Any) -> list[str]:
    found = webhook_contradictions(WebhooksConfig(**given))
    return [line.removeprefix("[webhooks] ") for line in found]


def test_the_defaults_contradict_nothing() -> None:
    assert contradictions() == []


def test_what_is_not_set_has_these_values() -> None:
    assert dataclasses.asdict(WebhooksConfig()) == DEFAULTS


DEFAULTS = {
    "enabled": True,
    "dispatch_in_server": True,
    "service_name": "fhirpub",
    "keys_file": "",
    "endpoints_per_tenant": 100,
    "connect_seconds": 5.0,
    "timeout_seconds": 15.0,
    "retry_seconds": [
        *(5.0, 30.0, 300.0, 1800.0, 7200.0, 18000.0, 36000.0, 50400.0, 72000.0, 86400.0)
    ],
    "retry_forever": False,
    "in_flight": 200,
    "in_flight_per_endpoint": 8,
    "rate_per_endpoint": 50.0,
    "breaker_failures": 10,
    "breaker_share": 0.7,
    "breaker_seconds": 30.0,
    "breaker_seconds_max": 900.0,
    "failing_hours": 24.0,
    "give_up_hours": 120.0,
    "give_up_failures": 20,
    "delivered_days": 30.0,
    "dead_days": 90.0,
    "held_days": 30.0,
    "lease_seconds": 10.0,
    "ports": [443, 8443],
    "allow_networks": [],
}


@pytest.mark.parametrize(
    "given",
    [
        {"service_name": "A.b_c-9"},
        {"connect_seconds": 15.0},
        {"connect_seconds": 0.1},
        {"retry_seconds": [0.0]},
        {"ports": [1, 65_535]},
        {"ports": []},
        {"lease_seconds": 0.5},
        {"breaker_share": 1.0},
        {"allow_networks": ["10.1.2.3 port=8443"]},
    ],
)
def test_a_setting_at_its_limit_is_no_problem(given: dict[str, Any]) -> None:
    assert contradictions(**given) == []


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"service_name": ""}, NAME),
        ({"service_name": "a b"}, NAME),
        ({"service_name": "a\n"}, NAME),
        ({"connect_seconds": 0.0}, CONNECT),
        ({"connect_seconds": 15.1}, CONNECT),
        ({"timeout_seconds": 4.9}, CONNECT),
        ({"retry_seconds": []}, "retry_seconds must not be empty"),
        ({"ports": [443, 0]}, PORTS),
        ({"ports": [65_536]}, PORTS),
        ({"allow_networks": ["10.0.0.0/8 x"]}, NETWORKS),
        ({"lease_seconds": 0.4}, "lease_seconds must be at least 0.5"),
        ({"breaker_share": 1.1}, "breaker_share must be at most 1"),
    ],
)
def test_a_setting_beyond_its_limit_is_named(given: dict[str, Any], problem: str) -> None:
    assert contradictions(**given) == [problem]


@pytest.mark.parametrize("name", WEBHOOKS_ABOVE_ZERO)
def test_a_limit_of_zero_is_named_once(name: str) -> None:
    assert contradictions(**{name: 0}) == [f"{name} must be above 0"]


def test_all_problems_are_named() -> None:
    assert contradictions(service_name="", retry_seconds=[], ports=[0], held_days=0) == [
        NAME,
        "retry_seconds must not be empty",
        PORTS,
        "held_days must be above 0",
    ]
