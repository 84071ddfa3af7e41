"""The URL of the console, and settings of it that contradict each other."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.config.console import (
    ConsoleConfig,
    console_base_url,
    console_contradictions,
    origin_of,
)

SERVICE = "https://fhir.example.org/"
ISSUER = "https://login.example.org"


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        ({}, "https://fhir.example.org"),
        ({"base_url": "https://console.example.org/"}, "https://console.example.org"),
        ({"base_url": "https://console.example.org"}, "https://console.example.org"),
        (
            {"port": 8091, "base_url": "https://console.example.org/"},
            "https://console.example.org",
        ),
        (
            {"base_url": "https://console.example.org", "port": 8090},
            "https://console.example.org",
        ),
        ({"port": 8090}, "http://127.0.0.1:8090"),
        ({"port": 8090, "host": "console.internal"}, "http://console.internal:8090"),
        ({"port": 8090, "host": "::1"}, "http://[::1]:8090"),
    ],
)
def test_browsers_reach_the_console_at_its_own_url_port_or_that_of_the_service(
    settings: dict[str, Any], url: str
) -> None:
    assert console_base_url(ConsoleConfig(**settings), SERVICE) == url


def test_the_path_of_the_url_of_the_service_is_kept() -> None:
    assert console_base_url(ConsoleConfig(), "https://fhir.example/a/") == "https://fhir.example/a"


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://console.example.org:443", "http://console.example.org:443"),
        ("https://console.example.org:80/x?y", "https://console.example.org:80"),
        ("https://[2001:db8::1]/", "https://[2001:db8::1]"),
    ],
)
def test_only_the_usual_port_of_the_scheme_is_left_out_of_an_origin(url: str, origin: str) -> None:
    assert origin_of(url) == origin


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"port": 65_535},
        {"oidc_issuer": ISSUER, "oidc_client_id": "c"},
        {"oidc_issuer": "http://127.0.0.1:9000", "oidc_client_id": "c"},
        {"oidc_issuer": "http://127.0.0.1/realm", "oidc_client_id": "c"},
        {"oidc_issuer": "http://127.0.0.1", "oidc_client_id": "c"},
        {"oidc_client_id": "c"},
    ],
)
def test_settings_that_belong_together_have_no_problem(settings: dict[str, Any]) -> None:
    assert list(console_contradictions(ConsoleConfig(**settings))) == []


@pytest.mark.parametrize(
    ("settings", "problems"),
    [
        ({"port": 65_536}, ["[console] port must be at most 65535"]),
        ({"oidc_issuer": ISSUER}, ["[console] oidc_issuer needs oidc_client_id"]),
        (
            {"oidc_issuer": "http://login.example.org", "oidc_client_id": "c"},
            ["[console] oidc_issuer must begin with https://"],
        ),
        *(
            (
                {"oidc_issuer": f"http://127.0.0.1{rest}", "oidc_client_id": "c"},
                ["[console] oidc_issuer must begin with https://"],
            )
            for rest in (".login.example.org", ":9000@login.example.org", "00", ":")
        ),
        (
            {"oidc_issuer": "login.example.org", "port": 70_000},
            [
                "[console] port must be at most 65535",
                "[console] oidc_issuer must begin with https://",
                "[console] oidc_issuer needs oidc_client_id",
            ],
        ),
    ],
)
def test_every_problem_of_the_settings_is_named(
    settings: dict[str, Any], problems: list[str]
) -> None:
    assert list(console_contradictions(ConsoleConfig(**settings))) == problems


def test_the_console_is_off_and_local_unless_it_is_configured() -> None:
    config = ConsoleConfig()

    assert (config.enabled, config.host, config.port) == (False, "127.0.0.1", 0)
    assert (config.idle_minutes, config.session_hours) == (20, 10)
    assert (config.oidc_claim, config.oidc_operators) == ("email", [])
