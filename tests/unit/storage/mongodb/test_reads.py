"""How many reads a tenant may have in progress, and what is returned of documents."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import MAX_CHUNK_BYTES, SMALL_BYTES, BlobInfo
from fhirpub.storage.mongodb import reads
from fhirpub.storage.mongodb.documents import NOT_SHOWN, PIECE_BYTES
from fhirpub.storage.mongodb.reads import Reads, shares_of
from fhirpub.testing.samples import LAB, OTHER, a_version, new_id
from tests.unit.storage.mongodb.answers import Found

_NAME = "ab" * 32


class Collections:
    """The collections of a database without contents but for documents by their ids."""

    def __init__(self, **documents: dict[str, Any]) -> None:
        self._documents = {
            name.replace("_", "/"): document for name, document in documents.items()
        }
        self.asked: list[Any] = []

    def __getitem__(self, _name: str) -> Collections:
        return self

    def with_options(self, **_options: object) -> Collections:
        return self

    def find(self, wanted: Any, shown: Any = None, **options: Any) -> Found:
        self.asked.append((wanted, shown, options))
        found = self._documents.get(str(wanted.get("_id")))
        return Found([found] if found else [])

    def aggregate(self, pipeline: list[dict[str, Any]], **options: Any) -> Found:
        self.asked.append((pipeline, options))
        return Found([])

    async def answer(self, look: Any) -> Any:
        return await look()

    def reads(self) -> Reads:
        this: Any = self
        return Reads(this, primary=this, one_moment=this, reuse=this, seconds=20)


@pytest.mark.parametrize(
    ("threads", "shares"), [(5, (4, 2)), (10, (8, 3)), (20, (16, 6)), (320, (256, 96))]
)
def test_a_tenant_has_three_tenths_of_the_reads_and_two_at_least(
    threads: int, shares: tuple[int, int]
) -> None:
    assert shares_of(threads) == shares


async def test_a_history_of_no_versions_asks_for_none() -> None:
    collections = Collections()

    assert [*await collections.reads().history(LAB, new_id(), below=None, limit=0)] == []
    assert collections.asked == []


async def test_no_names_are_no_documents_and_ask_for_none() -> None:
    collections = Collections()

    assert await collections.reads().blobs(LAB, []) == {}
    assert collections.asked == []


async def test_a_history_is_that_of_a_tenant_below_a_version() -> None:
    collections, resource_id = Collections(), a_version().id

    await collections.reads().history(LAB, resource_id, below=9, limit=3)
    await collections.reads().history(LAB, resource_id, below=None, limit=3)

    ((wanted, shown, options), (unbounded, *_)) = collections.asked
    assert wanted == {"id": resource_id, "tenant": LAB, "version": {"$lt": 9}}
    assert unbounded["version"] == {"$lt": 2**63 - 1}
    assert shown == {"members": 0, "attached": 0, "audit": 0}
    assert options == {
        "sort": [("version", -1)],
        "hint": "version_key",
        "limit": -3,
        "batch_size": 3,
    }


async def test_a_version_of_another_tenant_is_not_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = Collections().reads()
    found: dict[str, Any] = {"id": "a", "version": 1, "tenant": OTHER}

    async def fetch(_key: object) -> Mapping[str, Any]:
        return found

    for grouped in (one._latest, one._shown, one._exact):
        monkeypatch.setattr(grouped, "get", fetch)

    assert await one.latest(LAB, new_id()) is None
    assert await one.latest_public(LAB, new_id()) is None
    assert await one.version(LAB, new_id(), 1) is None


async def pieces_of(collections: Collections, blob: BlobInfo, part: slice) -> list[bytes]:
    """Return the pieces of a part of a document."""
    return [piece async for piece in collections.reads().blob_pieces(LAB, blob, part)]


async def test_a_part_of_what_is_known_is_not_read() -> None:
    collections = Collections()

    assert await pieces_of(collections, BlobInfo(_NAME, "", 3, b"abc"), slice(1, 3)) == [b"bc"]
    assert collections.asked == []


@pytest.mark.parametrize("stored", [{}, {f"{LAB}_{_NAME}": {"data": None}}], ids=["none", "bare"])
async def test_a_document_without_bytes_is_unavailable(stored: dict[str, Any]) -> None:
    blob = BlobInfo(_NAME, "", 2 * PIECE_BYTES, None)

    with pytest.raises(StoreUnavailable) as failed:
        await pieces_of(Collections(**stored), blob, slice(0, 5))

    assert failed.value.reason == "a document is missing"


async def test_a_document_that_was_kept_undivided_is_yielded_in_pieces() -> None:
    data = bytes(range(256)) * (2 * PIECE_BYTES // 256) + b"end"
    collections = Collections(**{f"{LAB}_{_NAME}": {"data": data}})
    blob = BlobInfo(_NAME, "", len(data), None)

    pieces = await pieces_of(collections, blob, slice(3, len(data)))

    assert b"".join(pieces) == data[3:]
    assert [len(piece) for piece in pieces] == [PIECE_BYTES, PIECE_BYTES]


@pytest.mark.parametrize("part", [slice(0, 9), slice(7, PIECE_BYTES), slice(5, PIECE_BYTES + 5)])
async def test_a_part_of_an_undivided_document_ends_where_it_is_asked_to(part: slice) -> None:
    data = bytes(range(256)) * (2 * PIECE_BYTES // 256)
    collections = Collections(**{f"{LAB}_{_NAME}": {"data": data}})
    blob = BlobInfo(_NAME, "", len(data), None)

    assert b"".join(await pieces_of(collections, blob, part)) == data[part]


@pytest.mark.parametrize(
    "part",
    [
        slice(0, 3 * PIECE_BYTES),
        slice(0, PIECE_BYTES),
        slice(10, 20),
        slice(10, PIECE_BYTES + 5),
        slice(PIECE_BYTES - 1, PIECE_BYTES + 1),
        slice(PIECE_BYTES, 2 * PIECE_BYTES),
        slice(7, 2 * PIECE_BYTES + 9),
        slice(5, 5),
    ],
)
async def test_a_part_of_a_document_in_pieces_is_what_it_is_of_the_whole(part: slice) -> None:
    data = os.urandom(3 * PIECE_BYTES)
    stored = {
        f"{LAB}_{_NAME}_{number}": {"data": data[number * PIECE_BYTES :][:PIECE_BYTES]}
        for number in range(3)
    }
    blob = BlobInfo(_NAME, "", len(data), None)

    pieces = await pieces_of(Collections(**stored), blob, part)

    assert b"".join(pieces) == data[part]
    assert all(len(piece) <= MAX_CHUNK_BYTES for piece in pieces)


async def test_the_rest_of_a_document_whose_pieces_are_gone_is_read_undivided() -> None:
    data = os.urandom(2 * PIECE_BYTES)
    whole, piece = f"{LAB}_{_NAME}", f"{LAB}_{_NAME}_0"
    collections = Collections(**{whole: {"data": data}, piece: {"data": data[:PIECE_BYTES]}})
    blob = BlobInfo(_NAME, "", len(data), None)
    part = slice(3, PIECE_BYTES + 8)

    assert b"".join(await pieces_of(collections, blob, part)) == data[part]


@pytest.mark.parametrize("below", [0, 1])
async def test_a_history_below_the_first_version_asks_for_none_of_the_newest(below: int) -> None:
    collections = Collections()

    await collections.reads().history(LAB, new_id(), below=below, limit=3)

    ((wanted, *_rest),) = collections.asked
    assert wanted["version"] == {"$lt": below}


async def test_few_documents_are_looked_for_by_their_tenant_and_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = Collections().reads()
    asked: list[set[str]] = []

    async def look(ids: Collection[str]) -> Mapping[str, Any]:
        asked.append({*ids})
        return {}

    monkeypatch.setattr(one, "_blobs_by_id", look)

    assert await one.blobs(LAB, [_NAME, _NAME]) == {}
    assert await one.blobs(LAB, [f"{number:064x}" for number in range(40)]) == {}
    assert asked[0] == {f"{LAB}/{_NAME}"}
    assert len(asked[1]) == 40


async def test_what_many_ask_for_comes_without_members_and_if_it_is_small() -> None:
    collections, resource_id = Collections(), new_id()
    one = collections.reads()

    await one.latest(LAB, resource_id)
    await one.latest_public(LAB, resource_id)
    await one.version(LAB, resource_id, 3)

    pipelines = [pipeline for pipeline, _options in collections.asked]
    assert [pipeline[-1] for pipeline in pipelines] == [reads._IF_SMALL] * 3
    left_out = [
        stage["$unset"] for pipeline in pipelines for stage in pipeline if "$unset" in stage
    ]
    shown = [f"newest.{name}" for name in ("members", *NOT_SHOWN)]
    assert left_out == [["newest.members"], shown, "members"]
    assert [options for _, options in collections.asked] == [{"hint": "version_key"}] * 3


def test_what_many_ask_for_has_its_bytes_only_if_they_are_few() -> None:
    shown: Any = reads._IF_SMALL["$replaceRoot"]["newRoot"]["$cond"]

    assert shown[0] == {"$lte": [{"$bsonSize": "$$ROOT"}, SMALL_BYTES]}
    assert shown[2] == {"id": "$id", "version": "$version", "tenant": "$tenant"}
    few: Any = reads._SHOWN_OF_A_BLOB["data"]
    assert few["$cond"][0]["$lte"][1] == SMALL_BYTES
    assert few["$cond"][1:] == ["$data", "$$REMOVE"]
