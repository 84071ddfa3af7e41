"""The command line as a separate program, and a service with prepared responses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fhirpub.cli.commands import COMMANDS, Reporting
from fhirpub.testing.receiver import Receiver
from tests.unit.cli.bureau import Bureau
from tests.unit.cli.prepared import PreparedServer, Reply, open_server

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """Return the Python path of the program: the folders that pytest imports from, if any."""
    folders = [name for name in sys.path if Path(name).is_dir()]
    return {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(folders)}


@pytest.fixture
def run_program(tmp_path: Path, environment: dict[str, str]) -> Run:
    """Return a function that runs ``fhirpub`` as a program of its own, in an empty folder."""

    def run_program(
        *words: str, stdin: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "fhirpub", *words],
            cwd=tmp_path,
            env=environment | variables,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run_program


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command in this process, in an empty folder.

    A program of its own takes most of a second to start. What differs there is tested by
    ``run_program``: what begins before a command does, and what is written to the log.
    """
    monkeypatch.chdir(tmp_path)
    group = Reporting(places=COMMANDS)

    def run(*words: str, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        result = CliRunner().invoke(group, words, prog_name="fhirpub", input=stdin, env=variables)
        return subprocess.CompletedProcess(words, result.exit_code, result.stdout, result.stderr)

    return run


@dataclass
class Stub:
    """A service with prepared responses, in turn; the last one is repeated for ever."""

    address: str = ""
    answers: list[tuple[int, dict[str, str], Any]] = field(default_factory=list)
    token_answer: tuple[int, dict[str, str], Any] = (200, {}, {"access_token": "a.b.c"})
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    def take(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> Reply | None:
        """Note a request and return its answer; of the status 0: none."""
        assert method == "POST", f"{method} {path} is not prepared"
        self.requests.append((path, dict(headers), body))
        status, own, content = self._answer(path)
        return Reply(status, content, headers=own) if status else None

    def _answer(self, path: str) -> tuple[int, dict[str, str], Any]:
        if path == "/oauth/token":
            return self.token_answer
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture(scope="session")
def prepared_server() -> Iterator[PreparedServer]:
    """Return the server of all tests whose answers are prepared."""
    with open_server() as server:
        yield server


@pytest.fixture
def stub(prepared_server: PreparedServer) -> Iterator[Stub]:
    """Serve prepared responses on a socket."""
    stub = Stub(prepared_server.url)
    with prepared_server.answered_by(stub):
        yield stub


@pytest.fixture
def bureau(prepared_server: PreparedServer) -> Iterator[Bureau]:
    """Serve an interface for administration with prepared answers."""
    bureau = Bureau(prepared_server.url)
    with prepared_server.answered_by(bureau):
        yield bureau


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let standard streams count as terminals for questions and progress."""
    for module in (
        "administration.target",
        "erasure.erase",
        "progress_line",
        "webhooks.deliveries",
    ):
        monkeypatch.setattr(f"fhirpub.cli.{module}.is_terminal", lambda _stream: True)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Return a receiver of webhooks on a socket."""
    with Receiver() as running:
        yield running
