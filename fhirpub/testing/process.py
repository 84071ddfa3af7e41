"""The service as a process of its own, to be stopped, killed and started again."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Self

from fhirpub.config.settings import load
from fhirpub.tenant import Tenant
from fhirpub.testing.service import Integrator, Service

_MODULE = "fhirpub"
_READY_SECONDS = 30.0
_END_SECONDS = 60.0


class ServiceProcess(Service):
    """``fhirpub serve`` over a store in a folder; use it as a context manager.

    ``settings`` are tables of the configuration file. After the first start the port stays the
    same, so that clients find the service again. What it writes to standard error is gathered in
    the file ``stderr.txt`` of the folder. Another ``module`` than fhirpub gets the same words,
    ``serve --config FILE --port PORT``, and must say in the same way that it is ready. Another
    ``python`` is that of an environment where fhirpub is installed, too.
    """

    def __init__(
        self,
        folder: Path,
        *,
        workers: int = 1,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        module: str = _MODULE,
        python: str = sys.executable,
    ) -> None:
        self.errors = folder / "stderr.txt"
        self.file = folder / "fhirpub.toml"
        tables = {name: dict(table) for name, table in (settings or {}).items()}
        tables["storage"] = {"url": f"sqlite:///{folder}/fhirpub.db", **tables.get("storage", {})}
        tables["server"] = {"port": 0, "workers": workers, **tables.get("server", {})}
        self.file.write_text(_toml(tables), encoding="utf-8")
        self.config = load(self.file, environment={})
        self.status: int | None = None
        """The exit status of the last run."""
        self._module = module
        self._python = python
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__()  # no caller can
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._process is not None:
            self.kill()

    @property
    def pid(self) -> int:
        """The process that serves, or that watches over the workers."""
        return self._running.pid

    @property
    def workers(self) -> list[int]:
        """The child processes, as Linux lists them."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [int(part) for part in children.split()]

    def launch(self) -> None:
        """Start it, without waiting for it."""
        words = ["serve", "--config", str(self.file), "--port", str(self.port)]
        with self.errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [self._python, "-m", self._module, *words],
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )

    def start(self) -> None:
        """Start it, and return when it says that it is ready."""
        self.launch()
        address = self._ready_line().rpartition(" ")[2]
        server = replace(self.config.server, port=int(address.rpartition(":")[2]))
        self.config = replace(self.config, server=server)

    def kill(self) -> None:
        """Kill it with all its workers, in the middle of whatever they do."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.wait()

    def terminate(self) -> None:
        """Ask it to stop; ``wait`` returns its exit status."""
        self._running.terminate()

    def wait(self, seconds: float = _END_SECONDS) -> int:
        """Return the exit status once it has ended."""
        process = self._running
        self.status = process.wait(seconds)
        _stdout(process).close()
        self._process = None
        return self.status

    def command(self, *words: str) -> Any:
        """Run a command of fhirpub with the same configuration; return the JSON it prints."""
        done = subprocess.run(
            [self._python, "-m", _MODULE, *words, "--json", "--config", str(self.file)],
            check=True,
            capture_output=True,
        )
        return json.loads(done.stdout)

    def integrator(self, name: str = "Lab", *, scopes: Sequence[str] = ()) -> Integrator:
        """Create a tenant and a client by the command line; return an integrator."""
        tenant = Tenant(self.command("tenant", "add", name)["id"], name, b"", 0)
        options = [word for scope in scopes for word in ("--scope", scope)]
        client = self.command("client", "add", "--tenant", tenant.id, *options)
        integrator = Integrator(self, tenant, client["client_id"], client["client_secret"])
        integrator.log_in()
        return integrator

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the service has not been started")
        return self._process

    def _ready_line(self) -> str:
        stream = _stdout(self._running)
        until = time.monotonic() + _READY_SECONDS
        line = b""
        while not line.endswith(b"\n"):
            left = max(0.0, until - time.monotonic())
            ready, _, _ = select.select([stream], [], [], left)
            piece = os.read(stream.fileno(), 4096) if ready else b""
            if not piece:
                if not ready:
                    self.kill()
                self.wait()
                raise RuntimeError(f"not ready; it wrote: {self.errors.read_text()}")
            line += piece
        return line.decode().strip()


def _stdout(process: subprocess.Popen[bytes]) -> IO[bytes]:
    if process.stdout is None:
        raise RuntimeError("the output is not read")
    return process.stdout


def _toml(tables: Mapping[str, Mapping[str, Any]]) -> str:
    lines = []
    for name, table in tables.items():
        lines.append(f"[{name}]")
        lines += [
            f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items()
        ]
    return "\n".join(lines) + "\n"
