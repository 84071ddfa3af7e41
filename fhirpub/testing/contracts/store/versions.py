"""Tests of reading versions."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from fhirpub.storage.contract import (
    MAX_PAGE_BYTES,
)
from fhirpub.storage.criteria import (
    encode,
)
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.contracts.store.queries import query
from fhirpub.testing.contracts.store.quotas import wait_for_stored_bytes
from fhirpub.testing.contracts.store.records import (
    add_all,
)
from fhirpub.testing.samples import (
    LAB,
    a_version,
    new_id,
    successor,
)


class VersionContract:
    """Reads return the newest version, one version or the history, and are never stale."""

    async def test_what_was_never_added_is_not_there(self, store: Store) -> None:
        await store.add(LAB, a_version())

        assert await store.latest(LAB, new_id()) is None
        assert await store.version(LAB, new_id(), 1) is None
        assert await store.history(LAB, new_id()) == []

    @pytest.mark.parametrize("version", [-1, 0, 2, 2**63, 10**30])
    async def test_a_version_that_does_not_exist_is_none(self, store: Store, version: int) -> None:
        first = a_version()
        await store.add(LAB, first)

        assert await store.version(LAB, first.id, version) is None

    async def test_each_version_can_be_read(self, store: Store) -> None:
        first = a_version()
        second = successor(first, status="amended", body=b"2")
        await store.add(LAB, first)
        await store.add(LAB, second)

        assert await store.version(LAB, first.id, 1) == first
        assert await store.version(LAB, first.id, 2) == second

    @pytest.mark.parametrize("size", [1_000_000, 1_572_858, 1_572_859, 3_200_000])
    async def test_a_version_of_megabytes_comes_back_whichever_way_it_is_read(
        self, store: Store, reader: Store, size: int
    ) -> None:
        member = a_result(body=os.urandom(size))
        body, response, parts = os.urandom(size), b"r" * size, b"p" * 1_000_000
        alone = a_version(body=body, response=response, parts=parts)
        await store.add(LAB, replace(alone, members=(member,)))

        assert await reader.latest(LAB, alone.id) == alone
        assert await reader.latest_public(LAB, alone.id) == alone.without_internal_fields()
        assert await reader.version(LAB, alone.id, 1) == alone
        assert await reader.history(LAB, alone.id) == [alone]
        assert [one.body for one in (await reader.search(LAB, query())).versions] == [alone.body]
        assert await reader.latest(LAB, member.id) == member
        assert await reader.scan() == [(LAB, replace(alone, members=(member,)))]

    async def test_versions_of_megabytes_count_as_stored_once(self, store: Store) -> None:
        tenant = new_id()
        version = a_version(body=os.urandom(3_200_000))
        await store.add(tenant, version)

        await wait_for_stored_bytes(store, tenant, version.size)

    async def test_the_latest_version_is_never_stale(
        self, store: Store, other_store: Store
    ) -> None:
        current = a_version()
        await store.add(LAB, current)

        for number in range(30):
            current = successor(current, body=b"x" * (number * 5_000))
            await (store, other_store)[number % 2].add(LAB, current)

            assert await store.latest(LAB, current.id) == current
            assert await other_store.latest(LAB, current.id) == current

    async def test_what_is_shown_is_the_latest_version_without_what_readers_do_not_see(
        self, store: Store, other_store: Store
    ) -> None:
        current = a_version(digest=b"d")
        await store.add(LAB, current)
        assert await store.latest_public(LAB, current.id) == replace(current, digest=b"")

        for number in range(10):
            current = successor(current, body=b"x" * (number * 15_000))
            await (store, other_store)[number % 2].add(LAB, current)

            assert await store.latest_public(LAB, current.id) == current.without_internal_fields()
            assert (
                await other_store.latest_public(LAB, current.id)
                == current.without_internal_fields()
            )

    async def test_of_a_first_version_what_came_with_it_and_its_answer_are_not_shown(
        self, store: Store
    ) -> None:
        told = b'[{"id":"a.1.1","type":"a.created","data":{}}]'
        values = encode([("code", "1", "")])
        version = a_version(response=b"{}", parts=b"{}", events=told, search=values)
        await store.add(LAB, version)

        found = await store.latest_public(LAB, version.id)

        assert found == replace(version, response=b"", parts=b"", events=b"[]", search=b"[]")

    async def test_nothing_is_shown_of_what_is_not_there(self, store: Store) -> None:
        assert await store.latest_public(LAB, new_id()) is None

    async def test_the_latest_version_is_the_highest_number_and_not_text(
        self, store: Store
    ) -> None:
        first = a_version()
        versions = [replace(first, version=number) for number in range(1, 12)]
        await add_all(store, versions)

        latest = await store.latest(LAB, first.id)

        assert latest is not None
        assert latest.version == 11

    @pytest.mark.parametrize(
        ("below", "limit", "expected"),
        [
            (None, 20, [12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]),
            (None, 3, [12, 11, 10]),
            (10, 3, [9, 8, 7]),
            (3, 20, [2, 1]),
            (1, 20, []),
            (0, 20, []),
            (99, 2, [12, 11]),
            (10**30, 1, [12]),
            (None, 0, []),
        ],
    )
    async def test_history_is_newest_first_below_a_version_and_up_to_a_limit(
        self, store: Store, below: int | None, limit: int, expected: list[int]
    ) -> None:
        first = a_version()
        await add_all(store, [replace(first, version=number) for number in range(1, 13)])
        await add_all(store, [a_version() for _ in range(5)])

        history = await store.history(LAB, first.id, below=below, limit=limit)

        assert [version.version for version in history] == expected
        assert {version.id for version in history} <= {first.id}

    async def test_a_history_of_large_versions_is_shorter(self, store: Store) -> None:
        first = a_version(body=b"x" * (MAX_PAGE_BYTES // 2))
        for number in range(1, 5):
            await store.add(LAB, replace(first, version=number))

        history = await store.history(LAB, first.id, limit=100)

        assert [version.version for version in history] in ([4], [4, 3])
