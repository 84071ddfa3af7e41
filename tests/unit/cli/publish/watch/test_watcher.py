"""A watcher publishes what is in its folder until it is stopped."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fhirpub.cli.publish.bulk import sender
from fhirpub.cli.publish.watch import watcher as module
from fhirpub.cli.publish.watch.claim import DONE, SENDING
from fhirpub.cli.publish.watch.folder import Settling, WatchedFolder
from fhirpub.cli.publish.watch.watcher import WatchOptions, _Watcher
from tests.bodies import register_body
from tests.ports import free_port
from tests.unit.cli.publish.services import PUBLISHED, REFUSED, service_at
from tests.waiting import until


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.001)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text(json.dumps(register_body(name)))


async def watch(
    base: str, folder: Path, until: Callable[[], bool], *, as_json: bool = True
) -> None:
    """Watch a folder until a condition holds, then end as by SIGTERM."""
    watched = WatchedFolder(folder, service_at(base), Settling(0.0))
    watcher = _Watcher(watched, WatchOptions(jobs=1, settle=0.0, as_json=as_json))
    running = asyncio.create_task(watcher.run())
    async with asyncio.timeout(30):
        while not until() and not running.done():
            await asyncio.sleep(0.005)
    watcher._stop()
    await running


def move_away(folder: Path) -> None:
    folder.rename(folder.parent / "moved")


def done(folder: Path) -> list[str]:
    names = sorted(file.name for file in (folder / DONE).rglob("*.json"))
    assert not any((folder / name).exists() for name in names)
    return names


async def test_reports_are_published_and_moved(
    stub: Any, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stub.answers = [PUBLISHED]
    put(folder, "a.json", "b.json")

    await watch(stub.address, folder, lambda: len(done(folder)) == 2)

    out, err = capsys.readouterr()
    assert done(folder) == ["a.json", "b.json"]
    assert sorted(json.loads(line)["file"] for line in out.splitlines()) == ["a.json", "b.json"]
    assert err == f"Note: watching {folder}\n"


async def test_reports_that_appear_are_published_too(stub: Any, folder: Path) -> None:
    stub.answers = [PUBLISHED]
    put(folder, "a.json")
    added = False

    def is_over() -> bool:
        nonlocal added
        if done(folder) and not added:
            put(folder, "b.json")
            added = True
        return len(done(folder)) == 2

    await watch(stub.address, folder, is_over)

    assert done(folder) == ["a.json", "b.json"]


@pytest.mark.parametrize("answer", [REFUSED, (401, {}, {})])
async def test_what_cannot_be_accepted_waits_and_is_tried_again(
    stub: Any,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    answer: Any,
) -> None:
    monkeypatch.setattr(module, "_LONGEST_PAUSE", 0.001)
    stub.answers = [answer, PUBLISHED]
    put(folder, "a.json")

    await watch(stub.address, folder, lambda: bool(done(folder)))

    notes = capsys.readouterr().err
    assert f"\n1 report waits in {SENDING}; trying again in 0.001 s\n" in notes
    assert done(folder) == ["a.json"]


async def test_pauses_double_up_to_a_minute(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(self: _Watcher, seconds: float) -> None:
        slept.append(seconds)
        await asyncio.sleep(0)
        if len(slept) == 7:
            self._stopped.set()

    monkeypatch.setattr(_Watcher, "_sleep", sleep)
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", -1.0)
    put(folder, "a.json")

    await watch(f"http://127.0.0.1:{free_port()}", folder, lambda: False)

    assert slept[:7] == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert "connection refused" in capsys.readouterr().err
    assert done(folder) == []


async def test_a_folder_that_another_process_watches_is_waited_for(
    stub: Any,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stub.answers = [PUBLISHED]
    put(folder, "a.json")
    service = service_at(stub.address)
    passes = 0

    async def sleep(self: _Watcher, _seconds: float) -> None:
        nonlocal passes
        passes += 1
        if passes == 5:
            self._stop()

    monkeypatch.setattr(_Watcher, "_sleep", sleep)
    with WatchedFolder(folder, service, Settling(0.0)).locked() as is_ours:
        assert is_ours
        await watch(stub.address, folder, lambda: False)

    assert capsys.readouterr().err == (
        f"Note: another process watches {folder}; waiting until it ends\n"
    )
    assert stub.requests == []


async def test_after_a_success_pauses_begin_again(
    stub: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(self: _Watcher, seconds: float) -> None:
        slept.append(seconds)
        await asyncio.sleep(0)
        if len(slept) == 2:
            put(folder, "b.json")
        if len(slept) == 3:
            self._stop()

    monkeypatch.setattr(_Watcher, "_sleep", sleep)
    stub.answers = [REFUSED, PUBLISHED, REFUSED]
    put(folder, "a.json")

    await watch(stub.address, folder, lambda: False)

    assert slept[:3] == [2.0, module._POLL_SECONDS, 2.0]


async def test_a_folder_that_is_gone_is_a_failure_that_is_tried_again(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def sleep(self: _Watcher, _seconds: float) -> None:
        await asyncio.sleep(0)
        if (folder.parent / "moved").exists():
            self._stop()
        else:
            move_away(folder)

    monkeypatch.setattr(_Watcher, "_sleep", sleep)

    await watch("http://127.0.0.1:9", folder, lambda: False)

    notes = capsys.readouterr().err
    assert f"Note: {folder}: No such file or directory\n0 reports wait in {SENDING}" in notes


async def test_a_result_is_one_line_with_the_name_of_its_file(
    stub: Any, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stub.answers = [PUBLISHED]
    put(folder, "a.json")

    await watch(stub.address, folder, lambda: bool(done(folder)), as_json=False)

    out = capsys.readouterr().out
    assert "a.json" in out
    assert str(folder) not in out
    assert not out.startswith("{")


async def test_a_pass_begins_only_while_the_watch_goes_on(stub: Any, folder: Path) -> None:
    put(folder, "a.json")

    await watch(stub.address, folder, lambda: True)

    assert stub.requests == []
    assert (folder / "a.json").exists()


async def test_a_pause_ends_when_the_watch_does(folder: Path) -> None:
    watched = WatchedFolder(folder, service_at(""), Settling(0.0))
    watcher = _Watcher(watched, WatchOptions(jobs=1, settle=0.0, as_json=True))
    paused = asyncio.create_task(watcher._sleep(3600))
    await asyncio.sleep(0)

    watcher._stop()

    async with asyncio.timeout(20):
        await paused


def test_a_signal_ends_a_watch(
    stub: Any,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder.parent)
    service = service_at(stub.address)

    async def sleep(self: _Watcher, _seconds: float) -> None:
        if not self._stopped.is_set():
            os.kill(os.getpid(), signal.SIGTERM)
            await until(self._stopped.is_set)

    monkeypatch.setattr(_Watcher, "_sleep", sleep)

    module.watch(service, Path("in"), WatchOptions(jobs=1, settle=0.0, as_json=True))

    assert (folder / SENDING).is_dir()
    assert capsys.readouterr().err == f"Note: watching {folder}\n"


async def test_what_is_put_off_is_sent_again_in_the_same_pass(
    stub: Any,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sender, "PAUSES", (0.001,))
    stub.answers = [(503, {}, {}), (503, {}, {}), PUBLISHED]
    put(folder, "a.json")

    await watch(stub.address, folder, lambda: bool(done(folder)))

    assert done(folder) == ["a.json"]
    assert f"wait in {SENDING}" not in capsys.readouterr().err
