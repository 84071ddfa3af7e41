"""One mongod process, to be stopped, killed, paused and started again."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any, TypeVar

import pymongo
import pymongo.message
from pymongo import MongoClient

from tests.mongod.executable import executable

HOST = "127.0.0.1"
SET_NAME = "rs0"
_READY = b"Waiting for connections"
_COMPLAINT = re.compile('"s":"[EF]"')
_READY_SECONDS = 60.0
_END_SECONDS = 30.0
_FAREWELL_SECONDS = 0.5
PATIENCE_SECONDS = 300.0
"""A killed member replays its journal: with two sets on a busy machine that takes long."""
_POLL_SECONDS = 0.02
SMALL_JOURNAL = ["--wiredTigerEngineConfigString", "log=(prealloc=false,file_max=16MB)"]
"""Without this option it takes 300 MB from the start."""
# A set of one writes its journal only at this interval when it reads `linearizable`. A secondary
# whose source falls silent waits this number of seconds before it chooses another.
_OPTIONS = f"""
    --replSet {SET_NAME} --bind_ip {HOST} --nounixsocket --timeStampFormat iso8601-utc
    --wiredTigerCacheSizeGB 0.25 --oplogSize 64
    --journalCommitInterval 5
    {" ".join(SMALL_JOURNAL)}
    --setParameter enableTestCommands=1
    --setParameter diagnosticDataCollectionEnabled=false
    --setParameter oplogNetworkTimeoutBufferSeconds=1
    --setParameter shutdownTimeoutMillisForSignaledShutdown=100
""".split()
# It reads one line, or the end of its input when the process that started it has died.
_GUARD = 'read -r line || { kill -9 "$1"; rm -rf "$2"; }'
T = TypeVar("T")
Document = dict[str, Any]
# A service in the process of the tests numbers its commands in threads, with numbers of `random`.
# Hypothesis would take them for a strategy that cannot be reproduced, and fail the test.
pymongo.message.random = random.Random()  # type: ignore[assignment, attr-defined]


class Mongod:
    """A member of a replica set, reached directly and not through the set.

    ``folder`` holds its data and its log (``mongod.log``). Its port stays the same. It does not
    outlive the process that started it. ``options`` are further arguments of its command line.
    Raises ``NoServer`` if there is no mongod.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port, held = reserve_port()
        weakref.finalize(self, os.close, held)
        self._executable = executable()
        self.log = folder / "mongod.log"
        self._data = folder / "data"
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._client: MongoClient[Document] | None = None
        self._paused = False

    @property
    def address(self) -> str:
        """Host and port."""
        return f"{HOST}:{self.port}"

    @property
    def url(self) -> str:
        """The URL for a client that connects to this member only."""
        return f"mongodb://{self.address}/?directConnection=true"

    @property
    def pid(self) -> int:
        """The process."""
        return self._running.pid

    @property
    def is_running(self) -> bool:
        """Whether there is a process, even a paused one."""
        return self._process is not None

    @property
    def is_awake(self) -> bool:
        """Whether it can respond."""
        return self.is_running and not self._paused

    @property
    def client(self) -> MongoClient[Document]:
        """A client for commands to this member; another one after each start."""
        if self._client is None:
            raise RuntimeError("mongod has not been started")
        return self._client

    def start(self) -> None:
        """Start it on its existing data; return when it accepts connections."""
        self._data.mkdir(exist_ok=True)
        words = [str(self._executable), *_OPTIONS, "--port", str(self.port)]
        self._process = subprocess.Popen(
            [*words, "--dbpath", str(self._data), *self._options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # an interrupt of the tests must not reach the server
        )
        self._guard = _guard(self.pid, self._data)
        self._wait_until_ready(self._process)
        # The timeout of a heartbeat equals that of a command: a late heartbeat on a machine that
        # stands still would cancel the command in progress.
        self._client = MongoClient(
            self.url,
            serverSelectionTimeoutMS=5000,
            socketTimeoutMS=30_000,
            connectTimeoutMS=30_000,
        )

    def stop(self) -> None:
        """Send SIGTERM and wait for its end."""
        self.resume()
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it, whatever it is doing."""
        self._end(signal.SIGKILL)

    def delete_data(self) -> None:
        """Delete the data of a member that does not run; it copies another when it starts."""
        shutil.rmtree(self._data)

    def pause(self) -> None:
        """Pause it: its connections stay open, nothing is answered."""
        self._running.send_signal(signal.SIGSTOP)
        self._paused = True

    def resume(self) -> None:
        """Resume it after a pause, if there was one."""
        self._running.send_signal(signal.SIGCONT)
        self._paused = False

    def command(self, name: str, value: Any = 1, **options: Any) -> Document:
        """Run a command on the database ``admin``."""
        return self.client.admin.command(name, value, **options)

    def hello(self) -> Document:
        """Return its ``hello`` reply, with ``isWritablePrimary`` and ``secondary`` for example."""
        return self.command("hello")

    @contextlib.contextmanager
    def failing(
        self, point: str = "failCommand", *, times: int | None = None, **data: Any
    ) -> Iterator[int]:
        """Enable a fail point of the server for a block, or for the given number of times.

        ``failing(failCommands=["insert"], errorCode=91)`` refuses inserts, for example. A server
        that is paused in the block must be resumed in it. Yields how often the server had reached
        the point before.
        """
        mode = "alwaysOn" if times is None else {"times": times}
        enabled = self.command("configureFailPoint", point, mode=mode, data=data)
        try:
            yield enabled["count"]
        finally:
            if self.is_running:  # otherwise it ended with the process
                self.command("configureFailPoint", point, mode="off")

    def wait_for(self, point: str, *, times: int) -> None:
        """Return when the server has reached a fail point so often, in all."""
        limit = round(PATIENCE_SECONDS * 1000)
        self.command("waitForFailPoint", point, timesEntered=times, maxTimeMS=limit)

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("mongod has not been started")
        return self._process

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        ready: SimpleQueue[bytes] = SimpleQueue()
        target, name = _follow, f"output of {self.address}"
        arguments = (_output_of(process), self.log, ready)
        threading.Thread(target=target, args=arguments, name=name, daemon=True).start()
        try:
            is_ready = ready.get(timeout=_READY_SECONDS)
        except Empty:
            is_ready = b""
        if not is_ready:
            self.kill()
            lines = self.log.read_text().splitlines()
            reasons = [line for line in lines if _COMPLAINT.search(line)] or lines
            raise RuntimeError("\n".join(["mongod did not start:", *reasons[-10:]]))

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._running, None
        process.send_signal(number)
        if self._client is not None:
            with pymongo.timeout(_FAREWELL_SECONDS):  # a paused server does not answer a goodbye
                self._client.close()
        try:
            process.wait(_END_SECONDS)
        finally:
            process.kill()
            process.wait()
            _dismiss(self._guard)
            self._client, self._guard, self._paused = None, None, False


def eventually(found: Callable[[], T | None], seconds: float = PATIENCE_SECONDS) -> T:
    """Return the value of ``found()`` once it is not None, or raise ``TimeoutError``."""
    until = time.monotonic() + seconds
    while (value := found()) is None:
        if time.monotonic() > until:
            raise TimeoutError(f"nothing after {seconds} s")
        time.sleep(_POLL_SECONDS)
    return value


def _follow(stream: IO[bytes], log: Path, ready: SimpleQueue[bytes]) -> None:
    with stream, log.open("ab") as file:
        for line in stream:
            file.write(line)
            file.flush()
            if _READY in line:
                ready.put(line)
    ready.put(b"")  # the process has ended


def _output_of(process: subprocess.Popen[bytes]) -> IO[bytes]:
    if process.stdout is None:
        raise RuntimeError("the output is not read")
    return process.stdout


def _guard(pid: int, data: Path) -> subprocess.Popen[bytes]:
    """Start a guard that kills a process and deletes its data if this process dies first."""
    words: list[str] = ["sh", "-c", _GUARD, "sh", str(pid), str(data)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)


def _dismiss(guard: subprocess.Popen[bytes] | None) -> None:
    if guard is not None:
        guard.communicate(b"\n")


def reserve_port() -> tuple[int, int]:
    """Return a port for a server, and the descriptor that keeps others from it until it is closed.

    It is below the ports that systems give to connections, so that it stays free while the server
    is down. The socket behind the descriptor does not listen: on Linux the server may, since both
    may use the address again, and no other call of this function finds the port free.
    """
    while True:
        port = random.randint(15_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, port))
            if sys.platform != "linux":
                return port, os.open(os.devnull, os.O_RDONLY)
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            return port, probe.detach()
