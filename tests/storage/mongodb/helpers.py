"""Helpers of the MongoDB store's tests: its servers, its failures and the commands sent."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymongo
import pymongo.monitoring
from pymongo.synchronous.database import Database as PymongoDatabase

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.mongodb.schema import STORED_BYTES
from fhirpub.storage.mongodb.store import MongoStore, from_url
from tests.mongod.executable import executable
from tests.mongod.server import SMALL_JOURNAL, reserve_port

Database = PymongoDatabase[dict[str, Any]]
Admin = pymongo.MongoClient[dict[str, Any]]


SETUP_SECONDS = 120
"""The time limit for setting up, which no test is about."""


def start_mongod(folder: Path, *arguments: str) -> tuple[subprocess.Popen[bytes], int]:
    """Start a server that is not a proper member of a set; return it and its port."""
    port, held = reserve_port()
    command = [str(executable()), "--dbpath", str(folder), "--port", str(port)]
    command += ["--bind_ip", "127.0.0.1", "--setParameter", "enableTestCommands=1"]
    command += ["--wiredTigerCacheSizeGB", "0.5", *SMALL_JOURNAL, *arguments]
    with (folder / "mongod.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    weakref.finalize(server, os.close, held)
    return server, port


@contextmanager
def unused_port() -> Iterator[int]:
    """Yield a port on which no process listens, and which none is given."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def store_of(url: str, *, seconds: float = 30) -> MongoStore:
    return from_url(url, deadline_seconds=seconds, production=True)


WEAK = (
    "w=1&journal=false&readConcernLevel=local&readPreference=secondary&retryWrites=false"
    "&retryReads=false&directConnection=true&wTimeoutMS=1&timeoutMS=1"
)


class Commands(pymongo.monitoring.CommandListener):
    """The commands that the driver sends, from any client, while they are recorded."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] | None = None
        self._all = False
        self.then: dict[str, Callable[[], object]] = {}
        """Called before the driver returns the first reply to a command."""
        self.unanswered: list[int] = []
        self.most_unanswered = 0

    @contextmanager
    def recorded(self, *, stored_bytes: bool = False) -> Iterator[list[dict[str, Any]]]:
        """Collect what is sent.

        Stored bytes are written a second after the first of them, in the middle of anything.
        """
        sent: list[dict[str, Any]] = []
        self._all = stored_bytes
        self.sent, self.unanswered, self.most_unanswered = sent, [], 0
        yield sent
        self.sent = None

    def started(self, event: pymongo.monitoring.CommandStartedEvent) -> None:
        counts = event.command.get("update") == STORED_BYTES
        if self.sent is not None and (self._all or not counts):
            self.sent.append({**event.command, "command": event.command_name})
        if event.command_name == "find":
            self.unanswered.append(event.request_id)
            self.most_unanswered = max(self.most_unanswered, len(self.unanswered))

    def succeeded(self, event: pymongo.monitoring.CommandSucceededEvent) -> None:
        self.then.pop(event.command_name, lambda: None)()
        if event.request_id in self.unanswered:
            self.unanswered.remove(event.request_id)

    def failed(self, event: pymongo.monitoring.CommandFailedEvent) -> None:
        """Ignore it."""


COMMANDS = Commands()
pymongo.monitoring.register(COMMANDS)


@contextmanager
def failing(admin: Admin, *commands: str, times: int | None = None, **how: Any) -> Iterator[None]:
    """Make commands of the store under test fail, always or the given number of times."""
    data = {"failCommands": list(commands), "appName": "tried", **how}
    mode = "alwaysOn" if times is None else {"times": times}
    admin.admin.command({"configureFailPoint": "failCommand", "mode": mode, "data": data})
    try:
        yield
    finally:
        admin.admin.command({"configureFailPoint": "failCommand", "mode": "off"})


async def start_behind_faults(url: str, *, deadline_seconds: float, **options: Any) -> MongoStore:
    """Start a store with the deadline of a test, however slow the machine is.

    Collections and indexes are created by a store with a generous deadline first.
    """
    patient = from_url(url, deadline_seconds=SETUP_SECONDS, **options)
    await patient.start()
    await patient.stop()
    ends = time.monotonic() + SETUP_SECONDS
    while True:
        store = from_url(url, deadline_seconds=deadline_seconds, **options)
        try:
            await store.start()
        except StoreUnavailable:
            if time.monotonic() > ends:
                raise
        else:
            return store
