"""Servers and stores for the tests of the MongoDB store."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator

import pymongo
import pymongo.monitoring
import pytest

from fhirpub.storage.mongodb import reads
from fhirpub.storage.mongodb.store import MongoStore
from fhirpub.storage.store import Store
from fhirpub.testing.store_contract import (
    Reopen,
    new_id,
    reopening,
)
from tests.mongod.replica_set import ReplicaSet
from tests.mongodb_proxy import Proxy
from tests.storage.mongodb.helpers import (
    Admin,
    Database,
    start_behind_faults,
    start_mongod,
    store_of,
)


@pytest.fixture(scope="session")
def address(replica_set: ReplicaSet) -> str:
    """The address of a replica set of one."""
    return replica_set.addresses[0]


@pytest.fixture(scope="session")
def admin(address: str) -> Iterator[Admin]:
    admin: Admin
    with pymongo.MongoClient(address, replicaSet="rs0") as admin:
        yield admin


@pytest.fixture
def url(address: str, admin: Admin) -> Iterator[str]:
    """A database with nothing in it."""
    name = f"t{new_id()}"
    yield f"mongodb://{address}/{name}?replicaSet=rs0"
    admin.drop_database(name)


@pytest.fixture
async def reopen(url: str) -> AsyncGenerator[Reopen]:
    async with reopening(lambda: store_of(url)) as reopen:
        yield reopen


@pytest.fixture
async def store(reopen: Reopen) -> Store:
    return await reopen()


@pytest.fixture
async def other_store(reopen: Reopen, store: Store) -> Store:
    return await reopen()


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server without a replica set."""
    server, port = start_mongod(tmp_path_factory.mktemp("single"))
    yield f"127.0.0.1:{port}"
    server.kill()
    server.wait()


@pytest.fixture
def database(url: str, admin: Admin) -> Database:
    return admin[url.rpartition("/")[2].partition("?")[0]]


@pytest.fixture
async def tried(url: str) -> AsyncGenerator[MongoStore]:
    """A store for which the server can be made to fail."""
    url = f"{url}&appName=tried&heartbeatFrequencyMS=500"
    store = await start_behind_faults(url, deadline_seconds=5, production=True)
    yield store
    await store.stop()


@pytest.fixture
async def unhurried(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[MongoStore]:
    """As `tried`, with a long deadline; a tenant waits for its own reads for a moment only."""
    monkeypatch.setattr(reads, "MAX_SEARCH_SHARE", 0.02)
    url = f"{url}&appName=tried&heartbeatFrequencyMS=500"
    store = await start_behind_faults(url, deadline_seconds=20, production=True)
    yield store
    await store.stop()


@pytest.fixture
def proxy(single: str) -> Iterator[Proxy]:
    """A proxy before a single server, where the driver itself retries no write."""
    with Proxy(int(single.rpartition(":")[2])) as proxy:
        yield proxy


@pytest.fixture
async def far(proxy: Proxy) -> AsyncGenerator[MongoStore]:
    """A store behind the proxy."""
    url = f"mongodb://{proxy.address}/t{new_id()}"
    store = await start_behind_faults(url, deadline_seconds=4, production=False)
    yield store
    proxy.heal()
    await store.stop()
