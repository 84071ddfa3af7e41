"""The steps of an erasure in the embedded store, and what happens between two of them."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from fhirpub.storage.erasure.contract import ErasedDeliveries
from fhirpub.storage.sqlite import blobs
from fhirpub.storage.sqlite.rows import PIECE_BYTES
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.webhook_contract import AttemptResult, Delivery
from fhirpub.testing.contracts.erasure.content import a_tombstone, erase
from fhirpub.testing.contracts.erasure.steps import with_members
from fhirpub.testing.contracts.webhooks.records import NOW, UNTIL, a_delivery, an_endpoint
from fhirpub.testing.store_contract import LAB, a_blob, a_version


def rows_of(path: Path, statement: str) -> list[tuple[object, ...]]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(statement).fetchall()
        connection.commit()
        return rows


async def a_queued(store: SqliteStore, *, event_id: str) -> Delivery:
    """Return a delivery that is in the queue of an endpoint."""
    endpoint = an_endpoint()
    await store.put_endpoint(LAB, endpoint)
    delivery = a_delivery(endpoint.id, event_id=event_id, body=b"secret")
    await store.append([delivery])
    return delivery


async def end_with(store: SqliteStore, delivery: Delivery, answer: bytes) -> None:
    """End an attempt that a receiver has responded to."""
    (begun,) = await store.begin([delivery.key], now=NOW, until=UNTIL)
    attempt = replace(begun.attempts[-1], ended=NOW + 1, status=500, answer=answer)
    await store.finish(
        [AttemptResult(key=delivery.key, attempt=attempt, state="retrying", due=NOW)]
    )


async def test_the_versions_come_first_and_ten_members_at_once_behind_them(
    store: SqliteStore,
) -> None:
    _first, tombstone = await with_members(store, 23)

    steps = [await store.erase_versions(LAB, tombstone) for _ in range(5)]

    assert [(step.versions, step.members) for step in steps] == [
        (1, 0),
        (0, 10),
        (0, 10),
        (0, 3),
        (0, 0),
    ]


async def test_a_step_looks_for_members_behind_the_last_that_was_erased(
    store: SqliteStore,
) -> None:
    _first, tombstone = await with_members(store, 23)
    statements: list[str] = []
    assert store._file is not None
    store._file._writer.set_trace_callback(statements.append)

    for _ in range(5):
        await store.erase_versions(LAB, tombstone)

    looked = [re.search(r"members\.last > (\d+)", each) for each in statements]
    # The members stand behind their version, which is the first row. The last look is from there
    # again: the members of another version could stand before those that were passed.
    assert [int(found[1]) for found in looked if found] == [0, 11, 21, 24, 0]


async def test_a_step_reports_all_bytes_of_its_rows_and_what_stays_of_them_counts(
    store: SqliteStore,
) -> None:
    first = a_version(body=b"b" * 50_000, response=b"r" * 700)
    await store.add(LAB, first)
    tombstone = a_tombstone(first)
    await store.add(LAB, tombstone)
    before = (await store.stored_bytes([LAB]))[LAB]

    step = await store.erase_versions(LAB, tombstone)

    stays = len(tombstone.body) + len(b"[]")
    assert step.size == first.size
    assert (await store.stored_bytes([LAB]))[LAB] == before - step.size + stays


async def test_nothing_leads_to_an_erased_version(store: SqliteStore, path: Path) -> None:
    blob = a_blob()
    first = a_version(
        search=b'[["code","a","s"],["date",5,6],["name",null,null]]', documents=(blob.sha256,)
    )
    await store.add(LAB, first, [blob])

    await erase(store, first)

    assert rows_of(path, "SELECT * FROM search_value") == []
    assert rows_of(path, "SELECT * FROM document") == []


async def test_documents_are_deleted_in_many_commits(store: SqliteStore) -> None:
    blobs = [a_blob() for _ in range(40)]
    names = [blob.sha256 for blob in blobs]
    first = a_version(documents=tuple(names))
    await store.add(LAB, first, blobs)
    await erase(store, first)

    assert await store.erase_documents(LAB, names) == 40
    assert await store.blobs(LAB, names) == {}


async def test_all_pieces_of_a_document_are_deleted_though_a_commit_deletes_few(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blobs, "_SWEEP_BATCH_SIZE", 2)
    blob = a_blob(bytes(2 * PIECE_BYTES + 1))
    first = a_version(documents=(blob.sha256,))
    await store.add(LAB, first, [blob])
    assert len(rows_of(path, "SELECT number FROM blob_piece")) == 3
    await erase(store, first)

    assert await store.erase_documents(LAB, [blob.sha256]) == 1
    assert rows_of(path, "SELECT number FROM blob_piece") == []


async def test_a_document_on_its_way_is_not_deleted_with_those_of_an_erasure(
    store: SqliteStore,
) -> None:
    blob = a_blob()
    await store.add(LAB, a_version(), [blob])  # the version that names it is still to come

    assert await store.erase_documents(LAB, [blob.sha256]) == 0
    assert (await store.blobs(LAB, [blob.sha256])).keys() == {blob.sha256}


async def test_an_attempt_that_ends_in_between_keeps_its_outcome(
    store: SqliteStore, path: Path
) -> None:
    delivery = await a_queued(store, event_id="evt_a_1")

    def change(_body: bytes) -> bytes:
        rows_of(path, 'UPDATE delivery SET attempts = \'[[1,2,3,200,"",4,[],""]]\', number = 1')
        return b"ids"

    erased = await store.erase_deliveries(LAB, "evt_a_", change)

    (found,) = await store.scan_deliveries()
    assert erased == ErasedDeliveries(changed=1)
    assert (found.body, found.attempts[0].status) == (delivery.body, 200)


async def test_what_an_attempt_has_prevented_is_erased_by_the_next_call(
    store: SqliteStore, path: Path
) -> None:
    await a_queued(store, event_id="evt_a_1")
    changes = iter(['UPDATE delivery SET attempts = \'[[1,2,3,200,"",4,[],""]]\'', "SELECT 1"])

    def change(_body: bytes) -> bytes:
        rows_of(path, next(changes))
        return b"ids"

    await store.erase_deliveries(LAB, "evt_a_", change)
    await store.erase_deliveries(LAB, "evt_a_", change)

    assert [each.body for each in await store.scan_deliveries()] == [b"ids"]


async def test_the_log_of_a_delivery_without_responses_stays_as_it_is(
    store: SqliteStore, path: Path
) -> None:
    delivery = await a_queued(store, event_id="evt_a_1")
    await end_with(store, delivery, b"")
    before = rows_of(path, "SELECT attempts FROM delivery")

    erased = await store.erase_deliveries(LAB, "evt_a_", lambda body: body)

    assert erased == ErasedDeliveries()
    assert rows_of(path, "SELECT attempts FROM delivery") == before


async def test_events_whose_ids_begin_otherwise_are_left_alone(store: SqliteStore) -> None:
    for event_id in ("evt_a", "evt_b_1", "evt_A_1", "x_evt_a_1"):
        await a_queued(store, event_id=event_id)

    erased = await store.erase_deliveries(LAB, "evt_a_", lambda _body: b"ids")

    assert erased == ErasedDeliveries()
    assert {each.body for each in await store.scan_deliveries()} == {b"secret"}


async def test_an_event_with_the_last_characters_of_all_is_found_by_its_beginning(
    store: SqliteStore,
) -> None:
    await a_queued(store, event_id="evt_a_\uffff\U0010fffe")

    assert (await store.erase_deliveries(LAB, "evt_a_", lambda _body: b"ids")).changed == 1
