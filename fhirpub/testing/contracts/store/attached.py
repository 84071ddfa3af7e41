"""Tests of small documents, which the record of a version holds (ADR 30)."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace

import pytest

from fhirpub.storage.contract import SMALL_BYTES, Blob, Version
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.store.queries import query
from fhirpub.testing.contracts.store.quotas import wait_for_stored_bytes
from fhirpub.testing.contracts.store.records import a_blob, keep, pieces_of, whole_blobs
from fhirpub.testing.samples import FOREVER, LAB, OTHER, a_version, new_id, successor


def holding(*blobs: Blob, **changes: object) -> Version:
    """Return a version that holds documents.

    Args:
        *blobs: The documents.
        **changes: The fields that differ from the sample.

    Returns:
        The version.
    """
    names = tuple(blob.sha256 for blob in blobs)
    return replace(a_version(**changes), documents=names, attached=blobs)


_SIZES = pytest.mark.parametrize("size", [0, 1, 1_000, SMALL_BYTES])


class AttachedContract:
    """What a version holds comes with it, and is found by its name."""

    @_SIZES
    async def test_a_version_comes_back_with_the_documents_that_it_holds(
        self, store: Store, reader: Store, size: int
    ) -> None:
        version = holding(a_blob(os.urandom(size), "image/jpeg"))
        await store.add(LAB, version)

        assert await reader.latest(LAB, version.id) == version
        assert await reader.version(LAB, version.id, 1) == version

    async def test_what_readers_see_of_a_version_has_the_documents_that_it_holds(
        self, store: Store
    ) -> None:
        version = holding(a_blob(), a_blob(), response=b"r", parts=b"p")
        await store.add(LAB, version)

        assert await store.latest_public(LAB, version.id) == version.without_internal_fields()

    async def test_several_documents_are_distinguished(self, store: Store) -> None:
        blobs = [a_blob(os.urandom(100 * number), f"text/{number}") for number in range(16)]
        version = holding(*blobs)
        await store.add(LAB, version)

        assert await store.latest(LAB, version.id) == version
        names = [blob.sha256 for blob in blobs]
        assert await whole_blobs(store, LAB, names) == {blob.sha256: blob for blob in blobs}

    @_SIZES
    async def test_a_document_that_a_version_holds_is_found_by_its_name(
        self, store: Store, size: int
    ) -> None:
        blob = a_blob(os.urandom(size))
        await store.add(LAB, holding(blob))

        found = await store.blobs(LAB, [blob.sha256, a_blob().sha256])
        assert [(name, one.data) for name, one in found.items()] == [(blob.sha256, blob.data)]

    async def test_many_documents_of_many_versions_are_found_by_their_names(
        self, store: Store
    ) -> None:
        blobs = {blob.sha256: blob for blob in (a_blob() for _ in range(100))}
        await asyncio.gather(*(store.add(LAB, holding(blob)) for blob in blobs.values()))

        assert await whole_blobs(store, LAB, blobs) == blobs

    async def test_a_part_of_a_document_that_a_version_holds_is_read_alone(
        self, store: Store
    ) -> None:
        blob = a_blob(os.urandom(1_000))
        await store.add(LAB, holding(blob))
        known = (await store.blobs(LAB, [blob.sha256]))[blob.sha256]

        assert await pieces_of(store, known, slice(10, 20)) == [blob.data[10:20]]

    async def test_a_document_that_only_another_tenants_version_holds_is_not_found(
        self, store: Store
    ) -> None:
        blob = a_blob()
        await store.add(OTHER, holding(blob))

        assert await store.blobs(LAB, [blob.sha256]) == {}

    async def test_a_document_of_a_refused_version_is_not_found(self, store: Store) -> None:
        taken, blob = a_version(), a_blob()
        await store.add(LAB, taken)
        refused = replace(taken, documents=(blob.sha256,), attached=(blob,))

        assert not await store.add(LAB, refused)
        assert await store.blobs(LAB, [blob.sha256]) == {}

    async def test_a_document_that_a_later_version_names_is_found_in_the_earlier_one(
        self, store: Store
    ) -> None:
        blob = a_blob()
        first = holding(blob)
        await store.add(LAB, first)
        await store.add(LAB, successor(first, documents=(blob.sha256,), attached=()))

        assert await store.blobs(LAB, [blob.sha256]) == {blob.sha256: blob.info}

    async def test_a_version_may_hold_some_of_its_documents_and_name_others(
        self, store: Store
    ) -> None:
        held, large = a_blob(), a_blob(os.urandom(SMALL_BYTES + 1))
        both = (held.sha256, large.sha256)
        version = replace(holding(held), documents=both)
        await store.add(LAB, version, [large])

        assert await store.latest(LAB, version.id) == version
        assert await store.sweep_blobs(LAB, before=FOREVER) == 0
        assert await whole_blobs(store, LAB, both) == dict(zip(both, (held, large), strict=True))

    async def test_a_document_stays_when_blobs_of_the_same_bytes_are_swept(
        self, store: Store
    ) -> None:
        blob = a_blob()
        await store.add(LAB, holding(blob))
        await keep(store, LAB, [blob])
        await store.sweep_blobs(LAB, before=FOREVER)

        assert await whole_blobs(store, LAB, [blob.sha256]) == {blob.sha256: blob}

    async def test_lists_come_without_the_documents(self, store: Store) -> None:
        version = holding(a_blob(), value=new_id())
        await store.add(LAB, version)
        shown = replace(version, attached=())

        found = (await store.search(LAB, query())).versions
        assert [one.attached for one in found] == [()]
        assert [one.documents for one in found] == [version.documents]
        assert await store.history(LAB, version.id) == [shown]

    async def test_documents_do_not_end_a_list_early(self, store: Store) -> None:
        blob = a_blob(os.urandom(SMALL_BYTES))
        first = holding(blob)
        versions = [replace(first, version=number) for number in range(1, 301)]
        await asyncio.gather(*(store.add(LAB, version) for version in versions))

        assert len(await store.history(LAB, first.id, limit=300)) == 300

    async def test_a_scan_returns_versions_with_the_documents_that_they_hold(
        self, store: Store
    ) -> None:
        version = holding(a_blob(), a_blob())
        await store.add(LAB, version)

        assert await store.scan() == [(LAB, version)]

    async def test_the_documents_that_a_version_holds_count_as_stored(self, store: Store) -> None:
        tenant = new_id()
        version = holding(a_blob(os.urandom(5_000)))
        await store.add(tenant, version)

        assert version.size > 5_000
        await wait_for_stored_bytes(store, tenant, version.size)
