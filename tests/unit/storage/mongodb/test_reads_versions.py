"""Versions, members and documents, as they are read from a server."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace

import pytest

from fhirpub.storage.contract import SMALL_BYTES, Version
from fhirpub.storage.id_search import FEW
from fhirpub.storage.mongodb.documents import PIECE_BYTES
from fhirpub.storage.mongodb.store import MongoStore
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.contracts.store.queries import query
from fhirpub.testing.contracts.store.records import a_blob
from fhirpub.testing.samples import LAB, OTHER, a_version, new_id, successor

pytestmark = pytest.mark.asyncio(loop_scope="module")

LARGE = b"x" * (SMALL_BYTES + 1)


async def check_reads(store: MongoStore, version: Version, newest: Version) -> None:
    """Check what each read returns of a resource with these two versions."""
    assert await store.latest(LAB, version.id) == newest
    assert await store.latest_public(LAB, version.id) == newest.without_internal_fields()
    assert await store.version(LAB, version.id, 1) == version
    assert await store.version(LAB, version.id, 2) == newest
    assert await store.version(LAB, version.id, 3) is None
    assert await store.version(LAB, version.id, 2**70) is None
    assert await store.latest(OTHER, version.id) is None
    assert await store.latest_public(OTHER, version.id) is None
    assert await store.version(OTHER, version.id, 1) is None


@pytest.mark.parametrize("body", [b"{}", LARGE], ids=["small", "large"])
async def test_versions_are_read_by_their_tenant_whatever_their_size(
    shared: MongoStore, body: bytes
) -> None:
    version = a_version(body=body, parts=b"p", digest=b"d" * 32, audit=b"{}")
    newest = replace(successor(version, body=body + b" "), parts=b"q")
    await shared.add(LAB, version)
    await shared.add(LAB, newest)

    await check_reads(shared, version, newest)


@pytest.mark.parametrize("body", [b"{}", LARGE], ids=["small", "large"])
async def test_members_are_read_as_resources_of_their_own(shared: MongoStore, body: bytes) -> None:
    member = a_result(body=body, search=b'[["code","a",""]]')
    later = replace(member, version=2, body=body + b" ")
    version = a_version(members=(member, a_result()))
    await shared.add(LAB, version)
    newest = successor(version, members=(later,))
    later = replace(later, updated=newest.updated)
    await shared.add(LAB, newest)
    member = replace(member, updated=version.updated)

    await check_reads(shared, member, later)
    assert await shared.latest(LAB, version.id) == replace(newest, members=())
    assert await shared.history(LAB, member.id) == [later, member]
    assert await shared.history(LAB, member.id, below=2) == [member]
    assert await shared.history(OTHER, member.id) == []


async def test_a_history_is_newest_first_and_has_an_end(shared: MongoStore) -> None:
    first = a_version()
    second = successor(first)
    third = successor(second)
    for version in (first, second, third):
        await shared.add(LAB, version)

    assert await shared.history(LAB, first.id) == [third, second, first]
    assert await shared.history(LAB, first.id, limit=2) == [third, second]
    assert await shared.history(LAB, first.id, below=3, limit=1) == [second]
    assert await shared.history(OTHER, first.id) == []


async def test_many_reads_at_once_get_each_its_own(shared: MongoStore) -> None:
    versions = [a_version(body=b"%d" % number) for number in range(5)]
    for version in versions:
        await shared.add(LAB, version)
    missing = shared.latest(OTHER, versions[0].id)

    found = await asyncio.gather(*(shared.latest(LAB, one.id) for one in versions), missing)

    assert found == [*versions, None]


async def test_a_search_by_ids_finds_these_alone(shared: MongoStore) -> None:
    versions = [a_version() for _ in range(5)]
    for version in versions:
        await shared.add(LAB, version)
    ids = sorted(version.id for version in versions[:3])

    page = await shared.search(LAB, query(ids=ids))

    assert sorted(version.id for version in page.versions) == ids
    assert page.total == 3


@pytest.mark.parametrize("count", [FEW, FEW + 1])
async def test_documents_are_found_however_many_are_asked_for(
    shared: MongoStore, count: int
) -> None:
    large = a_blob(os.urandom(SMALL_BYTES + 1))
    loose, attached = a_blob(), a_blob()
    await shared.add(LAB, a_version(documents=(loose.sha256,)), [loose, large])
    await shared.add(LAB, a_version(documents=(attached.sha256,), attached=(attached,)))
    others = [f"{number:064x}" for number in range(count - 3)]
    names = [loose.sha256, attached.sha256, large.sha256, *others]

    found = await shared.blobs(LAB, names)

    assert {*found} == {*names[:3]}
    for blob in (loose, attached):
        known = found[blob.sha256]
        assert (known.data, known.size) == (blob.data, len(blob.data))
        assert known.content_type == blob.content_type
    assert (found[large.sha256].data, found[large.sha256].size) == (None, SMALL_BYTES + 1)
    assert await shared.blobs(OTHER, names) == {}


async def test_all_documents_are_found_where_versions_hold_many(shared: MongoStore) -> None:
    attached = tuple(a_blob() for _ in range(35))
    names = [blob.sha256 for blob in attached]
    await shared.add(LAB, a_version(documents=tuple(names[:20]), attached=attached[:20]))
    await shared.add(LAB, a_version(documents=tuple(names[20:]), attached=attached[20:]))

    found = await shared.blobs(LAB, names)

    assert {name: blob.data for name, blob in found.items()} == {
        blob.sha256: blob.data for blob in attached
    }


@pytest.mark.parametrize("more", [0, 1])
async def test_a_document_of_the_size_of_small_ones_comes_with_its_bytes(
    shared: MongoStore, more: int
) -> None:
    blob = a_blob(os.urandom(SMALL_BYTES + more))
    await shared.add(LAB, a_version(documents=(blob.sha256,)), [blob])

    (known,) = (await shared.blobs(LAB, [blob.sha256])).values()

    assert known.size == SMALL_BYTES + more
    assert (known.data is None) is bool(more)
    assert await shared.whole_blob(LAB, known) == blob


@pytest.mark.parametrize(
    ("start", "stop"),
    [
        (0, 2 * PIECE_BYTES + 9),
        (3, PIECE_BYTES + 1),
        (PIECE_BYTES - 1, PIECE_BYTES + 1),
        (PIECE_BYTES, PIECE_BYTES + 2),
        (2 * PIECE_BYTES + 1, 2 * PIECE_BYTES + 9),
    ],
    ids=["all", "from the first", "across", "from an edge", "the last"],
)
async def test_a_part_of_a_large_document_is_read_from_its_pieces(
    shared: MongoStore, start: int, stop: int
) -> None:
    data = bytes(range(256)) * (2 * PIECE_BYTES // 256) + b"the end.."
    blob = a_blob(data)
    await shared.add(LAB, a_version(documents=(blob.sha256,)), [blob])
    (known,) = (await shared.blobs(LAB, [blob.sha256])).values()

    pieces = [piece async for piece in shared.blob_pieces(LAB, known, slice(start, stop))]

    assert b"".join(pieces) == data[start:stop]
    assert all(len(piece) <= PIECE_BYTES for piece in pieces)


async def test_a_scan_goes_through_the_versions_of_all_tenants_by_their_keys(
    shared: MongoStore,
) -> None:
    first, other = (a_version(id=id_) for id_ in sorted([new_id(), new_id()]))
    first = replace(first, members=(a_result(updated=first.updated),))
    second = successor(first, members=())
    for tenant, version in ((OTHER, other), (LAB, first), (LAB, second)):
        await shared.add(tenant, version)

    assert await shared.scan(after=(first.id, 0), limit=2) == [(LAB, first), (LAB, second)]
    assert (await shared.scan(after=(first.id, 1), limit=1)) == [(LAB, second)]
    assert (await shared.scan(after=(other.id, 0), limit=1)) == [(OTHER, other)]
