"""What a start finds in a database, and makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fhirpub.errors import ConfigurationError
from fhirpub.storage.mongodb import schema
from fhirpub.storage.mongodb.schema import SCHEMA_VERSION, prepare
from fhirpub.storage.mongodb.store import MongoStore
from fhirpub.storage.upgrades.versions import UpgradeNeeded
from tests.storage.mongodb.helpers import Admin, Database

pytestmark = pytest.mark.asyncio(loop_scope="module")

OWN = {"_id": schema.SCHEMA, "version": SCHEMA_VERSION}
NEWER = SCHEMA_VERSION + 6


@pytest.fixture
def made(shared: MongoStore, admin: Admin) -> Iterator[Database]:
    """A database that this release has made."""
    made: Database = admin[shared._database.name]
    yield made
    made[schema.STORE].delete_many({})
    made[schema.STORE].insert_one(OWN)
    made[schema.VERSION].delete_many({})


def mark(database: Database, **fields: int) -> None:
    """Write what the upgrade by another release writes."""
    database[schema.STORE].replace_one({"_id": schema.SCHEMA}, {"_id": schema.SCHEMA, **fields})


def version_of(database: Database) -> dict[str, Any] | None:
    return database[schema.STORE].find_one({"_id": schema.SCHEMA})


def indexes_of(database: Database) -> dict[str, Any]:
    return {name: database[name].index_information() for name in schema.COLLECTIONS}


@pytest.mark.parametrize("name", ["theirs", schema.VERSION, schema.STORE])
async def test_a_database_of_another_program_is_refused_and_left_alone(
    shared: MongoStore, admin: Admin, database: Database, name: str
) -> None:
    database[name].insert_one({"_id": 1})

    with pytest.raises(ConfigurationError, match="is another program's"):
        await prepare(shared._database.client[database.name])

    assert database.list_collection_names() == [name]
    assert [*database[name].find({})] == [{"_id": 1}]


async def test_what_a_server_keeps_of_a_database_is_not_another_program_s(
    shared: MongoStore, database: Database
) -> None:
    database["system.js"].insert_one({"_id": "f", "value": 1})

    await prepare(shared._database.client[database.name])

    assert version_of(database) == OWN


async def test_a_database_gets_its_version_no_keys_and_all_indexes(
    shared: MongoStore, made: Database
) -> None:
    found = indexes_of(made)
    expected = {
        name: {"_id_", *(index["name"] for index in schema._INDEXES.get(name, []))}
        for name in schema.COLLECTIONS
        if name in schema._INDEXES
    }

    assert {name: {*found[name]} for name in expected} == expected
    assert version_of(made) == OWN
    made[schema.STORE].delete_one({"_id": schema.KEYS})
    await prepare(shared._database)
    assert made[schema.STORE].find_one({"_id": schema.KEYS}) == {"_id": schema.KEYS, "keys": []}


async def test_a_start_keeps_keys_and_makes_what_was_lost_and_drops_former_indexes(
    shared: MongoStore, made: Database
) -> None:
    await prepare(shared._database)
    made[schema.STORE].update_one({"_id": schema.KEYS}, {"$set": {"keys": ["a key"]}})
    before = indexes_of(made)
    made[schema.CLIENT].drop_index("client_tenant")
    made[schema.VERSION].create_index("search.key", name="version_by_search_value")

    await prepare(shared._database)

    assert indexes_of(made) == before
    keys = made[schema.STORE].find_one({"_id": schema.KEYS}) or {}
    assert keys["keys"] == ["a key"]


async def test_a_newer_database_that_this_release_may_use_stays_as_it_is(
    shared: MongoStore, made: Database
) -> None:
    made[schema.STORE].delete_one({"_id": schema.KEYS})
    mark(made, version=NEWER, usable_from=SCHEMA_VERSION)
    marked = version_of(made)

    await prepare(shared._database)

    assert version_of(made) == marked
    assert made[schema.STORE].find_one({"_id": schema.KEYS}) is None


async def test_a_newer_database_is_refused_if_this_release_must_not_use_it(
    shared: MongoStore, made: Database
) -> None:
    mark(made, version=NEWER, usable_from=SCHEMA_VERSION + 1)

    with pytest.raises(ConfigurationError, match=f"{NEWER} of a newer release"):
        await prepare(shared._database)


async def test_a_database_that_a_newer_release_upgrades_at_the_same_time_is_refused(
    shared: MongoStore, made: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def upgraded_by_another(_database: object) -> None:
        mark(made, version=NEWER, usable_from=NEWER)

    monkeypatch.setattr(schema, "_upgrade", upgraded_by_another)
    mark(made, version=SCHEMA_VERSION - 1)

    with pytest.raises(ConfigurationError, match=f"{NEWER} of a newer release"):
        await prepare(shared._database)


async def test_a_newer_database_without_an_index_that_this_release_needs_is_refused(
    shared: MongoStore, made: Database
) -> None:
    mark(made, version=NEWER, usable_from=SCHEMA_VERSION)
    made[schema.HOLD].drop_index("hold_tenant")

    with pytest.raises(ConfigurationError, match="index hold_tenant is missing"):
        await prepare(shared._database)

    mark(made, version=SCHEMA_VERSION)
    await prepare(shared._database)


@pytest.mark.parametrize("version", [1, SCHEMA_VERSION - 1])
async def test_an_older_database_is_upgraded_with_leave_alone(
    shared: MongoStore, made: Database, version: int
) -> None:
    mark(made, version=version)

    with pytest.raises(UpgradeNeeded) as refused:
        await prepare(shared._database, upgrade=False)
    assert (refused.value.found, refused.value.own) == (version, SCHEMA_VERSION)
    assert version_of(made) == {"_id": schema.SCHEMA, "version": version}

    await prepare(shared._database)

    assert version_of(made) == OWN
    await prepare(shared._database, upgrade=False)


@pytest.mark.parametrize(("version", "waits"), [(1, ["a"]), (2, []), (SCHEMA_VERSION, [])])
async def test_events_of_the_first_version_wait_for_the_relay_where_there_are_some(
    shared: MongoStore, made: Database, version: int, waits: list[str]
) -> None:
    made[schema.VERSION].insert_many(
        [
            {"id": "a", "version": 1, "events": b'[{"id":"1"}]'},
            {"id": "b", "version": 1, "events": schema.NO_EVENTS},
            {"id": "c", "version": 1, "events": b'[{"id":"1"}]', "unrelayed": False},
        ]
    )
    mark(made, version=version)

    await prepare(shared._database)

    found = made[schema.VERSION].find({"unrelayed": True})
    assert [document["id"] for document in found] == waits
