"""The rules of a sharded cluster: keys are unique across all shards, queries go to one shard.

The commands are those that the store really sends. Whether one shard can answer a command follows
from its filter: it must contain the shard key by equality or as a choice of values.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymongo
import pymongo.monitoring
import pytest

from fhirpub.app.stores import open_store
from fhirpub.config.settings import Config, StorageConfig
from fhirpub.storage.mongodb import schema
from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import DeliveryQuery
from fhirpub.testing.contracts.store.members import a_result, results
from fhirpub.testing.store_contract import (
    FOREVER,
    LAB,
    a_blob,
    a_version,
    add_all,
    match,
    new_id,
    query,
    successor,
    whole_blobs,
)
from fhirpub.testing.webhook_contract import EVENTS, NOW, an_endpoint, end, queue

GUIDE = (Path(__file__).parents[2] / "docs" / "operators.md").read_text(encoding="utf-8")
SHARD_KEYS = {
    schema.VERSION: "id",
    schema.BLOB: "_id",
    schema.PIECE: "_id",
    schema.DELIVERY: "endpoint",
}

Command = Mapping[str, Any]
Filter = Mapping[str, Any]


class _Sent(pymongo.monitoring.CommandListener):
    """Commands to the sharded collections, from any client."""

    def __init__(self) -> None:
        self.commands: list[Command] | None = None

    def started(self, event: pymongo.monitoring.CommandStartedEvent) -> None:
        if self.commands is not None and event.command.get(event.command_name) in SHARD_KEYS:
            self.commands.append({**event.command, "command": event.command_name})

    def succeeded(self, event: pymongo.monitoring.CommandSucceededEvent) -> None:
        """Ignore it."""

    def failed(self, event: pymongo.monitoring.CommandFailedEvent) -> None:
        """Ignore it."""


SENT = _Sent()
pymongo.monitoring.register(SENT)


@contextmanager
def recorded() -> Iterator[list[Command]]:
    commands: list[Command] = []
    SENT.commands = commands
    yield commands
    SENT.commands = None


@pytest.fixture
async def store(mongodb_url: str) -> AsyncGenerator[Store]:
    async with open_store(Config(storage=StorageConfig(url=mongodb_url))) as store:
        yield store


def filters_of(command: Command) -> list[Filter]:
    """Return the filters of a command, or the documents that it inserts."""
    match command["command"]:
        case "find":
            return [command["filter"]]
        case "aggregate":
            stages = command["pipeline"]
            unions = [stage["$unionWith"]["pipeline"] for stage in stages if "$unionWith" in stage]
            return [item[0]["$match"] for item in (stages, *unions)]
        case "insert":
            return [pymongo_document(document) for document in command["documents"]]
        case "update":
            return [update["q"] for update in command["updates"]]
        case "delete":
            return [delete["q"] for delete in command["deletes"]]
        case "count":
            return [command.get("query", {})]
        case other:
            raise AssertionError(f"what does {other} look for?")


def pymongo_document(document: Any) -> Filter:
    return dict(document.items())


def names(key: str, wanted: Filter) -> bool:
    """Return whether a filter restricts a field to a few values."""
    if key in wanted:
        value = wanted[key]
        return not isinstance(value, Mapping) or value.keys() == {"$in"}
    if any(names(key, item) for item in wanted.get("$and", ())):
        return True
    return "$or" in wanted and all(names(key, item) for item in wanted["$or"])


def asks_one_shard(command: Command) -> bool:
    key = SHARD_KEYS[command[command["command"]]]
    return all(names(key, record) for record in filters_of(command))


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        ({"id": "a", "version": 1}, True),
        ({"id": {"$in": ["a", "b"]}}, True),
        ({"$or": [{"id": "a"}, {"id": {"$in": ["b"]}, "version": 1}]}, True),
        ({"$and": [{"tenant": "a"}, {"id": "a"}]}, True),
        ({"$and": [{"tenant": "a"}, {"version": 1}]}, False),
        ({"$or": [{"id": "a"}, {"version": 1}]}, False),
        ({"id": {"$gt": "a"}}, False),
        ({"id": {"$in": ["a"], "$gt": "a"}}, False),
        ({"tenant": "a"}, False),
        ({}, False),
    ],
)
def test_a_filter_that_leaves_the_shard_open_is_recognized(wanted: Filter, *, named: bool) -> None:
    assert names("id", wanted) is named


async def test_every_unique_index_begins_with_the_field_of_its_shard_key(
    store: Store, mongodb_url: str
) -> None:
    assert await store.add(LAB, a_version(), [a_blob()])
    await queue(store, 1)

    with pymongo.MongoClient[dict[str, Any]](mongodb_url) as client:
        database = client.get_default_database()
        for collection, key in SHARD_KEYS.items():
            made = database[collection].list_indexes()
            unique = [
                record for record in made if record.get("unique") or record["name"] == "_id_"
            ]
            # MongoDB keeps `_id` unique on each shard only: the one of a version need not be, and
            # the one of a delivery begins with its endpoint, whose deliveries are all on one
            # shard.
            ours = [record for record in unique if key == "_id" or record["name"] != "_id_"]
            assert ours
            assert {next(iter(our["key"])) for our in ours} == {key}


async def test_what_requests_ask_is_asked_of_one_shard(store: Store) -> None:
    version, blobs = a_version(), [a_blob(), a_blob(bytes(300_000))]
    later = successor(version)
    ids = [version.id, later.id, "none"]

    with recorded() as sent:
        assert await store.add(LAB, version, blobs)
        assert not await store.add(LAB, version)  # the store reads which tenant owns it
        assert await store.add(LAB, later, blobs)  # the blobs exist already and are refreshed
        await add_all(store, [a_version() for _ in range(20)])
        assert await store.latest(LAB, version.id) == later
        assert await store.version(LAB, version.id, 1) == version
        assert len(await store.history(LAB, version.id)) == 2
        assert len(await whole_blobs(store, LAB, [blob.sha256 for blob in blobs])) == 2
        for more in (0, 20):
            wanted = query(ids=[*ids, *map(str, range(more))])
            assert (await store.search(LAB, wanted)).total == 1

    kinds = [(record["command"], record[record["command"]]) for record in sent]
    assert set(kinds) == {
        ("insert", schema.VERSION),
        ("insert", schema.BLOB),
        ("update", schema.BLOB),
        ("insert", schema.PIECE),
        ("update", schema.PIECE),
        ("find", schema.PIECE),
        ("find", schema.VERSION),
        ("aggregate", schema.VERSION),
        ("find", schema.BLOB),
    }
    assert not [record for record in sent if not asks_one_shard(record)]


async def test_what_a_search_found_is_asked_of_one_shard(store: Store) -> None:
    members = tuple(a_result() for _ in range(3))
    await store.add(LAB, a_version(members=members))

    with recorded() as sent:
        assert (await store.search(LAB, results())).total == 3
        await store.replace_search(LAB, members[0].id, 1, b"[]")

    kinds = [(record["command"], asks_one_shard(record)) for record in sent]
    # A search, its page, then the version of a member and its change.
    assert kinds == [("aggregate", False), ("find", True), ("find", False), ("update", True)]


async def test_what_inserts_holds_the_whole_shard_key(store: Store) -> None:
    blob, (queued,) = a_blob(), await queue(store, 1)
    with recorded() as sent:
        await store.add(LAB, a_version(), [blob])
        await store.add(LAB, a_version(), [blob])
        await store.append([replace(queued, sequence=2, event_id="evt_2")])

    for command in sent:
        key = SHARD_KEYS[command[command["command"]]]
        assert command["command"] in ("insert", "update")
        assert all(isinstance(record[key], str) for record in filters_of(command))
    updates = [record for record in sent if record["command"] == "update"]
    assert [one["upsert"] for update in updates for one in update["updates"]] == [True]


async def test_what_is_sent_is_asked_of_one_shard(store: Store) -> None:
    version, endpoint = a_version(events=EVENTS), an_endpoint()
    await store.add(LAB, version)

    with recorded() as sent:
        await store.mark_published([(version.id, 1)])
        await store.outbox_contains([(version.id, 1)])
        deliveries = await queue(store, 3, endpoint=endpoint.id)
        await store.last_sequences([endpoint.id])
        await store.existing_deliveries(endpoint.id, ["evt_1"])
        await store.waiting(endpoint.id)
        await end(store, deliveries[0])
        await store.reopen(LAB, endpoint.id, ["evt_1"], now=NOW)
        await store.deliveries(LAB, DeliveryQuery(endpoint=endpoint.id))
        await store.deliveries(
            LAB, DeliveryQuery(endpoint=endpoint.id, event_ids=frozenset(["evt_1"]))
        )
        await store.count_deliveries(LAB, endpoint.id)
        await store.put_deliveries(deliveries)

    kinds = [(record["command"], record[record["command"]]) for record in sent]
    assert set(kinds) == {
        ("update", schema.VERSION),
        ("find", schema.VERSION),
        ("insert", schema.DELIVERY),
        ("update", schema.DELIVERY),
        ("find", schema.DELIVERY),
        ("aggregate", schema.DELIVERY),
    }
    assert not [record for record in sent if not asks_one_shard(record)]


async def _sweep(store: Store) -> None:
    await store.add(LAB, a_version(), [a_blob(bytes(300_000))])
    await store.sweep_blobs(LAB, before=FOREVER)


async def _read_member(store: Store) -> None:
    member = a_result()
    await store.add(LAB, a_version(members=(member,)))
    assert await store.latest(LAB, member.id) == member


TO_ALL: dict[str, Callable[[Store], Awaitable[Any]]] = {
    "a search without an identifier's system and value, or `_id`": lambda store: store.search(
        LAB, query(match(value="x"))
    ),
    "a read of a result that was registered with a report": _read_member,
    "the search for documents that no report names, every ten minutes": _sweep,
    "the relay, for versions with pending events": lambda store: store.pending_outbox(limit=1),
    "the search for deliveries that ended long ago": lambda store: store.sweep_deliveries(
        delivered=FOREVER, dead=FOREVER, open_=FOREVER
    ),
    "`fhirpub transfer`, which counts and reads everything": lambda store: store.scan(),
}


def test_the_guide_lists_what_asks_all_shards() -> None:
    _, _, listed = GUIDE.partition("All shards are asked by\n\n")

    items = re.findall(r"^- (.+?)[;.]$", listed.partition("\n\n")[0], re.MULTILINE)

    assert items == list(TO_ALL)


@pytest.mark.parametrize("what", TO_ALL)
async def test_what_the_guide_lists_does_ask_all_shards(store: Store, what: str) -> None:
    with recorded() as sent:
        await TO_ALL[what](store)

    assert [record for record in sent if not asks_one_shard(record)]


async def test_a_sweep_deletes_on_the_shards_that_it_names(store: Store) -> None:
    with recorded() as sent:
        await _sweep(store)

    changing = [record for record in sent if record["command"] in ("update", "delete")]
    assert {record[record["command"]] for record in changing} == {schema.BLOB, schema.PIECE}
    assert all(asks_one_shard(record) for record in changing)


async def test_a_sweep_of_deliveries_deletes_on_the_shards_that_it_names(store: Store) -> None:
    for delivery in await queue(store, 3):
        await end(store, delivery)

    with recorded() as sent:
        await store.sweep_deliveries(delivered=FOREVER, dead=0, open_=0)

    deleting = [record for record in sent if record["command"] == "delete"]
    assert len(deleting) == 1
    assert asks_one_shard(deleting[0])


async def test_a_count_asks_all_shards(store: Store) -> None:
    with recorded() as sent:
        await store.count()

    assert [record["command"] for record in sent] == ["count"]
    assert not asks_one_shard(sent[0])


def test_the_guide_shards_by_these_keys() -> None:
    given = re.findall(r'sh\.shardCollection\("fhirpub\.(\w+)", \{ (\w+): "hashed" \}\)', GUIDE)

    assert dict(given) == SHARD_KEYS


async def test_what_is_asked_of_deliveries_is_found_by_an_index_and_in_its_order(
    store: Store, mongodb_url: str
) -> None:
    endpoint = an_endpoint(state="paused")
    await store.put_endpoint(LAB, endpoint)
    deliveries = await queue(store, 3, endpoint=endpoint.id)
    await end(store, deliveries[0])
    of_endpoint = DeliveryQuery(endpoint=endpoint.id)

    with recorded() as sent:
        await store.pending_outbox(limit=1)
        await store.outbox_contains([(new_id(), 1)])
        await store.last_sequences([endpoint.id])
        await store.existing_deliveries(endpoint.id, ["evt_1"])
        await store.waiting(endpoint.id)
        await store.begin([deliveries[1].key], now=NOW, until=NOW + 1)
        await store.deliveries(LAB, of_endpoint)
        await store.deliveries(LAB, replace(of_endpoint, states=frozenset(["dead", "pending"])))
        await store.scan_deliveries(limit=1)
        await store.count_deliveries(LAB, endpoint.id)
        await store.sweep_deliveries(delivered=FOREVER, dead=FOREVER, open_=0)

    with pymongo.MongoClient[dict[str, Any]](mongodb_url) as client:
        database = client.get_default_database()
        for command in sent:
            stages = _stages(database, command)
            assert stages & {"IXSCAN", "DISTINCT_SCAN"}, command
            assert not stages & {"COLLSCAN", "SORT"}, command


def _stages(database: Any, command: Command) -> set[str]:
    """Return the stages of the plan of a command that was sent."""
    shown = {name: item for name, item in command.items() if name in _EXPLAINED}
    kind = command["command"]
    explained = database.command({"explain": {kind: command[kind], **shown}})
    return set(re.findall(r"'stage': '(\w+)'", str(explained)))


_EXPLAINED = {
    "filter",
    "projection",
    "sort",
    "limit",
    "hint",
    "min",
    "pipeline",
    "cursor",
    "updates",
    "deletes",
}
