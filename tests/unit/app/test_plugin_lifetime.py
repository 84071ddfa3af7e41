"""Plugins are started before requests are served, and stopped in the reverse order."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from fhirpub.app.plugin_lifetime import plugins_running
from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.errors import PluginError
from tests.plugin_examples import install

SOURCE = """
import asyncio, threading
from fhirpub.plugin_api import hookimpl
import example_log

@hookimpl
def fhirpub_startup(context):
    example_log.said.append(("start", NAME, threading.current_thread() is threading.main_thread()))
    START

@hookimpl
async def fhirpub_shutdown(context):
    example_log.said.append(("stop", NAME, threading.current_thread() is threading.main_thread()))
    STOP
"""


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """What was called, and whether in the main thread."""
    folder = tmp_path / "log"
    folder.mkdir()
    (folder / "example_log.py").write_text("said = []")
    monkeypatch.syspath_prepend(folder)
    import example_log  # type: ignore[import-not-found]  # noqa: PLC0415

    yield example_log.said
    for name in ("example_log", "example_one", "example_two"):
        sys.modules.pop(name, None)


def config_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, start: str = "pass", stop: str = "pass"
) -> Config:
    """Install two plugins, of which the second fails; return the settings that enable them."""
    for name, begin, end in (("one", "pass", "pass"), ("two", start, stop)):
        source = SOURCE.replace("NAME", repr(name)).replace("START", begin).replace("STOP", end)
        install(tmp_path / name, name, source)
        monkeypatch.syspath_prepend(tmp_path / name)
    return Config(plugins=PluginsConfig(enabled=["one", "two"]))


async def test_plugins_start_in_threads_and_in_order_and_stop_in_reverse(
    said: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with plugins_running(config_with(tmp_path, monkeypatch)):
        assert said == [("start", "one", False), ("start", "two", False)]

    assert said[2:] == [("stop", "two", True), ("stop", "one", True)]


async def test_each_of_several_plugins_that_start_on_the_loop_has_started_before_the_block(
    said: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_with(tmp_path, monkeypatch)
    for name in ("one", "two"):
        file = tmp_path / name / f"example_{name}.py"
        file.write_text(
            file.read_text().replace("def fhirpub_startup", "async def fhirpub_startup")
        )

    async with plugins_running(config):
        assert said == [("start", "one", True), ("start", "two", True)]


async def test_a_start_that_fails_names_the_plugin_and_stops_what_was_started(
    said: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_with(tmp_path, monkeypatch, start="1 / 0")

    with pytest.raises(PluginError, match=r"plugin two .*fhirpub_startup failed: ZeroDivision"):
        async with plugins_running(config):
            pass

    assert ("stop", "one", True) in said


async def test_a_shutdown_that_fails_is_logged_and_the_others_are_stopped(
    said: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_with(tmp_path, monkeypatch, stop="1 / 0")

    with capture_logs() as lines:
        async with plugins_running(config):
            pass

    assert ("stop", "one", True) in said
    (line,) = [line for line in lines if line["event"] == "plugin not stopped"]
    assert line["problem"].startswith("plugin two")
