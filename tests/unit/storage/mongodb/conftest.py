"""Databases of a real server, for what a server decides."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlsplit

import pymongo
import pytest
import pytest_asyncio

from fhirpub.storage.mongodb.store import MongoStore, from_url
from fhirpub.testing.samples import new_id
from tests.storage.mongodb.helpers import Admin, Database


@pytest.fixture(scope="module")
def admin(mongodb: str) -> Iterator[Admin]:
    """A client of the server, which several tests share."""
    with pymongo.MongoClient[dict[str, Any]](mongodb) as admin:
        yield admin


@pytest.fixture
def database(admin: Admin) -> Iterator[Database]:
    """A database with nothing in it."""
    name = f"t{new_id()}"
    yield admin[name]
    admin.drop_database(name)


@pytest.fixture
def url(mongodb: str, database: Database) -> str:
    """The URL of that database."""
    return urlsplit(mongodb)._replace(path=f"/{database.name}").geturl()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(mongodb: str, admin: Admin) -> AsyncIterator[MongoStore]:
    """A store for all tests of a module, each of which has ids of its own."""
    name = f"t{new_id()}"
    url = urlsplit(mongodb)._replace(path=f"/{name}").geturl()
    store = from_url(url, deadline_seconds=120, production=True)
    await store.start()
    yield store
    await store.stop()
    admin.drop_database(name)
