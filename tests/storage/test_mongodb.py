"""The store on MongoDB keeps the contract, and is certain of what it says, on a real server."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import pymongo
import pytest

from fhirpub.config import variable
from fhirpub.storage.contract import Store
from fhirpub.storage.mongodb import MongoStore, from_url
from fhirpub.testing.store_contract import (
    Reopen,
    StoreContract,
    new_id,
)

Admin = pymongo.MongoClient[dict[str, Any]]


def start_mongod(folder: Path, *arguments: str) -> tuple[subprocess.Popen[bytes], int]:
    """Start the server named by FHIRPUB_TEST_MONGOD; return it and its port."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    command = [variable("FHIRPUB_TEST_MONGOD"), "--dbpath", str(folder), "--port", str(port)]
    command += ["--bind_ip", "127.0.0.1", "--setParameter", "enableTestCommands=1"]
    command += ["--wiredTigerCacheSizeGB", "0.5", *arguments]
    with (folder / "mongod.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log), port


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a replica set of one."""
    server, port = start_mongod(tmp_path_factory.mktemp("mongod"), "--replSet", "rs0")
    address = f"127.0.0.1:{port}"
    admin: Admin
    with pymongo.MongoClient(address, directConnection=True) as admin:
        member = {"_id": 0, "host": address}
        admin.admin.command({"replSetInitiate": {"_id": "rs0", "members": [member]}})
        while not admin.admin.command("hello")["isWritablePrimary"]:
            time.sleep(0.05)
    yield address
    server.kill()
    server.wait()


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


def store_of(url: str, *, seconds: float = 10) -> MongoStore:
    return from_url(url, deadline_seconds=seconds, production=True)


@pytest.fixture
async def reopen(url: str) -> AsyncGenerator[Reopen]:
    async with AsyncExitStack() as stack:

        async def start() -> Store:
            store = store_of(url)
            await store.start()
            stack.push_async_callback(store.stop)
            return store

        yield start


@pytest.fixture
async def store(reopen: Reopen) -> Store:
    return await reopen()


@pytest.fixture
async def other_store(reopen: Reopen, store: Store) -> Store:
    return await reopen()


class TestMongoStore(StoreContract):
    """Its fixtures are those of this module."""
