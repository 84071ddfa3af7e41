"""What a server sweeps, how long it drains, and what it does if a sweep fails."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from fhirpub.app import server
from fhirpub.config.settings import Config
from fhirpub.errors import StoreUnavailable
from fhirpub.tenant import Tenant

HOUR = 3_600_000
NOW = 1_800_000_000_000


class Store:
    """Notes what is swept, and finds loose documents of one tenant."""

    def __init__(self, *problems: Exception) -> None:
        self.swept: list[tuple[str, ...]] = []
        self.problems = [*problems]
        self.rounds = 0
        self._tenants = [replace(Tenant.new(name, created=1), id=name) for name in ("a", "b")]

    async def tenants(self) -> list[Tenant]:
        self.rounds += 1
        if self.problems:
            raise self.problems.pop(0)
        return self._tenants

    async def sweep_blobs(self, tenant: str, *, before: int) -> int:
        assert before == NOW - HOUR
        self.swept.append(("blobs", tenant))
        return 3 if tenant == "b" else 0

    def _noted(self, what: str) -> Any:
        async def sweep(*, before: int) -> int:
            assert before == NOW - HOUR
            self.swept.append((what,))
            return 1

        return sweep

    def __getattr__(self, name: str) -> Any:
        return self._noted(name.removeprefix("sweep_"))


def services_of(store: Any, **more: Any) -> Any:
    return SimpleNamespace(store=store, clock=lambda: NOW, config=Config(), **more)


async def test_what_is_an_hour_old_is_swept_of_each_tenant_and_of_all() -> None:
    store = Store()

    with capture_logs() as lines:
        await server._sweep_store(services_of(store))

    assert store.swept == [
        ("blobs", "a"),
        ("blobs", "b"),
        ("quota_counts",),
        ("revoked_tokens",),
        ("used_assertions",),
    ]
    assert [(one["event"], one["documents"], one["tenant"]) for one in lines] == [
        ("swept", 3, "b")
    ]


@contextlib.asynccontextmanager
async def sweeping(store: Store, monkeypatch: pytest.MonkeyPatch, rounds: int) -> Any:
    """Sweep for ever without a pause, and yield after some rounds."""
    monkeypatch.setattr(server, "_SWEEP_SECONDS", 0)
    task = asyncio.create_task(server._sweep(services_of(store)))
    async with asyncio.timeout(30):
        while store.rounds < rounds and not task.done():
            await asyncio.sleep(0)
    yield task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_sweep_that_fails_is_logged_and_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(StoreUnavailable("away"), ValueError("Ashdown"))

    with capture_logs() as lines:
        async with sweeping(store, monkeypatch, rounds=4) as task:
            assert not task.done()

    found = [one for one in lines if one["event"] == "not swept"]
    assert [(one["log_level"], one.get("reason")) for one in found] == [
        ("warning", "away"),
        ("error", None),
    ]
    assert "Ashdown" not in str(found)
    assert ("blobs", "a") in store.swept


async def test_nothing_is_swept_before_the_first_pause() -> None:
    store = Store()
    task = asyncio.create_task(server._sweep(services_of(store)))
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert store.rounds == 0


def draining(in_flight: set[str], idle: list[bool], *, seconds: float) -> Any:
    services = services_of(None, in_flight=in_flight)
    services.config = replace(Config(), server=replace(Config().server, drain_seconds=seconds))
    listening: Any = SimpleNamespace(close_idle=lambda: idle.pop(0) if idle else False)
    return server._drain(services, listening)


async def test_a_drain_ends_at_once_if_nothing_is_under_way() -> None:
    before = time.monotonic()

    await draining(set(), [], seconds=60)

    assert time.monotonic() - before < 5


async def test_a_drain_waits_for_requests_and_for_clients() -> None:
    in_flight, idle = {"r"}, [True, True]
    task = asyncio.create_task(draining(in_flight, idle, seconds=60))
    await asyncio.sleep(0)
    assert (task.done(), len(idle)) == (False, 2)

    in_flight.clear()
    await asyncio.wait_for(task, 10)

    assert idle == []


async def test_a_drain_lasts_no_longer_than_the_settings_allow() -> None:
    await asyncio.wait_for(draining({"r"}, [], seconds=0.01), 10)


async def test_a_server_has_the_bounds_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []

    async def nothing(*_given: Any) -> None:
        return None

    def refuse(_adapter: Any, bounds: Any) -> Any:
        found.append(bounds)
        raise ValueError("enough")

    monkeypatch.setattr(server, "reindex_if_needed", nothing)
    monkeypatch.setattr(server, "RequestRouterAdapter", lambda *_given: None)
    monkeypatch.setattr(server, "table_of", lambda _services: [])
    monkeypatch.setattr(server, "Server", refuse)
    config = Config(server=replace(Config().server, trusted_proxies=["192.0.2.1"]))
    limits = replace(
        config.limits,
        drain_bytes=5,
        idle_seconds=6.0,
        head_seconds=7.0,
        connections=8,
        connections_per_address=4,
    )
    services = services_of(
        None,
        context=SimpleNamespace(searched={}),
        quota_exchange=SimpleNamespace(start=nothing),
    )
    services.config = replace(config, limits=limits)

    with pytest.raises(ValueError, match="enough"):
        async with server._serving(services, []):
            pass

    (bounds,) = found
    assert (bounds.body_bytes, bounds.idle_seconds, bounds.head_seconds) == (5, 6.0, 7.0)
    connections = bounds.connections
    assert (connections.total, connections.per_address) == (8, 4)
    assert list(connections.proxies) == ["192.0.2.1"]
