"""Starts the measured servers, on the loopback address only, and always stops them again.

A target is a context manager that yields a ``Target``. To measure another service, write another
one: ``bench.run`` needs no more than its port, its process and a token.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from bench.baseline import LOOPBACK
from bench.http_client import ask
from tests.mongod.replica_set import ReplicaSet

DEFAULT_STORAGE_URL = "sqlite:///{directory}/fhirpub.db"
DEFAULT_COMMAND = (sys.executable, "-m", "fhirpub")
_AUDIENCE = "https://bench.example/fhir"
_START_SECONDS = 30.0
_STOP_SECONDS = 15.0
_COMMAND_SECONDS = 60.0


class TargetFailed(Exception):
    """A server to be measured did not start, or ended on its own."""


@dataclass(frozen=True, slots=True)
class Target:
    """A running server."""

    port: int
    pid: int
    token: str

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"


@contextmanager
def floor(token: str, *, front: str = "handler") -> Generator[Target]:
    """Run the floor; ``token`` is sent to it, so that its requests equal the service's.

    ``front`` selects the server: see ``bench.baseline``.
    """
    with _answering("bench.baseline", token, "--front", front) as target:
        yield target


@contextmanager
def ceiling() -> Generator[Target]:
    """Run the bare server that shows how fast the generator itself is."""
    with _answering("bench.upper_bound", "") as target:
        yield target


@contextmanager
def mongodb() -> Generator[ReplicaSet]:
    """Run a replica set of one member, on the server that the tests use."""
    with (
        tempfile.TemporaryDirectory(prefix="fhirpub-bench-") as name,
        ReplicaSet(Path(name)) as replica_set,
    ):
        yield replica_set


@contextmanager
def service(
    work: str,
    *,
    command: Sequence[str] = DEFAULT_COMMAND,
    storage_url: str = DEFAULT_STORAGE_URL,
    workers: int = 1,
) -> Generator[Target]:
    """Run fhirpub in its default configuration on a store of its own, with one tenant and client.

    In ``storage_url``, ``{directory}`` is a new directory that is removed afterwards, and
    ``{work}`` is the name of the workload, for stores elsewhere.
    """
    with tempfile.TemporaryDirectory(prefix="fhirpub-bench-") as name:
        directory = Path(name)
        port = _free_port()
        config = directory / "fhirpub.toml"
        url = storage_url.format(directory=name, work=work)
        config.write_text(_config(port, url, workers))
        credentials = _credentials(command, config)
        serve = [*command, "serve", "--config", str(config), "--port", str(port)]
        with _running(serve, directory) as process:
            _await_ready(process, port, "/health/ready", directory)
            yield Target(port, process.pid, _token(port, credentials))


@contextmanager
def _answering(module: str, token: str, *options: str) -> Generator[Target]:
    port = _free_port()
    command = [sys.executable, "-m", module, "--port", str(port), *options]
    with (
        tempfile.TemporaryDirectory(prefix="fhirpub-bench-") as name,
        _running(command, Path(name)) as process,
    ):
        _await_ready(process, port, "/", Path(name))
        yield Target(port, process.pid, token)


@contextmanager
def _running(command: Sequence[str], directory: Path) -> Generator[subprocess.Popen[bytes]]:
    """Run a server in a group of its own, so that its children can be ended with it."""
    with (directory / "output.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask the group to end; kill the rest, also if this wait itself is interrupted."""
    try:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _await_ready(process: subprocess.Popen[bytes], port: int, path: str, directory: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if ask(port, "GET", path).status == 200:
                return
        time.sleep(0.05)
    log = (directory / "output.log").read_text(errors="replace")
    raise TargetFailed(f"a server did not become ready\n{log[-2000:]}")


def _config(port: int, storage_url: str, workers: int) -> str:
    return (
        f'[server]\nhost = "{LOOPBACK}"\nport = {port}\nworkers = {workers}\n'
        f'base_url = "http://{LOOPBACK}:{port}"\n\n'
        f'[auth]\naudience = "{_AUDIENCE}"\n\n'
        f'[storage]\nurl = "{storage_url}"\n'
    )


def _credentials(command: Sequence[str], config: Path) -> dict[str, str]:
    tenant = _record([*command, "tenant", "add", "Bench", "--config", str(config), "--json"])
    client = _record(
        [*command, "client", "add", "--tenant", tenant["id"], "--config", str(config), "--json"]
    )
    return {"client_id": client["client_id"], "client_secret": client["client_secret"]}


def _record(command: Sequence[str]) -> dict[str, str]:
    """Run a command that prints one JSON object; its output may be secret and is not shown."""
    done = subprocess.run(command, capture_output=True, timeout=_COMMAND_SECONDS, check=False)
    if done.returncode != 0:
        problem = done.stderr.decode(errors="replace")
        raise TargetFailed(f"{' '.join(command)}: status {done.returncode}\n{problem}")
    record: dict[str, str] = json.loads(done.stdout)
    return record


def _token(port: int, credentials: dict[str, str]) -> str:
    form = {"grant_type": "client_credentials", "audience": _AUDIENCE, **credentials}
    answer = ask(
        port,
        "POST",
        "/oauth/token",
        body=urlencode(form).encode(),
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    if answer.status != 200:
        raise TargetFailed(f"no token: {answer.status} {answer.body[:500]!r}")
    return str(answer.json()["access_token"])


def _free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
