"""What is logged of plugins that do not stop, and what is not called without a hook."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from fhirpub.app import plugin_lifetime
from fhirpub.app.plugin_lifetime import _call, plugins_running
from fhirpub.config.settings import Config
from tests.plugin_examples import install
from tests.unit.app.test_plugin_lifetime import config_with, said
from tests.unit.webhooks.dispatch.jumping_loop import run
from tests.waiting import wait_until

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
IN_BOTH = (
    "def fhirpub_shutdown",
    """example_log.gate.wait()
    async def rest():
        example_log.said.append("awaited")
    return rest()""",
)
each_way = pytest.mark.parametrize(
    ("hook", "stop", "wait"),
    [(*IN_ITS_THREAD, 0), (*ON_THE_LOOP, 1)],
    ids=["in its thread", "on the loop"],
)
"""``wait`` is the place, among all waits of a stop, of the one for the plugin that hangs."""


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


def short(monkeypatch: pytest.MonkeyPatch, said: list[Any], *waits: int) -> None:
    """Let these waits of a stop be short, once a plugin is being stopped, and the others long."""
    count = itertools.count()

    def left(_stopping: object) -> float:
        number = next(count)
        if number not in waits:
            return 120.0
        assert number > 0 or wait_until(lambda: len(said) > 2)
        return 0.02

    monkeypatch.setattr(plugin_lifetime._Stopping, "_left", left)


async def errors_of_a_stop(config: Config) -> list[Any]:
    with capture_logs() as lines:
        async with plugins_running(config):
            pass
    return [line for line in lines if line["log_level"] == "error"]


def opening(folder: Path) -> None:
    """Let the plugin that is stopped last open the gate."""
    file = folder / "one" / "example_one.py"
    file.write_text(f"{file.read_text()}\n    example_log.gate.set()\n")


@each_way
@pytest.mark.usefixtures("gate")
async def test_a_plugin_that_hangs_does_not_keep_the_others_and_has_the_time_of_all(
    said: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    hook: str,
    stop: str,
    wait: int,
) -> None:
    short(monkeypatch, said, wait)
    config = hanging(tmp_path, monkeypatch, hook, stop)
    opening(tmp_path)

    assert await errors_of_a_stop(config) == []

    assert [one[:2] for one in said[2:4]] == [("stop", "two"), ("stop", "one")]
    assert said[4:] == ["late"]


@pytest.mark.usefixtures("gate")
async def test_what_a_plugin_returns_that_has_kept_others_is_awaited(
    said: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short(monkeypatch, said, 0)
    config = hanging(tmp_path, monkeypatch, *IN_BOTH)
    opening(tmp_path)

    assert await errors_of_a_stop(config) == []

    assert said[4:] == ["awaited"]


@pytest.mark.usefixtures("gate")
async def test_what_a_plugin_raises_that_has_kept_others_is_logged(
    said: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short(monkeypatch, said, 0)
    hook, stop = IN_ITS_THREAD
    config = hanging(tmp_path, monkeypatch, hook, f"{stop}; 1 / 0")
    opening(tmp_path)

    (line,) = await errors_of_a_stop(config)

    assert line["event"] == "plugin not stopped"
    assert "ZeroDivisionError" in line["problem"]


async def test_plugins_are_stopped_although_the_thread_that_calls_them_begins_late(
    said: list[Any], gate: threading.Event, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_thread, threads = plugin_lifetime._in_thread, list[str]()

    def late(work: Callable[[], Any]) -> asyncio.Future[Any]:
        threads.append("thread")
        first = len(threads) == 1
        return in_thread(lambda: (gate.wait(10), work())[1] if first else work())

    lefts = iter([0.02])
    monkeypatch.setattr(plugin_lifetime, "_in_thread", late)
    monkeypatch.setattr(plugin_lifetime._Stopping, "_left", lambda _self: next(lefts, 120.0))
    config = config_with(tmp_path, monkeypatch)
    opening(tmp_path)

    assert await errors_of_a_stop(config) == []

    assert [one[:2] for one in said[2:]] == [("stop", "two"), ("stop", "one")]


@each_way
@pytest.mark.usefixtures("gate")
async def test_plugins_that_hang_are_left_after_a_while(
    said: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    hook: str,
    stop: str,
    wait: int,
) -> None:
    short(monkeypatch, said, wait, 3)

    lines = await errors_of_a_stop(hanging(tmp_path, monkeypatch, hook, stop))

    assert lines == [{"event": "plugins not stopped", "log_level": "error", "seconds": 10.0}]


def test_a_plugin_that_hangs_is_waited_for_half_of_the_time_that_is_left() -> None:
    async def waited() -> list[float]:
        loop = asyncio.get_running_loop()
        stopping, moments = plugin_lifetime._Stopping(Config()), list[float]()
        for _plugin in range(2):
            assert not await stopping._ends(loop.create_future())
            moments.append(loop.time())
        with capture_logs():
            await stopping.finish()
        return [*moments, loop.time()]

    assert run(waited()) == pytest.approx([5.0, 7.5, 10.0])


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


async def test_a_hook_of_no_plugin_has_no_problems() -> None:
    assert await _call("fhirpub_startup", Config(), []) == []
