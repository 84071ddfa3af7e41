"""A console is made of what the settings name: passkeys, a provider, or neither."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.config.console import ConsoleConfig
from fhirpub.config.settings import Config
from fhirpub.console.ceremonies import Ceremonies
from fhirpub.console.creation import _create_ceremonies, _create_provider
from fhirpub.console.openid import SignInRequest
from fhirpub.testing.clock import HandClock


def configured(**console: Any) -> Config:
    usual = ConsoleConfig(enabled=True, base_url="https://console.example.org")
    return replace(Config(), console=replace(usual, **console))


@pytest.mark.parametrize(
    ("base_url", "host", "origin"),
    [
        ("https://console.example.org", "console.example.org", "https://console.example.org"),
        ("https://console.example.org/", "console.example.org", "https://console.example.org"),
        ("https://example.org:8443", "example.org", "https://example.org:8443"),
        ("http://localhost:8080", "localhost", "http://localhost:8080"),
    ],
)
def test_passkeys_are_bound_to_the_host_and_the_origin(
    base_url: str, host: str, origin: str
) -> None:
    assert _create_ceremonies(configured(base_url=base_url)) == Ceremonies(host, origin)


@pytest.mark.parametrize(
    "console",
    [
        {"enabled": False},
        {"base_url": "http://console.example.org"},
        {"base_url": "https://192.0.2.1"},
    ],
)
def test_there_are_no_passkeys_where_browsers_have_none(console: dict[str, Any]) -> None:
    assert _create_ceremonies(configured(**console)) is None


def test_without_an_issuer_there_is_no_provider() -> None:
    assert _create_provider(configured(), HandClock()) is None


async def test_the_provider_leads_back_to_the_console() -> None:
    config = configured(oidc_issuer="https://login.example.org", oidc_client_id="c")

    provider = _create_provider(config, HandClock())

    assert provider is not None
    provider._known = {"authorization_endpoint": "https://login.example.org/authorize"}
    provider._until = HandClock().now + 1
    address = await provider.address(SignInRequest.create())
    back = "redirect_uri=https%3A%2F%2Fconsole.example.org%2Fconsole%2Fsign-in%2Fprovider&"
    assert back in address
