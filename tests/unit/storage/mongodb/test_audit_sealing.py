"""Records whose block was stored, and which were not released then, are not sealed again.

And what of the audit trail is stored, and read through which index.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from bson.objectid import ObjectId

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.audit_contract import AuditQuery
from fhirpub.storage.mongodb import schema
from fhirpub.storage.mongodb.store import MongoStore, from_url
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.audit.chains import a_block
from fhirpub.testing.contracts.audit.sealing import blocks_of, read_unsealed, seal_all
from fhirpub.testing.store_contract import LAB, OTHER, a_version
from tests.storage.mongodb.helpers import COMMANDS, Admin, Database

pytestmark = pytest.mark.asyncio(loop_scope="module")

WRITE = b'{"action":"register"}'
READ = b'{"action":"read"}\n'


@pytest.fixture
def database(shared: MongoStore, admin: Admin) -> Database:
    """The database of the store that tests share, without versions and without a trail."""
    database: Database = admin[shared._database.name]
    for name in (
        schema.VERSION,
        schema.AUDIT_PENDING,
        schema.AUDIT_BLOCK,
        schema.AUDIT_CHECKPOINT,
    ):
        database[name].delete_many({})
    return database


@pytest.fixture
def store(shared: MongoStore, database: Database) -> MongoStore:
    """A store with no trail."""
    return shared


@pytest_asyncio.fixture(loop_scope="module")
async def other(mongodb: str, database: Database) -> AsyncIterator[MongoStore]:
    """The store of another process."""
    url = urlsplit(mongodb)._replace(path=f"/{database.name}").geturl()
    other = from_url(url, deadline_seconds=120, production=True)
    await other.start()
    yield other
    await other.stop()


async def stop_before_the_release(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seal what waits, as a process does that ends before it has released it."""
    assert isinstance(store, MongoStore)
    unsealed = await read_unsealed(store)

    async def end(_versions: Sequence[object], _pending: Sequence[object]) -> None:
        raise StoreUnavailable("ended")

    with monkeypatch.context() as patch:
        patch.setattr(store, "_release", end)
        with pytest.raises(StoreUnavailable):
            await store.seal_audit(blocks_of(unsealed), unsealed)


async def test_what_a_block_holds_that_was_not_released_is_not_sealed_again(
    store: Store, other: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.add(LAB, a_version(audit=WRITE))
    await store.add_audit_records({LAB: READ})
    await stop_before_the_release(store, monkeypatch)

    assert await seal_all(other) == []
    (block,) = await other.audit_chain(LAB)
    assert block.records == WRITE + b"\n" + READ


async def test_what_came_after_such_a_block_is_sealed_behind_it(
    store: Store, other: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.add_audit_records({LAB: READ})
    await stop_before_the_release(store, monkeypatch)
    await other.add(LAB, a_version(audit=WRITE))

    (block,) = await seal_all(other)

    assert (block.number, block.records) == (2, WRITE + b"\n")
    assert await seal_all(store) == []


async def test_what_a_block_holds_is_released_by_the_next_read(
    store: Store, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        await store.add(LAB, a_version(audit=WRITE))
        await store.add_audit_records({LAB: READ})
    await stop_before_the_release(store, monkeypatch)

    unsealed = await read_unsealed(store)

    assert (unsealed.entries, unsealed.ends, unsealed.is_complete) == ([], {}, True)
    assert database[schema.AUDIT_PENDING].count_documents({}) == 0
    assert database[schema.VERSION].count_documents({"unsealed": True}) == 0


async def test_what_no_block_holds_is_not_released_with_what_one_holds(
    store: Store, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.add_audit_records({LAB: READ})
    await stop_before_the_release(store, monkeypatch)
    await store.add_audit_records({LAB: b"2\n", OTHER: b"3\n"})
    await store.add(OTHER, a_version(audit=WRITE))

    unsealed = await read_unsealed(store)

    assert [entry.records for entry in unsealed.entries] == [WRITE, b"2\n", b"3\n"]
    assert database[schema.AUDIT_PENDING].count_documents({}) == 2
    assert database[schema.VERSION].count_documents({"unsealed": True}) == 1


async def test_ends_that_are_needed_are_read_although_nothing_waits(store: Store) -> None:
    await store.add_audit_records({LAB: READ})
    await seal_all(store)
    await store.add_audit_records({OTHER: READ})

    unsealed = await store.unsealed_audit(limit=9, tenants=[LAB, "new"])

    assert dict(unsealed.ends) == {
        LAB: await store.audit_end(LAB),
        OTHER: (0, b""),
        "new": (0, b""),
    }
    assert (await store.audit_end(LAB))[0] == 1


# Pages


@pytest.fixture
def then() -> Iterator[Callable[[str, Callable[[], object]], None]]:
    """Do something before the answer to the next command of a name is returned."""
    yield COMMANDS.then.__setitem__
    COMMANDS.then.clear()


async def test_a_record_of_a_chain_whose_end_was_not_read_is_left_to_the_next_call(
    store: Store, database: Database, then: Callable[[str, Callable[[], object]], None]
) -> None:
    await store.add_audit_records({LAB: READ})
    late = {"_id": ObjectId(), "tenant": OTHER, "records": b"late\n"}
    then("aggregate", lambda: database[schema.AUDIT_PENDING].insert_one(late))

    unsealed = await read_unsealed(store)

    assert [entry.tenant for entry in unsealed.entries] == [LAB]
    assert [*unsealed.ends] == [LAB]
    assert not unsealed.is_complete
    assert [entry.tenant for entry in (await read_unsealed(store)).entries] == [LAB, OTHER]


@pytest.mark.parametrize(("limit", "is_complete"), [(2, False), (3, True)])
@pytest.mark.parametrize("kind", ["written", "handed in"])
async def test_a_page_that_is_full_may_not_be_the_last(
    store: Store, kind: str, limit: int, *, is_complete: bool
) -> None:
    for _ in range(2):
        if kind == "written":
            await store.add(LAB, a_version(audit=WRITE))
        else:
            await store.add_audit_records({LAB: READ})

    unsealed = await store.unsealed_audit(limit=limit)

    assert len(unsealed.entries) == 2
    assert unsealed.is_complete is is_complete


async def test_what_was_on_no_page_still_waits_once_a_page_is_sealed(store: Store) -> None:
    for time in (1, 2):
        await store.add(LAB, a_version(updated=time, audit=b"w%d" % time))
        await store.add_audit_records({LAB: b"r%d\n" % time})
    unsealed = await store.unsealed_audit(limit=1)

    assert await store.seal_audit(blocks_of(unsealed), unsealed)

    left = await read_unsealed(store)
    assert [entry.records for entry in left.entries] == [b"w2", b"r2\n"]
    assert left.is_complete


async def test_writes_are_read_in_the_order_of_their_times(store: Store) -> None:
    for time, id_, audit in ((2, "a", b"3"), (1, "b", b"2"), (1, "a1", b"1")):
        await store.add(LAB, a_version(id=id_, updated=time, audit=audit))

    unsealed = await read_unsealed(store)

    assert [entry.records for entry in unsealed.entries] == [b"1", b"2", b"3"]


# What is stored


async def test_a_block_names_the_versions_and_the_records_that_it_was_made_of(
    store: Store, database: Database
) -> None:
    await store.add(LAB, a_version(audit=WRITE))
    await store.add_audit_records({LAB: READ})
    written = database[schema.VERSION].find_one({}) or {}
    handed_in = database[schema.AUDIT_PENDING].find_one({}) or {}

    (block,) = await seal_all(store)

    assert database[schema.AUDIT_BLOCK].find_one({}) == {
        "_id": f"{LAB}/1",
        "tenant": LAB,
        "number": 1,
        "first": block.first,
        "last": block.last,
        "records": block.records,
        "hashes": block.hashes,
        "keys": [],
        "sources": [written["_id"], handed_in["_id"]],
    }


async def test_a_copy_of_a_block_has_its_keys_in_order_and_names_nothing(
    store: Store, database: Database
) -> None:
    await store.put_audit_block(a_block(LAB, 7, [5, -6]))

    stored = database[schema.AUDIT_BLOCK].find_one({}) or {}
    assert (stored["_id"], stored["keys"], stored["sources"]) == (f"{LAB}/7", [-6, 5], [])


async def test_a_checkpoint_is_stored_under_its_chain_and_its_number(
    store: Store, database: Database
) -> None:
    await store.put_audit_checkpoint(LAB, 7, "signed")

    assert database[schema.AUDIT_CHECKPOINT].find_one({}) == {
        "_id": f"{LAB}/7",
        "tenant": LAB,
        "number": 7,
        "checkpoint": "signed",
    }


async def test_chains_before_one_whose_number_is_taken_are_sealed_and_released(
    store: Store, database: Database
) -> None:
    await store.add_audit_records({LAB: b"1\n", OTHER: b"2\n"})
    unsealed = await read_unsealed(store)
    blocks = sorted(blocks_of(unsealed), key=lambda sealed: sealed.block.tenant != LAB)
    await store.put_audit_block(a_block(OTHER))

    assert not await store.seal_audit(blocks, unsealed)

    assert [block.records for block in await store.audit_chain(LAB)] == [b"1\n"]
    waiting = [found["tenant"] for found in database[schema.AUDIT_PENDING].find({})]
    assert waiting == [OTHER]


# Through which index


def of_the_trail(sent: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return commands without those that count stored bytes, which may come at any time."""
    return [each for each in sent if each.get("update") != schema.STORED_BYTES]


async def test_each_read_of_the_audit_trail_goes_through_its_index(store: Store) -> None:
    await store.add(LAB, a_version(audit=WRITE))
    with COMMANDS.recorded() as sent:
        await store.audit_chain(LAB, limit=7)
        await store.find_audit_blocks(LAB, AuditQuery(limit=8))
        await store.find_audit_blocks(LAB, AuditQuery(keys=(5,), limit=9))
        await store.audit_end(LAB)

    reads = of_the_trail(sent)
    hints = [command["hint"] for command in reads]
    assert hints == [
        schema.AUDIT_BY_NUMBER,
        schema.AUDIT_BY_TIME,
        schema.AUDIT_BY_KEY,
        schema.AUDIT_BY_NUMBER,
    ]
    pages = [(each["limit"], each["singleBatch"], each["batchSize"]) for each in reads[:3]]
    assert pages == [(7, True, 7), (8, True, 8), (9, True, 9)]


async def test_a_page_has_a_number_of_its_own_unless_one_is_asked_for(store: Store) -> None:
    with COMMANDS.recorded() as sent:
        await store.audit_chain(LAB)
        await store.audit_checkpoints(LAB)

    assert [command["limit"] for command in of_the_trail(sent)] == [100, 1_000]


async def test_what_waits_is_read_and_released_through_an_index(store: Store) -> None:
    await store.add(LAB, a_version(audit=WRITE))
    await store.add_audit_records({LAB: READ})

    with COMMANDS.recorded() as sent:
        unsealed = await store.unsealed_audit(limit=7)
        await store.seal_audit(blocks_of(unsealed), unsealed)

    waiting = [
        (each["find"], each["hint"], each["limit"], each.get("singleBatch"))
        for each in of_the_trail(sent)
        if each["command"] == "find"
    ]
    both = [
        (schema.VERSION, schema.UNSEALED, 7, None),
        (schema.AUDIT_PENDING, schema.BY_ID, 7, True),
    ]
    assert waiting == both * 2
    (release,) = [each for each in of_the_trail(sent) if each["command"] == "update"]
    assert release["updates"][0]["hint"] == schema.BY_ID


async def test_nothing_that_waits_costs_two_reads(store: Store) -> None:
    with COMMANDS.recorded() as sent:
        await store.unsealed_audit(limit=7)

    assert [command["command"] for command in of_the_trail(sent)] == ["find", "find"]
