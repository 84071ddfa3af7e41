"""The contents of the database are refused or upgraded at the start."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import ConfigurationError, StoreUnavailable
from fhirpub.storage.client_activity_contract import AssertionUse, RevokedToken, UsedAssertion
from fhirpub.storage.contract import Version
from fhirpub.storage.criteria import encode
from fhirpub.storage.mongodb import schema
from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import OutboxEntry
from fhirpub.testing.contracts.audit.sealing import seal_all
from fhirpub.testing.store_contract import (
    LAB,
    Reopen,
    a_client,
    a_version,
    add_all,
    has,
    new_id,
    query,
    successor,
    token,
    wanting,
)
from fhirpub.testing.webhook_contract import EVENTS
from tests.storage.mongodb.helpers import (
    COMMANDS,
    Database,
    store_of,
)


async def test_stores_that_start_at_once_on_no_database_all_start(url: str) -> None:
    stores = [store_of(url) for _ in range(12)]

    await asyncio.gather(*(store.start() for store in stores))

    version = a_version()
    assert await stores[0].add(LAB, version)
    assert [await store.latest(LAB, version.id) for store in stores] == [version] * 12
    for store in stores:
        await store.stop()


async def test_a_database_of_a_newer_release_is_refused(
    url: str, database: Database, store: Store
) -> None:
    newer = schema.SCHEMA_VERSION + 6
    database[schema.STORE].update_one({"_id": schema.SCHEMA}, {"$set": {"version": newer}})

    with pytest.raises(ConfigurationError, match=f"{newer}.*{schema.SCHEMA_VERSION}"):
        await store_of(url).start()


@pytest.fixture
async def old(store: Store, database: Database) -> list[Version]:
    """The versions in a database of release 0.1.0: two of them with events."""
    first = a_version(events=EVENTS)
    kept = [first, successor(first), a_version()]
    await add_all(store, kept)
    database[schema.VERSION].drop_index(schema.UNRELAYED)
    database[schema.VERSION].update_many({}, {"$unset": {"unrelayed": ""}})
    for name in (schema.ENDPOINT, schema.DELIVERY):
        database[name].drop()
    database[schema.STORE].update_one({"_id": schema.SCHEMA}, {"$set": {"version": 1}})
    return kept


async def test_an_older_database_keeps_everything_and_all_events_are_still_pending(
    old: list[Version], reopen: Reopen, database: Database
) -> None:
    store = await reopen()

    assert await store.pending_outbox(limit=10) == [
        (LAB, OutboxEntry.of(version)) for version in old[:2]
    ]
    assert await store.latest(LAB, old[2].id) == old[2]
    assert await store.waiting(new_id()) == []
    found = database[schema.STORE].find_one({"_id": schema.SCHEMA})
    assert found == {"_id": schema.SCHEMA, "version": schema.SCHEMA_VERSION}


async def test_published_events_stay_published_however_often_a_database_is_upgraded(
    old: list[Version], reopen: Reopen, database: Database
) -> None:
    store = await reopen()
    await store.mark_published([(old[0].id, 1)])
    # Another process that started the upgrade earlier finishes only now.
    database[schema.STORE].update_one({"_id": schema.SCHEMA}, {"$set": {"version": 1}})

    again = await reopen()

    assert await again.pending_outbox(limit=10) == [(LAB, OutboxEntry.of(old[1]))]


OLDER_INDEXES = {
    "version_by_search_value": {"search.field": 1, "search.key": 1},
    "version_by_member_value": {"members.search.field": 1, "members.search.key": 1},
}
"""Those of schema version 5."""


def to_version_5(database: Database) -> None:
    """Give a database the indexes that the release before had."""
    versions = database[schema.VERSION]
    for name in (schema.BY_SEARCH_VALUE, schema.BY_MEMBER_VALUE):
        versions.drop_index(name)
    for name, keys in OLDER_INDEXES.items():
        partial = {"members": {"$exists": True}} if "members.search.key" in keys else None
        options: dict[str, Any] = {} if partial is None else {"partialFilterExpression": partial}
        versions.create_index(list(keys.items()), name=name, **options)
    database[schema.STORE].update_one({"_id": schema.SCHEMA}, {"$set": {"version": 5}})


@pytest.mark.parametrize("killed", ["before", "while the indexes were made", "before the last"])
async def test_a_database_of_version_5_gets_other_indexes_whenever_a_start_was_killed(
    store: Store, database: Database, reopen: Reopen, killed: str
) -> None:
    version = a_version(search=encode([("code", "a", "s")]))
    await store.add(LAB, version)
    versions = database[schema.VERSION]
    to_version_5(database)
    if killed != "before":
        database[schema.STORE].update_one({"_id": schema.SCHEMA}, {"$set": {"version": 6}})
        versions.create_index(
            [("search.field", 1), ("search.key", 1), ("updated", -1)], name=schema.BY_SEARCH_VALUE
        )
    if killed == "before the last":
        await (await reopen()).stop()
        versions.create_index(
            [("search.field", 1), ("search.key", 1)], name=next(iter(OLDER_INDEXES))
        )

    upgraded = await reopen()

    page = await upgraded.search(LAB, wanting(has("code", token("a"))))
    assert page.versions == (version,)
    assert not OLDER_INDEXES.keys() & versions.index_information().keys()


async def test_stores_that_start_at_once_on_an_older_database_all_start(
    old: list[Version], reopen: Reopen
) -> None:
    stores = await asyncio.gather(*(reopen() for _ in range(6)))

    assert {len(await store.pending_outbox(limit=10)) for store in stores} == {2}


async def test_another_programs_database_is_refused_and_left_alone(
    url: str, database: Database
) -> None:
    database[schema.CLIENT].insert_one({"theirs": True})

    with pytest.raises(ConfigurationError, match="another program"):
        await store_of(url).start()

    assert database.list_collection_names() == [schema.CLIENT]


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        ([("id", 1), ("version", 1)], {}),
        ([("version", 1), ("id", 1)], {"unique": True}),
        ([("id", 1), ("version", -1)], {"unique": True}),
        ([("id", 1), ("version", 1)], {"unique": True, "sparse": True}),
        ([("id", 1), ("version", 1)], {"unique": True, "hidden": True}),
        ([("id", 1), ("version", 1)], {"unique": True, "collation": {"locale": "en"}}),
    ],
)
async def test_an_index_of_our_name_that_is_another_is_refused(
    url: str,
    database: Database,
    store: Store,
    keys: list[tuple[str, int]],
    options: dict[str, Any],
) -> None:
    database[schema.VERSION].drop_index(schema.VERSION_KEY)
    database[schema.VERSION].create_index(keys, name=schema.VERSION_KEY, **options)

    with pytest.raises(ConfigurationError, match=r"version_key is not as .* drop it"):
        await store_of(url).start()


async def test_an_index_in_the_way_of_ours_is_refused(
    url: str, database: Database, store: Store
) -> None:
    database[schema.VERSION].drop_index(schema.VERSION_KEY)
    database[schema.VERSION].create_index([("id", 1), ("version", 1)], name="theirs", unique=True)

    with pytest.raises(ConfigurationError, match="in the way"):
        await store_of(url).start()


async def test_an_index_that_was_lost_is_made_again(
    url: str, database: Database, store: Store
) -> None:
    database[schema.VERSION].drop_index(schema.VERSION_KEY)
    again = store_of(url)

    await again.start()

    assert schema.VERSION_KEY in database[schema.VERSION].index_information()
    await again.stop()


async def test_a_page_is_never_short_of_a_version_that_an_election_took(
    database: Database, store: Store
) -> None:
    # This is the case behind a router, where the second query may reach another primary.
    lost, kept = a_version(), a_version()
    await add_all(store, [lost, kept])
    COMMANDS.then["aggregate"] = lambda: database[schema.VERSION].delete_one({"id": lost.id})

    with pytest.raises(StoreUnavailable) as refused:
        await store.search(LAB, query())

    assert refused.value.reason == "a version is missing"
    assert (await store.search(LAB, query())).versions == (kept,)


async def test_versions_of_a_release_without_an_audit_trail_have_no_records(
    store: Store, database: Database, reopen: Reopen
) -> None:
    version = a_version()
    await store.add(LAB, version)
    database[schema.STORE].update_one({"_id": schema.SCHEMA}, {"$set": {"version": 8}})
    database[schema.VERSION].drop_index(schema.UNSEALED)

    upgraded = await reopen()
    await upgraded.add(LAB, successor(version, audit=b'{"action":"update"}'))

    blocks = await seal_all(upgraded)
    assert [block.records for block in blocks] == [b'{"action":"update"}\n']


async def test_a_client_of_a_database_of_version_7_gets_networks(
    store: Store, database: Database, reopen: Reopen
) -> None:
    client = a_client()
    await store.put_client(client)
    assert "networks" not in (database[schema.CLIENT].find_one({"_id": client.id}) or {})
    for name in (schema.REVOKED_TOKEN, schema.CLIENT_USE):
        database[name].drop()
    database[schema.STORE].update_one({"_id": schema.SCHEMA}, {"$set": {"version": 7}})

    upgraded = await reopen()

    limited = replace(client, networks=("192.0.2.0/24",))
    assert await upgraded.client(client.id) == client
    assert await upgraded.replace_client(limited, over=client)
    assert await upgraded.client(client.id) == limited
    assert await upgraded.revoke_token(RevokedToken(client.id, "a", 7), most=1)


async def test_a_client_of_a_database_of_version_10_gets_keys(
    store: Store, database: Database, reopen: Reopen
) -> None:
    client = a_client()
    await store.put_client(client)
    assert "jwks" not in (database[schema.CLIENT].find_one({"_id": client.id}) or {})
    database[schema.USED_ASSERTION].drop()
    database[schema.STORE].update_one({"_id": schema.SCHEMA}, {"$set": {"version": 10}})

    upgraded = await reopen()

    with_keys = replace(client, jwks="{}")
    assert await upgraded.replace_client(with_keys, over=client)
    assert await upgraded.client(client.id) == with_keys
    used = UsedAssertion(client.id, "a", 7)
    results = [await upgraded.use_assertion(used, now=1, most=9) for _ in range(2)]
    assert results == [AssertionUse.FIRST, AssertionUse.REPEATED]
