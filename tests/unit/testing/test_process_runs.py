"""The published process runner: what it starts, what it ends, and what it keeps of each run."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fhirpub.app.stores import open_store
from fhirpub.testing import process as running
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.receiver import Receiver, Reply

READY = 'echo "fhirpub is ready at http://127.0.0.1:4711"'
Interpreter = Callable[[str], str]


@pytest.fixture
def interpreter(tmp_path: Path) -> Interpreter:
    """Return a function that writes a program in the place of an interpreter."""

    def write(script: str) -> str:
        file = tmp_path / "python"
        noted = f'echo "$@" >> {tmp_path}/words\necho said >&2\n'
        file.write_text(f"#!/bin/sh\n{noted}{script}\n")
        file.chmod(0o755)
        return str(file)

    return write


def words(folder: Path) -> list[str]:
    return (folder / "words").read_text().splitlines()


class Living:
    """A pipe that processes hold open as long as they live."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "living"
        os.mkfifo(self.file)
        self._read = os.open(self.file, os.O_RDONLY | os.O_NONBLOCK)

    def has_ended(self) -> bool:
        """Return whether all have ended, within a generous time."""
        try:
            ready, _, _ = select.select([self._read], [], [], 30)
            return bool(ready) and os.read(self._read, 1) == b""
        finally:
            os.close(self._read)


# Its configuration


def test_tables_of_the_settings_complete_and_replace_the_usual_ones(tmp_path: Path) -> None:
    settings: dict[str, dict[str, Any]] = {
        "server": {"drain_seconds": 99, "workers": 3},
        "storage": {"url": f"sqlite:///{tmp_path}/other.db"},
        "logs": {"level": "debug"},
    }

    made = ServiceProcess(tmp_path, workers=2, settings=settings)

    assert (made.config.server.drain_seconds, made.config.server.workers) == (99, 3)
    assert made.config.storage.url == f"sqlite:///{tmp_path}/other.db"
    assert made.config.logs.level == "debug"
    assert made.config.server.port == 0


def test_the_settings_of_the_caller_stay_as_they_are(tmp_path: Path) -> None:
    settings: dict[str, dict[str, Any]] = {"server": {"drain_seconds": 99}}

    ServiceProcess(tmp_path, settings=settings)

    assert settings == {"server": {"drain_seconds": 99}}


def test_values_of_settings_may_be_of_every_type(tmp_path: Path) -> None:
    proxies = ["10.0.0.0/8", "::1/128"]
    server = {"gzip_requests": False, "trusted_proxies": proxies, "drain_seconds": 1.5}

    found = ServiceProcess(tmp_path, settings={"server": server}).config.server

    assert (found.gzip_requests, found.drain_seconds) == (False, 1.5)
    assert [str(each) for each in found.trusted_proxies] == proxies


@pytest.mark.parametrize("workers", [1, 2])
def test_it_has_as_many_workers_as_named(tmp_path: Path, workers: int) -> None:
    assert ServiceProcess(tmp_path, workers=workers).config.server.workers == workers


# Its runs


def test_the_port_of_the_first_run_is_that_of_the_next(
    tmp_path: Path, interpreter: Interpreter
) -> None:
    made = ServiceProcess(tmp_path, python=interpreter(f"{READY}\nexec sleep 600"))

    for _ in range(2):
        with made:
            assert made.port == 4711

    file = tmp_path / "fhirpub.toml"
    assert words(tmp_path) == [
        f"-m fhirpub serve --config {file} --port {port}" for port in (0, 4711)
    ]
    assert made.errors.read_text() == "said\nsaid\n"


def test_the_line_of_a_process_that_is_ready_may_come_in_parts(
    tmp_path: Path, interpreter: Interpreter
) -> None:
    script = "printf 'fhirpub is ready at http://127.0.0.1:47'\nsleep 0.1\necho 11\nexec sleep 600"

    with ServiceProcess(tmp_path, python=interpreter(script)) as made:
        assert made.port == 4711


def test_another_module_gets_the_same_arguments(tmp_path: Path, interpreter: Interpreter) -> None:
    python = interpreter(f"{READY}\nexec sleep 600")

    with ServiceProcess(tmp_path, python=python, module="tests.other"):
        pass

    assert words(tmp_path)[0].startswith("-m tests.other serve --config ")


def test_its_end_kills_what_it_has_started(tmp_path: Path, interpreter: Interpreter) -> None:
    living = Living(tmp_path)
    script = f"exec 3>{living.file}\nsleep 600 &\n{READY}\nwait"

    with ServiceProcess(tmp_path, python=interpreter(script)) as made:
        pass

    assert living.has_ended()
    assert made.status == -signal.SIGKILL


def test_it_is_killed_if_its_start_fails(tmp_path: Path, interpreter: Interpreter) -> None:
    living = Living(tmp_path)
    script = f"exec 3>{living.file}\necho no address\nexec sleep 600"
    made = ServiceProcess(tmp_path, python=interpreter(script))

    with pytest.raises(ValueError), made:
        pass

    assert living.has_ended()
    assert made.status == -signal.SIGKILL


def test_a_process_that_is_not_ready_in_time_is_killed(
    tmp_path: Path, interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_READY_SECONDS", 0.3)
    made = ServiceProcess(tmp_path, python=interpreter("printf half\nexec sleep 600"))

    with pytest.raises(RuntimeError, match="not ready; it wrote: "):
        made.start()

    assert made.status == -signal.SIGKILL


def test_a_process_that_ends_before_it_is_ready_is_an_error_with_what_it_wrote(
    tmp_path: Path, interpreter: Interpreter
) -> None:
    made = ServiceProcess(tmp_path, python=interpreter("exit 3"))

    with pytest.raises(RuntimeError, match="not ready; it wrote: said"):
        made.start()

    assert made.status == 3
    with pytest.raises(RuntimeError, match="has not been started"):
        _ = made.pid


def test_a_process_that_is_asked_to_stop_has_the_status_of_its_end(
    tmp_path: Path, interpreter: Interpreter
) -> None:
    made = ServiceProcess(tmp_path, python=interpreter(f"{READY}\nexec sleep 600"))
    made.start()
    assert made.status is None

    made.terminate()

    assert made.wait() == made.status == -signal.SIGTERM


def test_a_process_that_does_not_end_in_time_goes_on(
    tmp_path: Path, interpreter: Interpreter
) -> None:
    with ServiceProcess(tmp_path, python=interpreter(f"{READY}\nexec sleep 600")) as made:
        with pytest.raises(subprocess.TimeoutExpired):
            made.wait(0.01)

        assert made.pid


@pytest.mark.skipif(not Path("/proc").exists(), reason="Linux lists children there")
def test_its_workers_are_the_children_of_its_process(
    tmp_path: Path, interpreter: Interpreter
) -> None:
    script = f"sleep 600 &\necho $! > {tmp_path}/child\n{READY}\nwait"

    with ServiceProcess(tmp_path, python=interpreter(script)) as made:
        assert made.workers == [int((tmp_path / "child").read_text())]


# Commands


def test_a_command_runs_fhirpub_with_the_same_configuration(
    tmp_path: Path, interpreter: Interpreter
) -> None:
    python = interpreter("echo '{\"a\": 1}'")
    made = ServiceProcess(tmp_path, python=python, module="tests.other")

    assert made.command("tenant", "list") == {"a": 1}

    assert words(tmp_path) == [f"-m fhirpub tenant list --json --config {made.file}"]


def test_a_command_that_fails_is_an_error(tmp_path: Path, interpreter: Interpreter) -> None:
    made = ServiceProcess(tmp_path, python=interpreter("echo '{}'; exit 1"))

    with pytest.raises(subprocess.CalledProcessError):
        made.command("tenant", "list")


async def test_an_integrator_is_a_client_in_the_store_with_its_scopes(tmp_path: Path) -> None:
    scopes = ("system/Patient.r",)
    with Receiver() as receiver:
        receiver.answer(Reply(status=200, body=b'{"access_token":"t-1"}'))
        made = ServiceProcess(tmp_path, settings={"server": {"port": receiver.port}})

        lab = made.integrator("North", scopes=scopes)

    async with open_store(made.config) as store:
        client = await store.client(lab.client_id)
    assert client is not None
    assert (client.tenant, client.scopes) == (lab.tenant.id, scopes)
    assert (lab.tenant.name, lab.token) == ("North", "t-1")
