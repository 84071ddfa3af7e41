"""Tests of documents: their bytes, their pieces, and the sweep (ADR 3)."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.contract import (
    MAX_CHUNK_BYTES,
    SMALL_BYTES,
)
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.store.records import (
    a_blob,
    keep,
    pieces_of,
    store_blob,
    whole_blobs,
)
from fhirpub.testing.samples import (
    FOREVER,
    LAB,
    OTHER,
    a_version,
    successor,
)

_SIZES = [
    *(0, 1, 1_000, 65_536, 65_537, 261_119, 261_120, 261_121, 1_044_481),
    *(1_572_858, 1_572_859, 5 * 1024 * 1024),
]
"""Sizes around the limit of small documents, and around the ends of pieces in the engines."""


_OF_ANY_SIZE = pytest.mark.parametrize("size", [1_000, 300_000, 2_000_000])


class BlobContract:
    """Documents are returned byte for byte, and stay while a version refers to them."""

    @pytest.mark.parametrize("size", _SIZES)
    async def test_a_blob_comes_back_as_it_was_added(
        self, store: Store, reader: Store, size: int
    ) -> None:
        blob = a_blob(os.urandom(size), "image/jpeg")
        await keep(store, LAB, [blob])

        assert await whole_blobs(reader, LAB, [blob.sha256]) == {blob.sha256: blob}

    async def test_blobs_of_all_sizes_that_come_at_the_same_time_are_all_kept(
        self, store: Store
    ) -> None:
        blobs = {blob.sha256: blob for blob in (a_blob(os.urandom(size)) for size in _SIZES)}
        versions = [a_version(documents=(blob,)) for blob in blobs]

        await asyncio.gather(
            *(store.add(LAB, version, [blobs[version.documents[0]]]) for version in versions)
        )

        assert await whole_blobs(store, LAB, blobs) == blobs

    @pytest.mark.parametrize("size", _SIZES)
    async def test_what_is_known_of_a_blob_has_its_bytes_only_if_they_are_few(
        self, store: Store, size: int
    ) -> None:
        blob = a_blob(os.urandom(size))
        known = await store_blob(store, blob)

        assert known.size == size
        assert known.data == (blob.data if size <= SMALL_BYTES else None)

    @pytest.mark.parametrize("size", _SIZES)
    async def test_a_blob_is_read_in_pieces_that_base64_can_put_together(
        self, store: Store, size: int
    ) -> None:
        blob = a_blob(os.urandom(size))
        known = await store_blob(store, blob)

        pieces = await pieces_of(store, known, slice(0, size))

        assert b"".join(pieces) == blob.data
        assert all(len(piece) <= MAX_CHUNK_BYTES for piece in pieces)
        assert all(len(piece) % 3 == 0 for piece in pieces[:-1])

    @pytest.mark.parametrize(
        ("start", "stop"),
        [
            *((0, 1), (5_000_000, 5_000_001), (0, 5_000_001), (7, 7), (100, 4_999_000)),
            *((261_119, 261_121), (261_120, 522_240), (1_044_480, 1_044_481), (1, 2_088_961)),
            *((524_285, 524_287), (1_572_857, 1_572_859), (1_572_858, 3_145_717)),
        ],
    )
    async def test_a_part_of_a_blob_is_read_by_itself(
        self, store: Store, start: int, stop: int
    ) -> None:
        blob = a_blob(bytes(range(256)) * 19_531 + os.urandom(65))
        known = await store_blob(store, blob)
        assert known.size == 5_000_001

        pieces = await pieces_of(store, known, slice(start, stop))

        assert b"".join(pieces) == blob.data[start:stop]

    async def test_pieces_of_a_blob_are_read_by_its_own_tenant_alone(self, store: Store) -> None:
        known = await store_blob(store, a_blob(os.urandom(100_000)))

        with pytest.raises(StoreUnavailable):
            await pieces_of(store, known, slice(0, 100_000), tenant=OTHER)

    async def test_a_blob_that_is_swept_has_no_pieces_any_more(self, store: Store) -> None:
        known = await store_blob(store, a_blob(os.urandom(100_000)))
        await store.sweep_blobs(LAB, before=FOREVER)

        with pytest.raises(StoreUnavailable):
            await pieces_of(store, known, slice(0, 100_000))

    async def test_several_blobs_are_read_at_once_and_unknown_ones_left_out(
        self, store: Store
    ) -> None:
        blobs = [a_blob(os.urandom(40_000)) for _ in range(5)]
        await keep(store, LAB, blobs)
        names = [blob.sha256 for blob in blobs]

        read = await whole_blobs(store, LAB, [*names[:4], a_blob().sha256])

        assert read == {blob.sha256: blob for blob in blobs[:4]}

    async def test_a_version_may_bring_thousands_of_blobs(self, store: Store) -> None:
        blobs = [a_blob(b"%d" % number) for number in range(10_000)]
        names = tuple(blob.sha256 for blob in blobs)
        version = a_version(documents=names)

        added = await asyncio.gather(store.add(LAB, version, blobs), store.add(LAB, a_version()))

        assert all(added)
        assert await store.latest(LAB, version.id) == version
        assert len(await store.blobs(LAB, names)) == 10_000
        assert await store.sweep_blobs(LAB, before=FOREVER) == 0

    async def test_no_names_are_no_blobs(self, store: Store) -> None:
        assert await store.blobs(LAB, []) == {}

    async def test_adding_no_blobs_is_no_trouble(self, store: Store) -> None:
        await keep(store, LAB, [])

    @_OF_ANY_SIZE
    async def test_the_same_bytes_again_change_nothing(self, store: Store, size: int) -> None:
        blob = a_blob(os.urandom(size))
        await keep(store, LAB, [blob])

        await keep(store, LAB, [replace(blob, content_type="text/plain")])

        assert await whole_blobs(store, LAB, [blob.sha256]) == {blob.sha256: blob}

    @_OF_ANY_SIZE
    async def test_racing_adds_of_the_same_bytes_all_succeed(
        self, store: Store, other_store: Store, size: int
    ) -> None:
        blob = a_blob(os.urandom(size))

        await asyncio.gather(
            *(keep(item, LAB, [blob]) for item in (store, other_store) for _ in range(10))
        )

        assert await whole_blobs(store, LAB, [blob.sha256]) == {blob.sha256: blob}

    async def test_a_blob_that_no_version_names_is_swept(self, store: Store) -> None:
        blobs = [a_blob() for _ in range(40)]
        await keep(store, LAB, blobs)

        assert await store.sweep_blobs(LAB, before=FOREVER) == 40
        assert await store.blobs(LAB, [blob.sha256 for blob in blobs]) == {}

    async def test_hundreds_of_blobs_are_swept_at_once(self, store: Store) -> None:
        blobs = [a_blob() for _ in range(250)]
        await keep(store, LAB, blobs)

        assert await store.sweep_blobs(LAB, before=FOREVER) == 250
        assert await store.blobs(LAB, [blob.sha256 for blob in blobs]) == {}

    async def test_a_sweep_goes_on_behind_many_blobs_that_are_named(self, store: Store) -> None:
        named, unnamed = [a_blob() for _ in range(120)], a_blob()
        names = tuple(blob.sha256 for blob in named)
        await store.add(LAB, a_version(documents=names), named)
        await asyncio.sleep(0.002)
        await keep(store, LAB, [unnamed])

        assert await store.sweep_blobs(LAB, before=FOREVER) == 1
        assert (await store.blobs(LAB, [*names, unnamed.sha256])).keys() == {*names}

    async def test_sweeping_again_finds_nothing(self, store: Store) -> None:
        await keep(store, LAB, [a_blob()])
        await store.sweep_blobs(LAB, before=FOREVER)

        assert await store.sweep_blobs(LAB, before=FOREVER) == 0

    async def test_a_blob_that_a_version_names_is_kept(self, store: Store) -> None:
        named, unnamed = a_blob(), a_blob()
        await keep(store, LAB, [named, unnamed])
        await store.add(LAB, a_version(documents=(named.sha256,)))

        assert await store.sweep_blobs(LAB, before=FOREVER) == 1
        assert set(await store.blobs(LAB, [named.sha256, unnamed.sha256])) == {named.sha256}

    async def test_a_blob_that_only_an_old_version_names_is_kept(self, store: Store) -> None:
        blob = a_blob()
        first = a_version(documents=(blob.sha256,))
        await keep(store, LAB, [blob])
        await store.add(LAB, first)
        await store.add(LAB, successor(first, documents=()))

        assert await store.sweep_blobs(LAB, before=FOREVER) == 0

    async def test_a_blob_that_came_after_the_version_that_names_it_is_kept(
        self, store: Store
    ) -> None:
        blob = a_blob()
        await store.add(LAB, a_version(documents=(blob.sha256,)))
        await keep(store, LAB, [blob])

        assert await store.sweep_blobs(LAB, before=FOREVER) == 0

    async def test_a_version_that_was_refused_keeps_no_blob(self, store: Store) -> None:
        blob, taken = a_blob(), a_version()
        await keep(store, LAB, [blob])
        await store.add(LAB, taken)
        await store.add(LAB, replace(taken, documents=(blob.sha256,)))

        assert await store.sweep_blobs(LAB, before=FOREVER) == 1

    async def test_a_fresh_blob_is_not_swept(self, store: Store) -> None:
        moment = now_ms()
        await keep(store, LAB, [a_blob()])

        assert await store.sweep_blobs(LAB, before=moment) == 0

    @_OF_ANY_SIZE
    async def test_a_blob_added_again_counts_as_fresh(
        self, store: Store, other_store: Store, size: int
    ) -> None:
        blob = a_blob(os.urandom(size))
        await keep(store, LAB, [blob])
        await asyncio.sleep(0.005)
        moment = now_ms()
        await keep(other_store, LAB, [blob])

        assert await store.sweep_blobs(LAB, before=moment) == 0
        assert await store.sweep_blobs(LAB, before=FOREVER) == 1

    @_OF_ANY_SIZE
    async def test_a_swept_blob_can_be_added_again(self, store: Store, size: int) -> None:
        blob = a_blob(os.urandom(size))
        await keep(store, LAB, [blob])
        await store.sweep_blobs(LAB, before=FOREVER)

        await keep(store, LAB, [blob])

        assert await whole_blobs(store, LAB, [blob.sha256]) == {blob.sha256: blob}

    @_OF_ANY_SIZE
    async def test_no_sweep_takes_a_document_from_a_report(
        self, store: Store, other_store: Store, size: int
    ) -> None:
        blob = a_blob(os.urandom(size))
        await keep(store, LAB, [blob])  # earlier, by a request that failed afterwards
        await asyncio.sleep(0.005)
        grace = now_ms()

        async def publish() -> None:
            await keep(store, LAB, [blob])
            assert await store.add(LAB, a_version(documents=(blob.sha256,)))

        async def sweep() -> None:
            for _ in range(10):
                await other_store.sweep_blobs(LAB, before=grace)

        await asyncio.gather(sweep(), publish(), sweep())

        assert await whole_blobs(store, LAB, [blob.sha256]) == {blob.sha256: blob}
