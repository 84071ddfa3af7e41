"""The service as a separate process that can be stopped, killed and started again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Self

from fhirpub.app.stores import open_store
from fhirpub.auth.clients import NewClient, add_client
from fhirpub.auth.tenants import add_tenant
from fhirpub.config.loader import load
from fhirpub.config.settings import Config
from fhirpub.plugin_host.settings import setting_groups
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.records import Client
from fhirpub.tenant import Tenant
from fhirpub.testing.service import Integrator, Service

_MODULE = "fhirpub"
_READY_SECONDS = 30.0
_END_SECONDS = 60.0


class ServiceProcess(Service):
    """``fhirpub serve`` over a store in a folder; use it as a context manager.

    The port stays the same after the first start, so that clients find the service again.

    Args:
        folder: The folder of the configuration file, of the store unless ``settings`` name
            another, and of ``stderr.txt``, to which the standard error is appended.
        workers: The number of worker processes.
        settings: Tables of the configuration file.
        module: The module to run instead of fhirpub. It gets the same arguments, ``serve --config
            FILE --port PORT``, and must print the same line when it is ready. `command` still runs
            fhirpub.
        python: The interpreter of an environment in which fhirpub is installed.

    Attributes:
        errors: The file with the standard error.
        file: The configuration file.
        config: The settings in effect.
        status: The exit status of the last run that ended, negative for a signal, or None.
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
        self.config = load(self.file, environment={}, plugin_groups=setting_groups)
        self.status: int | None = None
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
        """The id of the process that serves, or that supervises the workers."""
        return self._running.pid

    @property
    def workers(self) -> list[int]:
        """The ids of the child processes, as Linux lists them."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [int(part) for part in children.split()]

    def launch(self) -> None:
        """Start the process without waiting until it is ready."""
        words = ["serve", "--config", str(self.file), "--port", str(self.port)]
        with self.errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [self._python, "-m", self._module, *words],
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )

    def start(self) -> None:
        """Start the process, and wait until it is ready.

        Raises:
            RuntimeError: It ended, or was not ready within 30 seconds and was killed. The message
                contains its standard error.
        """
        self.launch()
        address = self._ready_line().rpartition(" ")[2]
        server = replace(self.config.server, port=int(address.rpartition(":")[2]))
        self.config = replace(self.config, server=server)

    def kill(self) -> None:
        """Kill the process and its workers with SIGKILL, in the middle of any work."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.wait()

    def terminate(self) -> None:
        """Ask the process to stop by SIGTERM; `wait` returns its exit status."""
        self._running.terminate()

    def wait(self, seconds: float = _END_SECONDS) -> int:
        """Wait until the process has ended.

        Args:
            seconds: The maximum time to wait, in seconds.

        Returns:
            The exit status, negative for a signal.

        Raises:
            subprocess.TimeoutExpired: It has not ended in time.
        """
        process = self._running
        self.status = process.wait(seconds)
        _stdout(process).close()
        self._process = None
        return self.status

    def command(self, *words: str) -> Any:
        """Run a command of fhirpub with the same configuration.

        Args:
            *words: The command and its arguments, without ``--json`` and ``--config``.

        Returns:
            The JSON that it printed.

        Raises:
            subprocess.CalledProcessError: Its exit status is not 0.
        """
        done = subprocess.run(
            [self._python, "-m", _MODULE, *words, "--json", "--config", str(self.file)],
            check=True,
            capture_output=True,
        )
        return json.loads(done.stdout)

    def integrator(self, name: str = "Lab", *, scopes: Sequence[str] = ()) -> Integrator:
        """Create a tenant and a client in the store, beside the service, as commands do.

        Args:
            name: The name of the tenant.
            scopes: The scopes of the client; empty for the default ones.

        Returns:
            An integrator that has a token.
        """
        with ThreadPoolExecutor(1) as thread:  # the caller may be in an event loop
            added = thread.submit(asyncio.run, _add_client(self.config, name, tuple(scopes)))
            tenant, client, secret = added.result()
        integrator = Integrator(self, tenant, client.id, secret)
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
                if ready:
                    self.wait()
                else:
                    self.kill()
                raise RuntimeError(f"not ready; it wrote: {self.errors.read_text()}")
            line += piece
        return line.decode().strip()


async def _add_client(
    config: Config, name: str, scopes: tuple[str, ...]
) -> tuple[Tenant, Client, str]:
    async with open_store(config) as store:
        tenant = await add_tenant(store, name, clock=now_ms)
        client, secret = await add_client(
            store,
            NewClient(
                tenant=tenant.id, name="test", environment=config.auth.environment, scopes=scopes
            ),
            clock=now_ms,
        )
    return tenant, client, secret


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
