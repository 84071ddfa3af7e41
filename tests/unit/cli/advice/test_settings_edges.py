"""Which addresses and names in settings are a warning, and which are none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.cli.advice.settings import advise
from fhirpub.config.console import ConsoleConfig
from fhirpub.config.settings import Config, ServerConfig
from tests.unit.cli.advice.configs import production

READABLE = "readable from all networks without a token: name an internal address"


def warnings_of(config: Config) -> list[str]:
    """Return what is found, of which everything must be a warning."""
    found = [*advise(config)]
    assert {finding.level for finding in found} <= {"warning"}
    return [finding.text for finding in found]


def config_of(host: str, **server: object) -> Config:
    return Config(server=ServerConfig(host=host, **server))  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_an_address_for_all_networks_needs_a_url(host: str) -> None:
    (warning,) = warnings_of(config_of(host))

    assert warning.startswith("[server] base_url is not set: links in responses begin with http")
    assert warnings_of(config_of(host, base_url="https://fhir.lab")) == []


def test_an_internal_address_needs_no_url() -> None:
    assert warnings_of(config_of("127.0.0.1")) == []


@pytest.mark.parametrize(
    ("host", "port", "metrics", "messages"),
    [
        ("127.0.0.1", 9100, "0.0.0.0", [f"[metrics] host 0.0.0.0: {READABLE}"]),
        ("127.0.0.1", 9100, "::", [f"[metrics] host ::: {READABLE}"]),
        ("127.0.0.1", 0, "0.0.0.0", []),
        ("127.0.0.1", 9100, "127.0.0.1", []),
        ("0.0.0.0", 9100, "0.0.0.0", []),
    ],
)
def test_metrics_that_are_more_open_than_the_service_are_a_warning(
    host: str, port: int, metrics: str, messages: list[str]
) -> None:
    config = replace(
        config_of(host, base_url="https://fhir.lab"),
        metrics=replace(Config().metrics, host=metrics, port=port),
    )

    found = [one for one in warnings_of(config) if one.startswith("[metrics]")]

    assert found == messages


@pytest.mark.parametrize(
    ("proxies", "wide"),
    [
        (["10.0.0.0/8"], []),
        (["0.0.0.0/0"], ["0.0.0.0/0"]),
        (["127.0.0.1", "0.0.0.0/0"], ["0.0.0.0/0"]),
        (["127.0.0.1", "::/0"], ["::/0"]),
        (["::/0", "10.0.0.1", "10.0.0.1/0"], ["::/0", "10.0.0.1/0"]),
        (["10.0.0.9/8"], []),
    ],
)
def test_proxies_that_are_every_address_are_a_warning(proxies: list[str], wide: list[str]) -> None:
    advice = "every client can claim any address: name the proxies only"

    assert warnings_of(production(trusted_proxies=proxies)) == [
        f"[server] trusted_proxies: {one}: {advice}" for one in wide
    ]


def issued_by(issuer: str) -> Config:
    config = production()
    return replace(config, auth=replace(config.auth, issuer=issuer))


@pytest.mark.parametrize("issuer", ["https://fhir.lab", "https://myexample.org", ""])
def test_an_issuer_of_its_own_name_is_no_warning(issuer: str) -> None:
    assert warnings_of(issued_by(issuer)) == []


@pytest.mark.parametrize(
    ("issuer", "message"),
    [
        ("https://fhir.example.org", "is still an example: https://fhir.example.org"),
        ("https://fhir.example.org/x", "is still an example"),
        ("https://example.com", "is still an example"),
        ("http://fhir.lab", "should be an https:// URL"),
    ],
)
def test_an_issuer_that_is_an_example_or_without_tls_is_a_warning(
    issuer: str, message: str
) -> None:
    (warning,) = warnings_of(issued_by(issuer))

    assert warning.startswith(f"[auth] issuer {message}")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://fhir.lab", "should be the https:// URL"),
        ("", "should be the https:// URL"),
        ("https://fhir.example.org", "is still an example: https://fhir.example.org"),
        ("https://example:8080", "is still an example"),
    ],
)
def test_a_url_in_production_is_the_one_that_clients_use(url: str, message: str) -> None:
    (warning,) = warnings_of(production(base_url=url))

    assert warning.startswith(f"[server] base_url {message}")


def test_names_and_protection_are_no_matter_outside_production() -> None:
    config = production(base_url="http://fhir.example.org", trusted_proxies=[])

    assert len(warnings_of(config)) > 1
    assert warnings_of(replace(config, auth=replace(config.auth, environment="sandbox"))) == []


def with_console_at_an_address(issuer: str) -> Config:
    console = ConsoleConfig(enabled=True, base_url="https://192.0.2.1", oidc_issuer=issuer)
    return replace(production(), console=console)


def test_a_console_without_passkeys_needs_a_provider() -> None:
    (warning,) = warnings_of(with_console_at_an_address(""))

    assert warning.startswith("the console has no passkeys: ")


def test_a_console_with_a_provider_needs_no_passkeys() -> None:
    assert warnings_of(with_console_at_an_address("https://login.lab")) == []
