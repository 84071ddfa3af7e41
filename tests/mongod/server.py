"""One mongod process, to be stopped, killed, paused and started again."""

from __future__ import annotations

import contextlib
import random
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any, TypeVar

import pymongo
from pymongo import MongoClient

from tests.mongod.executable import executable

HOST = "127.0.0.1"
SET_NAME = "rs0"
_READY = b"Waiting for connections"
_COMPLAINT = re.compile('"s":"[EF]"')
_READY_SECONDS = 60.0
_END_SECONDS = 30.0
_FAREWELL_SECONDS = 0.5
_PATIENCE_SECONDS = 90.0
"""A member that was killed replays what it had: with two sets on a busy machine that is long."""
_POLL_SECONDS = 0.02
# A set of one writes its journal only so often when it reads `linearizable`. A secondary whose
# source falls silent waits that many seconds before it takes another.
_OPTIONS = f"""
    --replSet {SET_NAME} --bind_ip {HOST} --nounixsocket --timeStampFormat iso8601-utc
    --wiredTigerCacheSizeGB 0.25 --oplogSize 64
    --journalCommitInterval 5
    --setParameter enableTestCommands=1
    --setParameter diagnosticDataCollectionEnabled=false
    --setParameter oplogNetworkTimeoutBufferSeconds=1
    --setParameter shutdownTimeoutMillisForSignaledShutdown=100
""".split()
# Reads one line, or the end of its input when the process that started it has died.
_GUARD = 'read -r line || { kill -9 "$1"; rm -rf "$2"; }'
T = TypeVar("T")
Document = dict[str, Any]


class Mongod:
    """A member of a replica set, reached directly and not through the set.

    ``folder`` holds its data and what it logs (``mongod.log``). Its port stays the same. It does
    not outlive the process that started it. ``options`` are further words of its command line.
    Raises ``NoServer`` if there is no mongod.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = _free_port()
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
        """The address for a client that shall talk to this member only."""
        return f"mongodb://{self.address}/?directConnection=true"

    @property
    def pid(self) -> int:
        """The process."""
        return self._running.pid

    @property
    def is_running(self) -> bool:
        """Whether there is a process, be it paused."""
        return self._process is not None

    @property
    def is_awake(self) -> bool:
        """Whether it can answer."""
        return self.is_running and not self._paused

    @property
    def client(self) -> MongoClient[Document]:
        """A client for commands to this member; another one after each start."""
        if self._client is None:
            raise RuntimeError("mongod has not been started")
        return self._client

    def start(self) -> None:
        """Start it on the data that are there; return when it takes connections."""
        self._data.mkdir(exist_ok=True)
        words = [str(self._executable), *_OPTIONS, "--port", str(self.port)]
        self._process = subprocess.Popen(
            [*words, "--dbpath", str(self._data), *self._options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # an interrupt of the tests is not one of the servers
        )
        self._guard = _guard(self.pid, self._data)
        self._wait_until_ready(self._process)
        # As patient with a heartbeat as with a command: one that is late for a machine that
        # stands still would cancel the command that is under way.
        self._client = MongoClient(
            self.url,
            serverSelectionTimeoutMS=5000,
            socketTimeoutMS=30_000,
            connectTimeoutMS=30_000,
        )

    def stop(self) -> None:
        """Ask it to end, and wait for that."""
        self.resume()
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it in the middle of whatever it does."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Let it stand still: its connections stay open, nothing is answered."""
        self._running.send_signal(signal.SIGSTOP)
        self._paused = True

    def resume(self) -> None:
        """Let it go on after a pause, if there was one."""
        self._running.send_signal(signal.SIGCONT)
        self._paused = False

    def command(self, name: str, value: Any = 1, **options: Any) -> Document:
        """Run a command on the database ``admin``."""
        return self.client.admin.command(name, value, **options)

    def hello(self) -> Document:
        """Return what it says of itself, ``isWritablePrimary`` and ``secondary`` for example."""
        return self.command("hello")

    @contextlib.contextmanager
    def failing(
        self, point: str = "failCommand", *, times: int | None = None, **data: Any
    ) -> Iterator[None]:
        """Let a fail point of the server be on for a block, or for the next so many times.

        ``failing(failCommands=["insert"], errorCode=91)`` refuses inserts, for example. A server
        that is paused in the block must be resumed in it.
        """
        mode = "alwaysOn" if times is None else {"times": times}
        self.command("configureFailPoint", point, mode=mode, data=data)
        try:
            yield
        finally:
            if self.is_running:  # else it ended with the process
                self.command("configureFailPoint", point, mode="off")

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
            with pymongo.timeout(_FAREWELL_SECONDS):  # a paused server answers no farewell
                self._client.close()
        try:
            process.wait(_END_SECONDS)
        finally:
            process.kill()
            process.wait()
            _dismiss(self._guard)
            self._client, self._guard, self._paused = None, None, False


def eventually(found: Callable[[], T | None], seconds: float = _PATIENCE_SECONDS) -> T:
    """Return what is found once it is something, or raise ``TimeoutError``."""
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
    ready.put(b"")  # it has ended


def _output_of(process: subprocess.Popen[bytes]) -> IO[bytes]:
    if process.stdout is None:
        raise RuntimeError("the output is not read")
    return process.stdout


def _guard(pid: int, data: Path) -> subprocess.Popen[bytes]:
    """Start what kills a process and deletes its data when this one is gone without doing so."""
    words: list[str] = ["sh", "-c", _GUARD, "sh", str(pid), str(data)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)


def _dismiss(guard: subprocess.Popen[bytes] | None) -> None:
    if guard is not None:
        guard.communicate(b"\n")


def _free_port() -> int:
    # Below those which systems give to connections: nobody takes it while the server is down.
    while True:
        port = random.randint(15_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, port))
            return port
