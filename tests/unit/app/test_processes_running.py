"""What one process opens, announces and closes, and in which order."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from fhirpub.app import processes
from fhirpub.app.processes import _dispatch, _serve_one
from fhirpub.config.console import ConsoleConfig
from fhirpub.config.settings import Config, ServerConfig
from tests.waiting import until

CONFIG = Config(server=ServerConfig(host="127.0.0.1", port=9_999, drain_seconds=7.0))


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What is done, of which nothing touches this process."""
    notes: list[Any] = []
    switch = sys.getswitchinterval()

    def opens(name: str, value: Any = None) -> Callable[..., Any]:
        @asynccontextmanager
        async def opened(*_given: Any, **_named: Any) -> AsyncIterator[Any]:
            notes.append(f"{name} opened")
            yield value
            notes.append(f"{name} closed")

        return opened

    def bind(config: Config, **options: Any) -> tuple[Config, list[Any]]:
        notes.append(("bound", options))
        return replace(config, server=replace(config.server, port=4_711)), []

    store = SimpleNamespace(cipher="the cipher")
    for name, part in {
        "raise_descriptor_limit": lambda: notes.append("descriptors"),
        "tune_allocator": lambda: notes.append("allocator"),
        "bind_page": lambda _config: None,
        "bind": bind,
        "build_services": opens("services", SimpleNamespace(metrics=None)),
        "serve_metrics": opens("metrics"),
        "run_server": opens("server"),
        "name_plugins_of": lambda _plugins: notes.append("plugins named"),
        "plugins_running": opens("plugins"),
        "open_tracer": opens("tracer", "the tracer"),
        "create_sender": opens("sender", "the sender"),
    }.items():
        monkeypatch.setattr(processes, name, part)
    monkeypatch.setattr("fhirpub.app.processes.stores.open_store", opens("store", store))
    # Its own name alone: a service in another thread of this process collects, too.
    collector = {name: partial(notes.append, name) for name in ("collect", "freeze")}
    monkeypatch.setattr(processes, "gc", SimpleNamespace(**collector))
    sys.setswitchinterval(0.005)
    yield notes
    sys.setswitchinterval(switch)


async def served(notes: list[Any], **options: Any) -> list[Any]:
    """Serve until a stop; return what was logged."""
    stop = asyncio.Event()

    def announce(address: str) -> None:
        notes.append(address)
        stop.set()

    with capture_logs() as lines:
        await asyncio.wait_for(_serve_one(CONFIG, announce, stop, **options), 30)
    return [*lines]


async def test_a_process_alone_listens_before_it_opens_anything(notes: list[Any]) -> None:
    (line,) = await served(notes)

    assert notes == [
        "descriptors",
        "allocator",
        ("bound", {}),
        "services opened",
        "metrics opened",
        "server opened",
        "collect",
        "freeze",
        "http://127.0.0.1:4711",
        "server closed",
        "metrics closed",
        "services closed",
    ]
    assert (line["event"], line["drain_seconds"]) == ("stopping", 7.0)


async def test_a_process_that_shares_its_port_listens_once_it_can_respond(
    notes: list[Any],
) -> None:
    await served(notes, shares_port=True)

    assert notes.index(("bound", {"reuse_port": True})) > notes.index("services opened")
    assert notes.index(("bound", {"reuse_port": True})) < notes.index("server opened")
    assert "http://127.0.0.1:9999" in notes


async def test_a_process_that_serves_switches_threads_often(notes: list[Any]) -> None:
    await served(notes)

    assert sys.getswitchinterval() == pytest.approx(0.0005)
    assert "server closed" in notes


@pytest.mark.parametrize(("enabled", "port"), [(True, 9_001), (False, 0)])
def test_the_port_of_the_console_is_reserved_if_it_is_served(
    monkeypatch: pytest.MonkeyPatch, *, enabled: bool, port: int
) -> None:
    reserved: dict[str, int] = {}

    def reserve(name: str, config: Any) -> Any:
        reserved[name] = config.port
        return nullcontext()

    monkeypatch.setattr(processes, "reserve_own_port", reserve)
    monkeypatch.setattr(processes, "configure", lambda **_options: None)
    monkeypatch.setattr(processes, "own_schemas", lambda: None)
    monkeypatch.setattr(processes, "supervise", lambda *_given, **_named: 0)
    server = ServerConfig(host="127.0.0.1", port=0, workers=2)
    console = replace(ConsoleConfig(), enabled=enabled, port=9_001)

    assert processes.serve(Config(server=server, console=console), announce=pytest.fail) == 0

    assert reserved == {"admin": 0, "console": port}


@dataclass
class Sending:
    """A process that sends, until it is to stop."""

    notes: list[Any]
    made: list[Any]

    def worker(self, store: Any, **parts: Any) -> Any:
        self.made.append((store, parts))
        return self

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.notes.append("worker opened")
        yield
        self.notes.append("worker closed")

    async def report(self, store: Any) -> None:
        self.notes.append(f"keys of {store.cipher} checked")

    async def follow(self, cipher: Any) -> None:
        self.notes.append(f"following {cipher}")
        try:
            await asyncio.Future()
        finally:
            self.notes.append("followed")

    async def run(self) -> list[Any]:
        """Send until all has begun; return what is logged."""
        stop = asyncio.Event()
        with capture_logs() as lines:
            task = asyncio.create_task(
                _dispatch(CONFIG, lambda: self.notes.append("announced"), stop)
            )
            await until(lambda: "following the cipher" in self.notes)
            assert not task.done()
            stop.set()
            await asyncio.wait_for(task, 30)
            await until(lambda: "followed" in self.notes)
        return [*lines]


@pytest.fixture
def sending(notes: list[Any], monkeypatch: pytest.MonkeyPatch) -> Sending:
    sending = Sending(notes, [])
    monkeypatch.setattr(processes, "WebhookWorker", sending.worker)
    monkeypatch.setattr(processes, "report_lost_key", sending.report)
    monkeypatch.setattr(processes, "follow_keys", sending.follow)
    return sending


async def test_a_process_that_sends_ends_what_it_began(sending: Sending) -> None:
    lines = await sending.run()

    notes = sending.notes
    opened = [one.removesuffix(" opened") for one in notes if str(one).endswith(" opened")]
    closed = [one.removesuffix(" closed") for one in notes if str(one).endswith(" closed")]
    assert opened == ["plugins", "store", "tracer", "metrics", "sender", "worker"]
    assert closed == opened[::-1]
    assert notes.index("keys of the cipher checked") < notes.index("announced")
    assert "plugins named" in notes
    assert [line["drain_seconds"] for line in lines] == [7.0]


async def test_what_sends_has_the_parts_of_its_process(sending: Sending) -> None:
    await sending.run()

    ((store, parts),) = sending.made
    assert (store.cipher, parts["seal"]) == ("the cipher", "the cipher")
    assert parts["config"] is CONFIG
    assert (parts["sender"], parts["tracer"]) == ("the sender", "the tracer")
