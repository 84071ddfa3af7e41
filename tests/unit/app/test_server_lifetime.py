"""What runs beside a server, and in which order all of it ends."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from fhirpub.app import server
from fhirpub.config.settings import Config
from fhirpub.encryption.cipher import SecretCipher
from tests.waiting import until


class Listening:
    """What listens: notes what is done to it."""

    def __init__(self, notes: list[str], sockets: list[Any]) -> None:
        self._notes, self._sockets = notes, sockets

    def __call__(self, _adapter: Any, _bounds: Any) -> Listening:
        return self

    def add_sockets(self, sockets: list[Any]) -> None:
        self._sockets += sockets

    def stop(self) -> None:
        self._notes.append("accepts no more")

    def close_idle(self) -> bool:
        return False

    async def close_all_connections(self) -> None:
        self._notes.append("connections closed")


class Lifetime:
    """A part of the service that notes when it is begun and ended."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self._name, self._notes = name, notes

    @contextlib.asynccontextmanager
    async def running(self) -> Any:
        self._notes.append(f"{self._name} begun")
        yield
        self._notes.append(f"{self._name} ended")

    async def run(self, *_given: Any) -> None:
        self._notes.append(f"{self._name} begun")
        try:
            await asyncio.Future()
        finally:
            self._notes.append(f"{self._name} ended")

    async def start(self) -> None:
        self._notes.append(f"{self._name} loaded")

    async def finish(self) -> None:
        self._notes.append(f"{self._name} saved")

    def stop(self) -> None:
        self._notes.append(f"{self._name} stopped")

    def close(self) -> None:
        self._notes.append(f"{self._name} closed")


@dataclass
class Noted:
    """A service of parts that note what happens to them, and where it listens."""

    services: Any
    notes: list[str]
    sockets: list[Any]


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Noted:
    notes: list[str] = []
    sockets: list[Any] = []
    part = partial(Lifetime, notes=notes)

    async def reindexed(*_given: Any) -> None:
        notes.append("indexed")

    monkeypatch.setattr(server, "reindex_if_needed", reindexed)
    monkeypatch.setattr(server, "RequestRouterAdapter", lambda *_given: None)
    monkeypatch.setattr(server, "table_of", lambda _services: [])
    monkeypatch.setattr(server, "Server", Listening(notes, sockets))
    for name, what in {
        "InterruptedErasures": "erasures",
        "RetentionRound": "retention",
    }.items():
        monkeypatch.setattr(server, name, lambda _services, what=what: part(what))
    for name, what in {"follow_keys": "keys", "_sweep": "sweeping"}.items():
        monkeypatch.setattr(server, name, lambda _given, what=what: part(what).run())
    services = SimpleNamespace(
        store=SimpleNamespace(cipher=SecretCipher()),
        config=Config(),
        clock=lambda: 0,
        context=SimpleNamespace(searched={}),
        metrics=SimpleNamespace(loop_lag=SimpleNamespace(observe=None)),
        quota_exchange=part("counts"),
        body_timeout=part("body timeout"),
        trimmer=part("trimmer"),
        loop_lag=part("loop lag"),
        arrivals=part("arrivals"),
        threads=part("threads"),
        audit=part("audit"),
        sending=part("sending"),
        in_flight=set(),
    )
    return Noted(services, notes, sockets)


async def served(noted: Noted) -> None:
    """Serve until all that runs beside the service has begun, and stop."""
    async with server._serving(noted.services, ["a socket"]):  # type: ignore[list-item]
        await until(lambda: {"loop lag begun", "retention begun"} <= {*noted.notes})
        noted.notes.append("served")


async def test_a_server_listens_where_it_is_given(noted: Noted) -> None:
    await served(noted)

    assert noted.sockets == ["a socket"]


async def test_the_index_and_the_counts_are_there_before_anything_runs(noted: Noted) -> None:
    await served(noted)

    assert noted.notes[:2] == ["indexed", "counts loaded"]


async def test_a_service_runs_what_is_beside_it_until_it_stops(noted: Noted) -> None:
    await served(noted)

    begun = {one for one in noted.notes if one.endswith("begun")}
    ended = {one for one in noted.notes if one.endswith("ended")}
    assert begun == {
        "counts begun",
        "body timeout begun",
        "trimmer begun",
        "loop lag begun",
        "erasures begun",
        "retention begun",
        "keys begun",
        "sweeping begun",
        "audit begun",
        "sending begun",
    }
    assert {one.removesuffix("begun") for one in begun} == {
        one.removesuffix("ended") for one in ended
    }


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("audit begun", "served"),
        ("sending begun", "served"),
        ("served", "accepts no more"),
        ("accepts no more", "arrivals stopped"),
        ("arrivals stopped", "sending ended"),
        ("sending ended", "connections closed"),
        ("connections closed", "counts ended"),
        ("counts ended", "counts saved"),
        ("counts saved", "threads closed"),
        ("threads closed", "audit ended"),
    ],
)
async def test_a_service_stops_in_order(noted: Noted, first: str, second: str) -> None:
    await served(noted)

    assert noted.notes.index(first) < noted.notes.index(second)


async def test_a_service_that_fails_stops_all_the_same(noted: Noted) -> None:
    with pytest.raises(ValueError, match="no"):
        async with server._serving(noted.services, []):
            raise ValueError("no")

    assert {"accepts no more", "counts saved", "threads closed"} <= {*noted.notes}


async def test_without_a_trail_and_without_webhooks_a_service_runs(noted: Noted) -> None:
    noted.services.audit = noted.services.sending = None

    await served(noted)

    assert "threads closed" in noted.notes


async def test_requests_are_drained_while_what_is_being_sent_ends(
    noted: Noted, monkeypatch: pytest.MonkeyPatch
) -> None:
    draining, sending = asyncio.Event(), asyncio.Event()

    class Sending:
        @contextlib.asynccontextmanager
        async def running(self) -> Any:
            yield
            sending.set()
            await asyncio.wait_for(draining.wait(), 30)

    async def drain(*_given: Any) -> None:
        draining.set()
        await asyncio.wait_for(sending.wait(), 30)

    noted.services.sending = Sending()
    monkeypatch.setattr(server, "_drain", drain)

    await served(noted)

    assert "connections closed" in noted.notes


async def test_connections_are_closed_once_no_request_is_in_flight(
    noted: Noted,
) -> None:
    noted.services.in_flight.add("a request")
    serving = server._serving(noted.services, [])
    await serving.__aenter__()
    ending = asyncio.create_task(serving.__aexit__(None, None, None))
    await until(lambda: "accepts no more" in noted.notes)
    assert "connections closed" not in noted.notes

    noted.services.in_flight.clear()
    await asyncio.wait_for(ending, 30)

    assert "connections closed" in noted.notes
