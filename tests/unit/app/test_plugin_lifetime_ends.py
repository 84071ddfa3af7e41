"""What is logged of plugins that do not stop, and what is not called without a hook."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from fhirpub.app import plugin_lifetime
from fhirpub.app.plugin_lifetime import _call, plugins_running
from fhirpub.config.settings import Config, PluginsConfig
from tests.unit.app.test_plugin_lifetime import config_with, said

__all__ = ["said"]


async def test_plugins_that_hang_are_left_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, list[str]]] = []

    async def call(hook: str, _config: Config, names: Sequence[str]) -> list[str]:
        asked.append((hook, [*names]))
        if hook == "fhirpub_shutdown":
            await asyncio.Event().wait()
        return []

    monkeypatch.setattr(plugin_lifetime, "_call", call)
    monkeypatch.setattr(plugin_lifetime, "_SHUTDOWN_SECONDS", 0.01)

    with capture_logs() as lines:
        async with plugins_running(Config(plugins=PluginsConfig(enabled=["one", "two"]))):
            pass

    assert lines == [{"event": "plugins not stopped", "log_level": "error", "seconds": 0.01}]
    assert asked == [("fhirpub_startup", ["one", "two"]), ("fhirpub_shutdown", ["two", "one"])]


async def test_a_hook_that_fails_is_logged_with_its_name_and_place(
    said: list[object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = config_with(tmp_path, monkeypatch, stop="1 / 0")

    with capture_logs() as lines:
        problems = await _call("fhirpub_shutdown", config, ["two", "one"])

    (problem,) = problems
    assert problem.endswith("fhirpub_shutdown failed: ZeroDivisionError")
    (line,) = [line for line in lines if line["event"] == "hook failed"]
    assert line["hook"] == "fhirpub_shutdown"
    assert "ZeroDivisionError" in str(line)


def test_the_time_to_stop_is_ten_seconds() -> None:
    assert plugin_lifetime._SHUTDOWN_SECONDS == 10


async def test_a_hook_of_no_plugin_has_no_problems() -> None:
    assert await _call("fhirpub_startup", Config(), []) == []
