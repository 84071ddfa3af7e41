"""The warnings of ``fhirpub check``: what works, but is unsafe or likely a mistake."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.cli.advice.settings import advise
from fhirpub.config.audit import AuditConfig
from fhirpub.config.console import ConsoleConfig
from fhirpub.config.settings import AuthConfig, Config, LimitsConfig
from tests.unit.cli.advice.configs import production


def warnings_of(config: Config) -> list[str]:
    return [finding.text for finding in advise(config) if finding.level == "warning"]


def test_a_production_service_with_its_own_names_has_no_warning() -> None:
    assert warnings_of(production()) == []


def test_scopes_that_are_not_enforced_in_production_are_a_warning() -> None:
    config = production()
    config = replace(config, auth=replace(config.auth, enforce_scopes=False))

    (warning,) = warnings_of(config)

    assert warning.startswith("[auth] enforce_scopes is not set: every client may do everything")


@pytest.mark.parametrize(
    "audience",
    [AuthConfig().audience, "https://fhir.example.org/fhir", "https://example.com/"],
)
def test_an_audience_that_was_left_as_it_came_is_a_warning_in_production(audience: str) -> None:
    (warning,) = warnings_of(production(audience=audience))

    assert warning.startswith(f"[auth] audience is still the default or an example: {audience}: ")


def test_a_default_audience_is_no_warning_in_a_sandbox() -> None:
    assert warnings_of(Config(limits=LimitsConfig(connections=64))) == []


def test_production_without_a_trusted_proxy_is_a_warning() -> None:
    (warning,) = warnings_of(production(trusted_proxies=[]))

    assert warning.startswith("[server] trusted_proxies is not set: all clients appear to have")


def test_production_without_an_audit_trail_is_a_warning() -> None:
    (warning,) = warnings_of(replace(production(), audit=AuditConfig(enabled=False)))

    assert warning.startswith("[audit] enabled = false: it cannot be found out who read")


def test_secrets_that_can_be_guessed_without_a_limit_are_a_warning() -> None:
    limits = LimitsConfig(connections=64, token_failures=0)

    (warning,) = warnings_of(replace(production(), limits=limits))

    assert warning.startswith("[limits] token_failures = 0: secrets of clients can be guessed")


def test_every_warning_says_what_to_do() -> None:
    worst = Config(
        auth=AuthConfig(environment="production"), limits=LimitsConfig(token_failures=0)
    )

    found = warnings_of(replace(worst, audit=AuditConfig(enabled=False)))

    assert len(found) == 7
    for text in found:
        assert any(
            word in text for word in (": set ", ": name ", ": give ", ": remove ", "should be")
        )


def test_a_console_to_which_no_person_can_be_invited_is_a_warning() -> None:
    console = ConsoleConfig(enabled=True, base_url="http://10.1.0.9:8080")

    (warning,) = warnings_of(replace(Config(), console=console))

    assert warning.startswith("the console has no passkeys: passkeys are bound to the name")


def test_a_console_at_a_name_with_tls_is_no_warning() -> None:
    console = ConsoleConfig(enabled=True, base_url="https://console.example.net")

    assert warnings_of(replace(Config(), console=console)) == []
