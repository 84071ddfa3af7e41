"""Tests of scanning and counting all versions."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
)

from fhirpub.storage.contract import (
    MAX_PAGE_BYTES,
    Version,
)
from fhirpub.storage.store import Store
from fhirpub.testing.samples import (
    LAB,
    OTHER,
    a_version,
    successor,
)


class AdminContract:
    """Scans and counts cover all versions of all tenants."""

    async def test_a_walk_meets_every_version_of_every_tenant_in_order(
        self, store: Store, reader: Store
    ) -> None:
        first, other = a_version(), a_version()
        await store.add(LAB, first)
        await store.add(OTHER, other)
        await store.add(LAB, successor(first))
        ours = {first.id, other.id}

        met = [(tenant, version) async for tenant, version in _walk(reader, limit=2)]

        keys = [(version.id, version.version) for _tenant, version in met]
        assert keys == sorted(set(keys))
        assert {(tenant, version) for tenant, version in met if version.id in ours} == {
            (LAB, first),
            (LAB, successor(first)),
            (OTHER, other),
        }

    async def test_a_walk_ends_with_a_page_that_is_not_full(self, store: Store) -> None:
        await store.add(LAB, a_version())

        assert await store.scan(after=("g", 0)) == []

    async def test_no_page_of_a_walk_holds_many_large_versions(self, store: Store) -> None:
        large = [a_version(body=b"x" * (MAX_PAGE_BYTES // 2)) for _ in range(3)]
        for version in large:
            await store.add(LAB, version)
        ours = {version.id for version in large}

        after, held = ("", 0), list[int]()
        while page := await store.scan(after=after, limit=1000):
            held.append(len([version for _tenant, version in page if version.id in ours]))
            after = (page[-1][1].id, page[-1][1].version)

        assert max(held) < sum(held) == 3

    async def test_a_store_is_the_same_however_often_it_is_opened(
        self, store: Store, other_store: Store
    ) -> None:
        assert await store.identity() == await other_store.identity()

    async def test_a_version_more_is_counted(self, store: Store) -> None:
        before = await store.count()
        version = a_version()

        await store.add(LAB, version)
        await store.add(LAB, successor(version))

        assert await store.count() == before + 2


async def _walk(store: Store, *, limit: int) -> AsyncIterator[tuple[str, Version]]:
    after = ("", 0)
    while page := await store.scan(after=after, limit=limit):
        for tenant, version in page:
            yield tenant, version
            after = (version.id, version.version)
