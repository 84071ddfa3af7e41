"""The command line as a separate program, and a service with prepared responses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fhirpub.cli.commands import COMMANDS, Reporting
from tests.unit.cli.bureau import Bureau, open_bureau

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

    def answer(self, path: str) -> tuple[int, dict[str, str], Any]:
        if path == "/oauth/token":
            return self.token_answer
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def stub() -> Iterator[Stub]:
    """Serve prepared responses on a socket."""
    stub = Stub()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            stub.requests.append((self.path, dict(self.headers), self.rfile.read(length)))
            status, headers, body = stub.answer(self.path)
            if status == 0:
                self.close_connection = True
                return
            content = json.dumps(body).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    stub.address = f"http://127.0.0.1:{server.server_port}"
    yield stub
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def bureau() -> Iterator[Bureau]:
    """Serve an interface for administration with prepared answers."""
    with open_bureau() as bureau:
        yield bureau
