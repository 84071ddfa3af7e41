"""Where browsers reach a console, as its settings have it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fhirpub.config.console import ConsoleConfig
from fhirpub.config.settings import Config
from fhirpub.console.console import Console


def console(base_url: str, **settings: Any) -> Console:
    config = replace(
        Config(),
        server=replace(Config().server, base_url="http://fhir.example.org/"),
        console=ConsoleConfig(enabled=True, base_url=base_url, **settings),
    )
    none = cast("Any", None)
    return Console(SimpleNamespace(config=config), none, none, none, none, None, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("base_url", "expected", "origin", "is_secure"),
    [
        ("", "http://fhir.example.org", "http://fhir.example.org", False),
        ("https://a.example/", "https://a.example", "https://a.example", True),
        ("https://a.example/x", "https://a.example/x", "https://a.example", True),
        ("http://a.example", "http://a.example", "http://a.example", False),
    ],
)
def test_a_console_is_reached_by_its_own_url_or_that_of_the_service(
    base_url: str, expected: str, origin: str, *, is_secure: bool
) -> None:
    made = console(base_url)

    assert (made.base_url, made.origin, made.is_secure) == (expected, origin, is_secure)


def test_a_console_with_a_port_of_its_own_is_reached_there() -> None:
    assert console("", port=8090).base_url == "http://127.0.0.1:8090"


def test_a_page_asks_the_service_by_the_routes_and_with_the_services_of_the_console() -> None:
    made, handler = console(""), cast("Any", object())
    made = replace(made, router=cast("Any", object()))

    client = made.client(handler)

    assert client._router is made.router
    assert client._services is made.services
    assert (client._handler, client.received) == (handler, 0)
