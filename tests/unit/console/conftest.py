"""Sessions on a store in a file, and a visit that has none yet."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fhirpub.app.stores import open_store
from fhirpub.auth.clients import NewClient, add_client
from fhirpub.auth.tenants import add_tenant
from fhirpub.auth.throttle import Throttle
from fhirpub.config.administration import AdminConfig
from fhirpub.config.audit import AuditConfig
from fhirpub.config.settings import Config
from fhirpub.console.sessions import Person
from fhirpub.console.visit import Visit
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.clock import HandClock
from tests.unit.audit.test_trail import a_trail
from tests.unit.console.signing_in import (
    ADDRESS,
    KEY_HASH,
    Door,
    World,
    configured,
    sessions_of,
)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    base, clock = Config(), HandClock()
    config = replace(base, storage=replace(base.storage, url=f"sqlite:///{tmp_path}/store.db"))
    async with open_store(config) as store:
        tenant = await add_tenant(store, "Lab", clock=clock)
        new = NewClient(tenant=tenant.id, name="Ada", environment="sandbox", is_person=True)
        client, secret = await add_client(store, new, clock=clock)
        assert not secret
        person = Person(subject=client.id, name="Ada")
        yield World(config, store, sessions_of(config, store, clock), clock, person)


@pytest.fixture
async def door(world: World) -> Door:
    admin = AdminConfig(bootstrap_key_hash=KEY_HASH, callers=["ana=/no"])
    desk = configured(world, admin=admin)
    store: Any = desk.store
    assert isinstance(store, SqliteStore)
    audit = a_trail(cast("Any", store), desk.clock, AuditConfig())
    console: Any = SimpleNamespace(
        sessions=desk.sessions,
        throttle=Throttle(3, clock=desk.clock),
        config=desk.config,
        services=SimpleNamespace(audit=audit.trail),
    )
    visit = Visit(
        console=console,
        session=None,
        blanks=[],
        query={},
        form={},
        client=cast("Any", None),
        address=ADDRESS,
        request_id="r-1",
    )
    return Door(desk, audit, visit)
