"""What becomes of a record that another process changes while it is about to be removed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.runtime.clock import now_ms
from fhirpub.storage.mongodb import schema
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.erasure.content import a_tombstone, an_erasure
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.contracts.webhooks.records import a_delivery, an_endpoint, sequences
from fhirpub.testing.store_contract import (
    FOREVER,
    LAB,
    a_blob,
    a_version,
    keep,
    query,
    wait_for_stored_bytes,
)
from tests.storage.mongodb.helpers import COMMANDS, Database

NOW, UNTIL = 1_700_000_000_000, 1_700_000_030_000
Then = Callable[[str, Callable[[], object]], None]


@pytest.fixture
def then() -> Iterator[Then]:
    """Do something before the answer to the next command of a name is returned."""
    yield COMMANDS.then.__setitem__
    COMMANDS.then.clear()


# Documents


async def test_a_document_that_is_added_again_while_it_is_swept_stays(
    store: Store, database: Database, then: Then
) -> None:
    blob = a_blob(os.urandom(300))
    await keep(store, LAB, [blob])
    before = now_ms() + 60_000
    again = {"$set": {"added": before}}
    then("aggregate", lambda: database[schema.BLOB].update_many({}, again))

    assert await store.sweep_blobs(LAB, before=before) == 0

    assert (await store.blobs(LAB, [blob.sha256])).keys() == {blob.sha256}
    await wait_for_stored_bytes(store, LAB, a_version().size + 300)


async def test_what_another_process_sweeps_at_the_same_time_is_counted_there(
    store: Store, database: Database, then: Then
) -> None:
    blobs = [a_blob(os.urandom(300)) for _ in range(3)]
    await keep(store, LAB, blobs)
    gone = {"sha256": blobs[1].sha256}
    then("aggregate", lambda: database[schema.BLOB].delete_one(gone))

    assert await store.sweep_blobs(LAB, before=FOREVER) == 2

    await wait_for_stored_bytes(store, LAB, a_version().size + 300)


async def test_a_document_of_schema_version_2_has_no_size_and_is_swept(
    store: Store, database: Database
) -> None:
    old, new = a_blob(os.urandom(300)), a_blob(os.urandom(40))
    await keep(store, LAB, [old, new])
    database[schema.BLOB].update_one({"sha256": old.sha256}, {"$unset": {"size": True}})

    assert await store.sweep_blobs(LAB, before=FOREVER) == 2

    assert await store.blobs(LAB, [old.sha256, new.sha256]) == {}
    await wait_for_stored_bytes(store, LAB, a_version().size + 300)


async def test_pieces_of_a_document_that_may_go_are_looked_at_again(
    store: Store, database: Database
) -> None:
    blob = a_blob(os.urandom(600_000))
    await keep(store, LAB, [blob])
    before = now_ms() + 60_000
    database[schema.BLOB].update_one({}, {"$set": {"added": before}})

    assert await store.sweep_blobs(LAB, before=before) == 0
    assert await store.sweep_blobs(LAB, before=before + 1) == 1

    assert database[schema.PIECE].count_documents({}) == 0


# Versions


async def test_a_version_that_another_process_erases_is_counted_there(
    store: Store, database: Database, then: Then
) -> None:
    first = a_version(body=b"b" * 500)
    tombstone = a_tombstone(first)
    for version in (first, tombstone):
        await store.add(LAB, version)
    erased = {"$set": {"body": tombstone.body}}
    then("aggregate", lambda: database[schema.VERSION].update_one({"version": 1}, erased))

    step = await store.erase_versions(LAB, tombstone)

    assert step.versions == 1
    assert not await store.erase_versions(LAB, tombstone)
    await wait_for_stored_bytes(store, LAB, first.size + tombstone.size)
    stored = database[schema.VERSION].find_one({"version": 1}) or {}
    assert stored["type"] == first.type


async def test_an_erased_version_keeps_nothing_that_is_not_of_its_key(
    store: Store, database: Database
) -> None:
    blob = a_blob()
    first = a_version(
        events=b'[{"id":"x","type":"t","data":{}}]',
        documents=(blob.sha256,),
        attached=(blob,),
        digest=b"d" * 32,
        parts=b"{}",
        response=b"r",
        members=(a_result(),),
    )
    tombstone = a_tombstone(first, *first.members)
    for version in (first, tombstone):
        await store.add(LAB, version)

    await store.erase_versions(LAB, tombstone)

    stored = database[schema.VERSION].find_one({"version": 1}) or {}
    assert stored.keys() & {"documents", "attached", "digest", "unrelayed", "member_types"} == (
        set()
    )
    assert (stored["tenant"], stored["id"], stored["created"]) == (LAB, first.id, first.created)


async def test_documents_of_an_erased_version_are_looked_at_by_the_next_sweep(
    store: Store, database: Database
) -> None:
    small, large, other = a_blob(os.urandom(100)), a_blob(os.urandom(600_000)), a_blob()
    first = a_version(documents=(small.sha256, large.sha256))
    await store.add(LAB, first, [small, large])
    await store.add(LAB, a_version(documents=(other.sha256,)), [other])
    await store.sweep_blobs(LAB, before=FOREVER)
    assert database[schema.BLOB].count_documents({"loose": True}) == 0
    tombstone = a_tombstone(first)
    await store.add(LAB, tombstone)

    await store.erase_versions(LAB, tombstone)

    loose = {document["sha256"] for document in database[schema.BLOB].find({"loose": True})}
    assert loose == {small.sha256, large.sha256}
    assert database[schema.PIECE].count_documents({"loose": {"$exists": False}}) == 0
    assert await store.sweep_blobs(LAB, before=FOREVER) == 2
    assert database[schema.PIECE].count_documents({}) == 0
    assert (await store.blobs(LAB, [other.sha256])).keys() == {other.sha256}


async def test_a_fresh_document_of_a_version_on_its_way_is_not_deleted(store: Store) -> None:
    fresh = a_blob()
    await keep(store, LAB, [fresh])

    await store.erase_documents(LAB, [a_blob().sha256])

    assert (await store.blobs(LAB, [fresh.sha256])).keys() == {fresh.sha256}


@pytest.mark.parametrize(("minutes", "is_gone"), [(59, False), (61, True)])
async def test_a_document_that_was_added_within_the_hour_is_left_to_the_sweep(
    store: Store, database: Database, minutes: int, *, is_gone: bool
) -> None:
    blob = a_blob()
    await keep(store, LAB, [blob])
    added = now_ms() - minutes * 60_000
    database[schema.BLOB].update_many({}, {"$set": {"added": added}})

    assert await store.erase_documents(LAB, [blob.sha256]) == int(is_gone)

    assert bool(await store.blobs(LAB, [blob.sha256])) is not is_gone


async def test_an_order_of_this_process_is_known_to_its_next_search(
    store: Store, database: Database
) -> None:
    await store.add(LAB, a_version())
    order = an_erasure(allows_reuse=True)

    await store.put_erasure(order)

    assert database[schema.ERASURE].find_one({}) == {
        "_id": f"{LAB}/{order.id}",
        "tenant": LAB,
        "type": order.type,
        "id": order.id,
        "ordered": order.ordered,
        "operator": order.operator,
        "reason": order.reason,
        "allows_reuse": True,
        "version": order.version,
        "finished": None,
    }


async def test_an_erasure_reads_through_indexes(store: Store) -> None:
    first, endpoint = a_version(), an_endpoint(tenant=LAB)
    await store.add(LAB, first)
    await store.put_endpoint(LAB, endpoint)
    await store.append([a_delivery(endpoint.id, event_id="evt_a_1")])

    with COMMANDS.recorded() as sent:
        await store.erase_versions(LAB, a_tombstone(first))
        await store.erase_deliveries(LAB, "evt_a_", lambda _body: b"ids")

    hints = {each[each["command"]]: each["hint"] for each in sent if "hint" in each}
    assert hints == {schema.VERSION: schema.VERSION_KEY, schema.DELIVERY: schema.BY_ID}


async def test_a_page_that_is_erased_while_it_is_read_is_not_one_without_an_end(
    store: Store, database: Database, then: Then
) -> None:
    kept, gone = a_version(updated=1), a_version(updated=2)
    for version in (kept, gone):
        await store.add(LAB, version)
    erased = {"$set": {"type": "!DiagnosticReport"}}
    then("aggregate", lambda: database[schema.VERSION].update_one({"id": gone.id}, erased))

    page = await store.search(LAB, query(limit=1))

    assert ([each.id for each in page.versions], page.total, page.more) == ([kept.id], 1, False)


# Deliveries


async def ended(store: Store, endpoint: str, count: int) -> None:
    """Store deliveries that were given up."""
    await store.put_deliveries(
        [a_delivery(endpoint, number, state="dead", ended=NOW) for number in range(1, count + 1)]
    )


async def test_a_delivery_that_is_reopened_while_it_is_swept_stays(
    store: Store, database: Database, then: Then
) -> None:
    endpoint = an_endpoint()
    await store.put_endpoint(LAB, endpoint)
    await ended(store, endpoint.id, 4)
    reopened = {"$set": {"state": "pending"}, "$unset": {"ended": True}}
    then("aggregate", lambda: database[schema.DELIVERY].update_one({"sequence": 2}, reopened))

    assert await store.sweep_deliveries(delivered=0, dead=UNTIL, open_=0) == 2

    assert await sequences(store, endpoint.id) == [2, 4]


async def test_what_waits_for_an_endpoint_that_is_active_again_stays(
    store: Store, database: Database, then: Then
) -> None:
    endpoint = an_endpoint(state="paused")
    await store.put_endpoint(LAB, endpoint)
    await store.append([a_delivery(endpoint.id, number) for number in (1, 2, 3)])
    active: Any = {"$set": {"state": "active"}}
    then("find", lambda: database[schema.ENDPOINT].update_many({}, active))

    assert await store.sweep_deliveries(delivered=0, dead=0, open_=UNTIL) == 0

    assert await sequences(store, endpoint.id) == [1, 2, 3]


async def test_an_endpoint_that_is_active_again_spares_no_other(
    store: Store, database: Database, then: Then
) -> None:
    first, second = sorted((an_endpoint(state="paused") for _ in range(2)), key=lambda one: one.id)
    for endpoint in (first, second):
        await store.put_endpoint(LAB, endpoint)
        await store.append([a_delivery(endpoint.id, number) for number in (1, 2)])
    active: Any = {"$set": {"state": "active"}}
    changed = {"_id": first.id}
    then("find", lambda: database[schema.ENDPOINT].update_one(changed, active))

    assert await store.sweep_deliveries(delivered=0, dead=0, open_=UNTIL) == 1

    assert await sequences(store, first.id) == [1, 2]
    assert await sequences(store, second.id) == [2]


async def test_a_sweep_of_a_full_batch_goes_on(store: Store, database: Database) -> None:
    endpoint = an_endpoint(state="deleted")
    await store.put_endpoint(LAB, endpoint)
    await ended(store, endpoint.id, 501)

    assert await store.sweep_deliveries(delivered=0, dead=UNTIL, open_=0) == 501

    assert database[schema.DELIVERY].count_documents({}) == 0


async def test_a_sweep_reads_no_bodies_and_finds_by_its_indexes(store: Store) -> None:
    endpoint = an_endpoint(state="paused")
    await store.put_endpoint(LAB, endpoint)
    await ended(store, endpoint.id, 2)

    with COMMANDS.recorded() as sent:
        await store.sweep_deliveries(delivered=0, dead=UNTIL, open_=0)

    finds = [one for one in sent if one["command"] == "find"]
    of_endpoints = [one for one in finds if one["find"] == schema.ENDPOINT]
    of_deliveries = [one for one in finds if one["find"] == schema.DELIVERY]
    assert [one["filter"].keys() for one in of_endpoints] == [{"state"}, {"_id", "state"}]
    assert [one["projection"] for one in of_endpoints] == [{"state": True}] * 2
    assert [one["hint"] for one in of_deliveries] == [
        *(schema.ENDED, schema.ENDED),
        schema.BY_STATE,
    ]
    assert [one["filter"].get("state") for one in of_deliveries[:2]] == ["delivered", "dead"]
    assert [one["projection"].keys() for one in of_deliveries] == [{"endpoint", "sequence"}] * 3
    (delete,) = (one["deletes"][0] for one in sent if one["command"] == "delete")
    assert delete["hint"] == schema.BY_ID


# Holding on


async def test_an_erased_version_counts_what_is_left_of_it(store: Store) -> None:
    first = a_version(body=b"b" * 5_000, members=(a_result(body=b"m" * 700),))
    tombstone = a_tombstone(first, *first.members)
    for version in (first, tombstone):
        await store.add(LAB, version)
    kept = replace(tombstone, events=b"[]")

    await store.erase_versions(LAB, tombstone)

    await wait_for_stored_bytes(store, LAB, kept.size + tombstone.size)
