"""Versions and documents of any size are stored, read in pieces and swept."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace

import pytest

from fhirpub.errors import InvalidContent, TooLarge
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.mongodb import schema
from fhirpub.storage.mongodb.documents import MAX_BYTES
from fhirpub.storage.store import Store
from fhirpub.testing.store_contract import (
    FOREVER,
    LAB,
    a_blob,
    a_version,
    keep,
    query,
    whole_blobs,
)
from tests.storage.mongodb.helpers import (
    COMMANDS,
    Database,
)


async def test_what_cannot_be_stored_is_refused_and_harms_no_other(store: Store) -> None:
    good = [a_version() for _ in range(10)]
    bad = [
        (a_version(version=2**70), [], InvalidContent),
        (a_version(value="\ud800"), [], InvalidContent),
        (a_version(), [replace(a_blob(), content_type="\ud800")], InvalidContent),
        (a_version(body=bytes(16 * 1024 * 1024)), [], TooLarge),
    ]

    results = await asyncio.gather(
        *(store.add(LAB, version, blobs) for version, blobs, _refusal in bad),
        *(store.add(LAB, item) for item in good),
        return_exceptions=True,
    )

    assert [type(result) for result in results[: len(bad)]] == [refusal for *_, refusal in bad]
    assert results[len(bad) :] == [True] * 10


async def test_the_largest_version_is_read_in_every_way(store: Store) -> None:
    largest = a_version(body=bytes(MAX_BYTES - 1_000))
    await store.add(LAB, largest)

    assert await store.latest(LAB, largest.id) == largest
    assert await store.version(LAB, largest.id, 1) == largest
    assert (await store.search(LAB, query())).versions == (largest,)


async def test_of_one_key_twice_in_a_batch_the_first_wins(store: Store) -> None:
    first = a_version(body=b"first")

    added = await asyncio.gather(
        store.add(LAB, first), store.add(LAB, replace(first, body=b"second"))
    )

    assert list(added) == [True, False]
    assert await store.latest(LAB, first.id) == first


async def test_a_large_document_is_fetched_piece_by_piece(store: Store) -> None:
    blob = a_blob(os.urandom(600_000))
    await store.add(LAB, a_version(documents=(blob.sha256,)), [blob])
    (known,) = (await store.blobs(LAB, [blob.sha256])).values()

    with COMMANDS.recorded() as sent:
        pieces = store.blob_pieces(LAB, known, slice(0, known.size))
        first = await anext(pieces)
        await pieces.aclose()

    assert first == blob.data[: len(first)]
    assert len(first) < 300_000
    assert len(sent) == 1


async def test_pieces_that_a_crash_left_without_their_blob_are_swept(
    store: Store, database: Database
) -> None:
    blob = a_blob(os.urandom(600_000))
    await keep(store, LAB, [blob])
    database[schema.BLOB].delete_many({})

    await store.sweep_blobs(LAB, before=FOREVER)

    assert database[schema.PIECE].count_documents({}) == 0


async def test_pieces_without_their_blob_are_completed_when_it_is_stored_again(
    store: Store, database: Database
) -> None:
    blob = a_blob(os.urandom(600_000))
    await keep(store, LAB, [blob])
    database[schema.BLOB].delete_many({})
    database[schema.PIECE].delete_one({})

    await keep(store, LAB, [blob])

    assert await whole_blobs(store, LAB, [blob.sha256]) == {blob.sha256: blob}


async def test_pieces_of_a_document_that_is_named_are_looked_at_once(
    store: Store, database: Database
) -> None:
    blob = a_blob(os.urandom(600_000))
    await store.add(LAB, a_version(documents=(blob.sha256,)), [blob])

    await store.sweep_blobs(LAB, before=FOREVER)

    assert database[schema.PIECE].count_documents({}) == 3
    assert database[schema.PIECE].count_documents({"loose": True}) == 0


async def test_pieces_of_a_fresh_document_stay(store: Store, database: Database) -> None:
    blob = a_blob(os.urandom(600_000))
    await keep(store, LAB, [blob])

    assert await store.sweep_blobs(LAB, before=now_ms() - 60_000) == 0
    assert database[schema.PIECE].count_documents({"loose": True}) == 3


@pytest.mark.parametrize("size", [100, 600_000])
async def test_what_was_added_at_the_time_of_a_sweep_stays(
    store: Store, database: Database, size: int
) -> None:
    blob = a_blob(os.urandom(size))
    await keep(store, LAB, [blob])
    (kept,) = database[schema.BLOB].find({})

    assert await store.sweep_blobs(LAB, before=kept["added"]) == 0
    assert await whole_blobs(store, LAB, [blob.sha256]) == {blob.sha256: blob}
    assert await store.sweep_blobs(LAB, before=kept["added"] + 1) == 1
    assert database[schema.PIECE].count_documents({}) == 0


async def test_a_large_document_that_was_kept_undivided_is_read(
    store: Store, database: Database
) -> None:
    blob = a_blob(os.urandom(600_000))
    await keep(store, LAB, [blob])
    database[schema.PIECE].delete_many({})
    database[schema.BLOB].update_one({}, {"$set": {"data": blob.data}, "$unset": {"size": ""}})

    assert await whole_blobs(store, LAB, [blob.sha256]) == {blob.sha256: blob}
    (known,) = (await store.blobs(LAB, [blob.sha256])).values()
    pieces = store.blob_pieces(LAB, known, slice(262_000, 530_000))
    assert b"".join([piece async for piece in pieces]) == blob.data[262_000:530_000]


async def test_a_named_document_is_looked_at_by_one_sweep(store: Store) -> None:
    blob = a_blob()
    await store.add(LAB, a_version(documents=(blob.sha256,)), [blob])
    await store.sweep_blobs(LAB, before=FOREVER)

    with COMMANDS.recorded() as sent:
        await store.sweep_blobs(LAB, before=FOREVER)

    commands = {document["command"]: document for document in sent}
    assert commands["delete"]["deletes"][0]["q"]["_id"] == {"$in": []}
    assert commands["update"]["updates"][0]["q"]["_id"] == {"$in": []}
