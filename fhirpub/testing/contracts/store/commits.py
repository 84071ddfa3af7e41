"""Tests of adding versions: one insert is the whole commit (ADR 1)."""

from __future__ import annotations

import asyncio
import os
from dataclasses import fields, replace

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import (
    Version,
)
from fhirpub.storage.criteria import (
    EARLIEST,
    LATEST,
    encode,
)
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.store.queries import (
    find_ids,
    query,
)
from fhirpub.testing.contracts.store.records import (
    Reopen,
    a_blob,
    add_all,
    keep,
    whole_blobs,
)
from fhirpub.testing.samples import (
    LAB,
    a_version,
    new_id,
    successor,
)


class CommitContract:
    """Adding a version is one atomic, durable step."""

    async def test_a_version_that_is_new_is_added(self, store: Store) -> None:
        assert await store.add(LAB, a_version()) is True

    async def test_a_key_that_is_taken_is_not_added_again(self, store: Store) -> None:
        first = a_version()
        await store.add(LAB, first)

        assert await store.add(LAB, first) is False

    async def test_a_refused_version_changes_nothing(self, store: Store) -> None:
        first = a_version()
        await store.add(LAB, first)

        await store.add(LAB, replace(first, body=b"other", documents=(a_blob().sha256,)))

        assert await store.version(LAB, first.id, 1) == first

    async def test_of_racing_adds_of_one_key_exactly_one_succeeds(
        self, store: Store, other_store: Store
    ) -> None:
        first = a_version()
        candidates = [replace(first, body=b"%d" % number) for number in range(50)]
        stores = [store, other_store] * 25

        added = await asyncio.gather(
            *(item.add(LAB, version) for item, version in zip(stores, candidates, strict=True))
        )

        assert added.count(True) == 1
        winner = candidates[added.index(True)]
        assert await store.version(LAB, first.id, 1) == winner
        assert await other_store.latest(LAB, first.id) == winner

    async def test_racing_adds_of_different_keys_all_succeed(
        self, store: Store, other_store: Store
    ) -> None:
        versions = [a_version() for _ in range(50)]

        await asyncio.gather(add_all(store, versions[:25]), add_all(other_store, versions[25:]))

        ids = [version.id for version in versions]
        assert await find_ids(store, query(ids=ids, limit=50)) == set(ids)

    async def test_of_racing_updates_to_the_same_version_one_succeeds(
        self, store: Store, other_store: Store
    ) -> None:
        first = a_version()
        await store.add(LAB, first)
        candidates = [successor(first, body=b"%d" % number) for number in range(20)]

        added = await asyncio.gather(
            *(store.add(LAB, candidate) for candidate in candidates[:10]),
            *(other_store.add(LAB, candidate) for candidate in candidates[10:]),
        )

        assert added.count(True) == 1
        assert await other_store.latest(LAB, first.id) == candidates[added.index(True)]

    @pytest.mark.parametrize(
        "changes",
        [
            {"body": bytes(range(256))},
            {"body": os.urandom(1_000_000)},
            {"response": bytes(range(256))},
            {"response": os.urandom(200_000)},
            {"parts": bytes(range(256))},
            {"parts": os.urandom(200_000)},
            {"events": b'[{"id":"1"},{"id":"2"}]'},
            {"digest": bytes(range(256))},
            {"documents": ("ff" * 32, "00" * 32, "0f" * 32)},
            {"value": "Größe 測試 🩺 e\u0301"},
            {"system": "urn:oid:1.2.3 \t'\"|%_\\"},
            {"status": "amended"},
            {"search": encode([("code", "1-8", "http://loinc.org")])},
            {"search": encode([("date", EARLIEST, 5), ("date", 7, LATEST)])},
            {"search": encode([("code", '"[\\,\u0001é', "")])},
            {"type": "Observation"},
            {"created": 1, "updated": 2**52},
            {"version": 2**31},
        ],
        ids="+".join,
    )
    async def test_a_version_comes_back_as_it_was_added(
        self, store: Store, reader: Store, changes: dict[str, object]
    ) -> None:
        version = a_version(**changes)
        await store.add(LAB, version)

        read = await reader.version(LAB, version.id, version.version)

        assert read is not None
        for field in fields(Version):
            assert getattr(read, field.name) == getattr(version, field.name), field.name

    async def test_an_added_version_is_seen_by_everybody_at_once(
        self, store: Store, reader: Store
    ) -> None:
        for _ in range(20):
            version = a_version()
            assert await reader.latest(LAB, version.id) is None
            await store.add(LAB, version)

            assert await reader.latest(LAB, version.id) == version
            assert await reader.version(LAB, version.id, 1) == version
            assert await reader.history(LAB, version.id) == [version]
            assert (await reader.search(LAB, query(ids=[version.id]))).versions == (version,)

    async def test_a_cancelled_caller_does_not_harm_the_others(self, store: Store) -> None:
        versions = [a_version() for _ in range(30)]
        tasks = [asyncio.create_task(store.add(LAB, version)) for version in versions]
        await asyncio.sleep(0)
        for task in tasks[::3]:
            task.cancel()

        results = await asyncio.gather(*tasks, return_exceptions=True)

        others = [result for number, result in enumerate(results) if number % 3]
        assert others == [True] * 20

    async def test_what_was_added_is_there_after_a_restart(
        self, store: Store, reopen: Reopen
    ) -> None:
        version, blob = a_version(response=b"answer", parts=b"parts", events=b"[1]"), a_blob()
        await keep(store, LAB, [blob])
        await store.add(LAB, version)
        await store.stop()

        again = await reopen()

        assert await again.latest(LAB, version.id) == version
        assert await whole_blobs(again, LAB, [blob.sha256]) == {blob.sha256: blob}

    async def test_stop_finishes_what_was_handed_in(self, store: Store, reopen: Reopen) -> None:
        versions = [a_version() for _ in range(50)]
        tasks = [asyncio.create_task(store.add(LAB, version)) for version in versions]
        await asyncio.sleep(0)

        await store.stop()

        assert all(await asyncio.gather(*tasks))
        again = await reopen()
        assert [await again.latest(LAB, version.id) for version in versions] == versions

    async def test_stopping_twice_is_no_trouble(self, store: Store) -> None:
        await store.stop()

        await store.stop()

    async def test_a_stopped_store_is_unavailable(self, store: Store) -> None:
        await store.stop()

        for call in (
            store.add(LAB, a_version()),
            store.latest(LAB, new_id()),
            store.search(LAB, query()),
            keep(store, LAB, [a_blob()]),
            store.tenants(),
            store.check(),
        ):
            with pytest.raises(StoreUnavailable):
                await call

    async def test_a_store_that_works_passes_its_check(self, store: Store) -> None:
        await asyncio.gather(*(store.check() for _ in range(5)))
