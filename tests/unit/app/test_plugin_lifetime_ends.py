"""What is logged of plugins that do not stop, and what is not called without a hook."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from fhirpub.app import plugin_lifetime
from fhirpub.app.plugin_lifetime import _call, _Stopping, plugins_running
from fhirpub.config.settings import Config
from tests.plugin_examples import install
from tests.unit.app.test_plugin_lifetime import config_with, said

__all__ = ["said"]

ENDLESS = """
import threading
from fhirpub.plugin_api import hookimpl

@hookimpl
def fhirpub_shutdown(context):
    threading.Event().wait()
"""

PROGRAM = """
import asyncio
import sys

sys.path.insert(0, FOLDER)
from fhirpub.app import plugin_lifetime
from fhirpub.config.settings import Config, PluginsConfig

plugin_lifetime._SHUTDOWN_SECONDS = 0.1

async def main():
    async with plugin_lifetime.plugins_running(Config(plugins=PluginsConfig(enabled=["endless"]))):
        pass

asyncio.run(main())
print("stopped")
"""


IN_ITS_THREAD = "def fhirpub_shutdown", "example_log.gate.wait()"
ON_THE_LOOP = (
    "async def fhirpub_shutdown",
    "while not example_log.gate.is_set(): await asyncio.sleep(0.001)",
)
each_way = pytest.mark.parametrize(
    ("hook", "stop"), [IN_ITS_THREAD, ON_THE_LOOP], ids=["in its thread", "on the loop"]
)


@pytest.fixture
def gate(said: list[object]) -> Iterator[threading.Event]:
    """What a plugin waits for, opened after the test."""
    gate = sys.modules["example_log"].gate = threading.Event()  # type: ignore[attr-defined]
    yield gate
    gate.set()


def hanging(folder: Path, monkeypatch: pytest.MonkeyPatch, hook: str, stop: str) -> Config:
    """Install two plugins, of which the one that is stopped first hangs."""
    config = config_with(folder, monkeypatch, stop=f"{stop}\n    example_log.said.append('late')")
    file = folder / "two" / "example_two.py"
    file.write_text(file.read_text().replace("async def fhirpub_shutdown", hook))
    return config


async def errors_of_a_stop(config: Config) -> list[Any]:
    with capture_logs() as lines:
        async with plugins_running(config):
            pass
    return [line for line in lines if line["log_level"] == "error"]


@each_way
async def test_a_plugin_that_hangs_does_not_keep_the_others_and_has_the_time_of_all(
    said: list[Any],
    gate: threading.Event,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    hook: str,
    stop: str,
) -> None:
    monkeypatch.setattr(plugin_lifetime, "_SHUTDOWN_SECONDS", 2.0)
    config = hanging(tmp_path, monkeypatch, hook, stop)
    other = tmp_path / "one" / "example_one.py"
    other.write_text(f"{other.read_text()}\n    example_log.gate.set()\n")

    assert await errors_of_a_stop(config) == []

    assert [one[:2] for one in said[2:4]] == [("stop", "two"), ("stop", "one")]
    assert said[4:] == ["late"]


@each_way
@pytest.mark.usefixtures("gate")
async def test_plugins_that_hang_are_left_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hook: str, stop: str
) -> None:
    monkeypatch.setattr(plugin_lifetime, "_SHUTDOWN_SECONDS", 0.05)

    lines = await errors_of_a_stop(hanging(tmp_path, monkeypatch, hook, stop))

    assert lines == [{"event": "plugins not stopped", "log_level": "error", "seconds": 0.05}]


def test_a_plugin_that_hangs_keeps_no_process_from_ending(tmp_path: Path) -> None:
    install(tmp_path, "endless", ENDLESS)
    program = PROGRAM.replace("FOLDER", repr(str(tmp_path)))

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.endswith("stopped\n")


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


async def test_each_plugin_that_is_stopped_is_waited_for_half_of_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopping, waited = _Stopping(Config()), list[float | None]()

    async def wait(_works: object, *, timeout: float | None) -> None:  # noqa: ASYNC109
        waited.append(timeout)

    monkeypatch.setattr(asyncio, "wait", wait)
    work = asyncio.get_running_loop().create_future()
    for left in (8.0, 0.5, 0.0):
        monkeypatch.setattr(stopping, "_left", lambda left=left: left)
        assert not await stopping._ends(work)
    await stopping.finish()

    assert waited == [4.0, 0.25, 0.0, 0.0]
