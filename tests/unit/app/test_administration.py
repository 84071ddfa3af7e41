"""What operators work with: in a command, and in a process that serves."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest

from fhirpub.administration.changes import local_agent
from fhirpub.app import administration
from fhirpub.app.administration import (
    _Parts,
    administering,
    create_interface,
    open_administration,
)
from fhirpub.audit.record import Agent
from fhirpub.config.settings import Config, StorageConfig
from fhirpub.errors import ConfigurationError, StoreUnavailable
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.samples import LAB, a_version
from fhirpub.testing.service import RunningService


async def test_a_command_works_as_the_user_of_the_system_on_the_configured_store(
    tmp_path: Path,
) -> None:
    config = Config(storage=StorageConfig(url=f"sqlite:///{tmp_path}/store.db"))

    async with open_administration(config) as opened:
        assert opened.agent == local_agent(config)
        assert opened.config == config
        assert opened.clock is now_ms
        assert await opened.store.tenants() == []


async def test_a_command_makes_no_store_unless_it_may(tmp_path: Path) -> None:
    config = Config(storage=StorageConfig(url=f"sqlite:///{tmp_path}/store.db"))

    with pytest.raises(StoreUnavailable):
        async with open_administration(config, create=False):
            pass


async def test_what_manages_endpoints_is_made_once(store: SqliteStore) -> None:
    async with AsyncExitStack() as stack:
        parts = _Parts(Config(), store, stack)

        assert await parts.endpoints() is await parts.endpoints()


async def test_the_context_of_a_command_is_made_once_and_reaches_the_store(
    store: SqliteStore,
) -> None:
    async with AsyncExitStack() as stack:
        parts = _Parts(Config(), store, stack)
        context: Any = await parts.context()

        assert context.resources is store
        assert await parts.context() is context
    assert await store.search_rules()


async def test_a_store_with_resources_of_another_index_is_left_to_the_service(
    store: SqliteStore,
) -> None:
    await store.add(LAB, a_version())

    async with AsyncExitStack() as stack:
        with pytest.raises(ConfigurationError, match="start the service with these settings once"):
            await _Parts(Config(), store, stack).context()


async def test_operations_over_http_are_those_of_their_caller_on_what_runs(
    service: RunningService,
) -> None:
    built = service.services
    interface: Any = create_interface(built)
    agent = Agent(user="ana", address="192.0.2.7")

    opened = interface._open(agent)

    assert opened.agent == agent
    assert opened.store is built.store
    assert opened.clock is built.clock
    assert await opened.endpoints() is built.endpoints
    assert await opened.context() is built.context
    assert interface._audit is built.audit


async def test_callers_of_administration_are_asked_by_the_clock_of_the_service(
    service: RunningService,
) -> None:
    other: Any = create_interface(replace(service.services, clock=lambda: 5))

    assert other.callers._clock() == 5
    assert other._open(Agent(user="ana")).clock() == 5
    assert other.callers._ring is service.services.tokens.ring


async def test_without_a_port_nothing_listens_for_administration(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(administration, "bind_own_port", pytest.fail)

    async with administering(service.services):
        pass


@pytest.mark.parametrize(("workers", "shares"), [(1, False), (2, True)])
async def test_several_workers_share_the_port_of_administration(
    service: RunningService, workers: int, monkeypatch: pytest.MonkeyPatch, *, shares: bool
) -> None:
    found: list[Any] = []

    def refuse(group: str, config: Any, *, reuse_port: bool) -> Any:
        found.append((group, config.port, reuse_port))
        raise ConfigurationError("taken")

    monkeypatch.setattr(administration, "bind_own_port", refuse)
    built = service.services
    config = replace(
        built.config,
        admin=replace(built.config.admin, port=9),
        server=replace(built.config.server, workers=workers),
    )

    with pytest.raises(ConfigurationError, match="taken"):
        async with administering(replace(built, config=config)):
            pass

    assert found == [("admin", 9, shares)]


async def test_what_sends_for_a_command_is_closed_with_it(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []

    class Noting:
        def __init__(self, *_given: Any, **_named: Any) -> None:
            notes.append("made")

        async def __aenter__(self) -> Self:
            notes.append("opened")
            return self

        async def __aexit__(self, *_problem: object) -> None:
            notes.append("closed")

    monkeypatch.setattr(administration, "Sender", Noting)
    async with AsyncExitStack() as stack:
        await _Parts(Config(), store, stack).endpoints()
        assert notes == ["made", "opened"]

    assert notes == ["made", "opened", "closed"]
