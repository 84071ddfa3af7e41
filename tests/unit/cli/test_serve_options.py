"""The options of ``fhirpub serve`` replace the settings, whatever their value is."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from fhirpub.app import processes
from fhirpub.cli.serve import serve
from fhirpub.config.settings import Config

SETTINGS = {"FHIRPUB_SERVER__PORT": "9000", "FHIRPUB_SERVER__HOST": "192.0.2.1"}


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Config]:
    """The settings with which the service would run."""
    found: list[Config] = []

    def run(config: Config, **_named: Any) -> int:
        found.append(config)
        return 3

    monkeypatch.setattr(processes, "serve", run)
    return found


@pytest.mark.parametrize(
    ("words", "server"),
    [
        ([], ("192.0.2.1", 9000, 1)),
        (["--port", "0"], ("192.0.2.1", 0, 1)),
        (["--host", "::1", "--workers", "4"], ("::1", 9000, 4)),
    ],
)
def test_what_is_given_replaces_the_settings(
    served: list[Config], words: list[str], server: tuple[str, int, int]
) -> None:
    result = CliRunner().invoke(serve, words, env=SETTINGS)

    (config,) = served
    assert (config.server.host, config.server.port, config.server.workers) == server
    assert result.exit_code == 3


@pytest.mark.parametrize("host", ["", " ", "\t"])
def test_a_blank_host_is_wrong_usage(served: list[Config], host: str) -> None:
    result = CliRunner().invoke(serve, ["--host", host], env=SETTINGS)

    assert (result.exit_code, served) == (2, [])
    assert "use 0.0.0.0 for every address of the machine" in result.output
