"""A process that computes works with the settings of the one that serves, and without a store."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.app import compute
from fhirpub.config.monitoring import LogsConfig
from fhirpub.config.settings import Config
from fhirpub.runtime.clock import now_ms


def test_the_module_is_started_by_its_own_name() -> None:
    assert compute.__name__ == compute.MODULE


def test_its_context_has_the_settings_the_time_and_no_store() -> None:
    config = replace(Config(), logs=LogsConfig(level="error"))

    context = compute.open_context(config)

    assert context.config == config
    assert context.clock is now_ms
    assert getattr(context, "resources", 0) is None
    assert "DiagnosticReport" in context.types


def test_it_logs_as_the_settings_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[dict[str, str]] = []
    monkeypatch.setattr(compute, "configure", lambda **given: found.append(given))
    monkeypatch.setattr(compute, "create_context", lambda _config, clock: clock)

    compute.open_context(replace(Config(), logs=LogsConfig(level="error", format="text")))

    assert found == [{"level": "error", "form": "text"}]
