"""Databases of a real server, for what a server decides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pymongo
import pytest

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
