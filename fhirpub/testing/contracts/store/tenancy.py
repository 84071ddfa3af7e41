"""Tests of the isolation of tenants."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.storage.store import Store
from fhirpub.testing.contracts.store.queries import (
    find_ids,
    match,
    query,
)
from fhirpub.testing.contracts.store.records import (
    a_blob,
    keep,
    whole_blobs,
)
from fhirpub.testing.samples import (
    FOREVER,
    LAB,
    OTHER,
    SYSTEM,
    a_version,
    new_id,
    successor,
)


class TenancyContract:
    """Data of another tenant cannot be distinguished from data that does not exist."""

    @pytest.mark.parametrize("versions", [1, 2])
    async def test_a_version_is_not_another_tenants_to_read(
        self, store: Store, versions: int
    ) -> None:
        version = a_version()
        await store.add(LAB, version)
        if versions == 2:
            await store.add(LAB, successor(version))

        assert await store.latest(OTHER, version.id) is None
        assert await store.latest_public(OTHER, version.id) is None
        assert await store.version(OTHER, version.id, 1) is None
        assert await store.history(OTHER, version.id) == []

    @pytest.mark.parametrize("form", ["type", "ids", "system", "value", "pair", "mixed"])
    async def test_a_search_stays_within_the_tenant(self, store: Store, form: str) -> None:
        mine = a_version(value="same")
        theirs = a_version(value="same")
        await store.add(LAB, mine)
        await store.add(OTHER, theirs)
        wanted = {
            "type": query(),
            "ids": query(ids=[mine.id, theirs.id]),
            "system": query(match(SYSTEM)),
            "value": query(match(None, "same")),
            "pair": query(match(SYSTEM, "same")),
            "mixed": query(match(SYSTEM) + match(None, "same")),
        }[form]

        assert await find_ids(store, wanted, LAB) == {mine.id}
        assert await find_ids(store, wanted, OTHER) == {theirs.id}
        assert await find_ids(store, wanted, new_id()) == set()

    async def test_a_taken_key_is_refused_to_another_tenant_and_stays_hidden(
        self, store: Store
    ) -> None:
        version = a_version()
        await store.add(LAB, version)

        assert await store.add(OTHER, replace(version, body=b"theirs")) is False
        assert await store.latest(OTHER, version.id) is None
        assert await store.latest(LAB, version.id) == version

    async def test_blobs_are_the_tenants_own(self, store: Store) -> None:
        blob = a_blob()
        await keep(store, LAB, [blob])

        assert await store.blobs(OTHER, [blob.sha256]) == {}

    async def test_the_same_bytes_of_two_tenants_are_kept_apart(self, store: Store) -> None:
        blob = a_blob()
        await keep(store, LAB, [blob])
        await keep(store, OTHER, [replace(blob, content_type="text/plain")])

        assert await whole_blobs(store, LAB, [blob.sha256]) == {blob.sha256: blob}
        assert (await store.blobs(OTHER, [blob.sha256]))[blob.sha256].content_type == "text/plain"

    async def test_a_sweep_stays_within_the_tenant(self, store: Store) -> None:
        blob = a_blob()
        await keep(store, LAB, [blob])

        assert await store.sweep_blobs(OTHER, before=FOREVER) == 0
        assert await whole_blobs(store, LAB, [blob.sha256])

    @pytest.mark.parametrize("added", ["before", "after"])
    async def test_another_tenants_version_does_not_keep_a_blob(
        self, store: Store, added: str
    ) -> None:
        blob = a_blob()
        steps = [
            keep(store, LAB, [blob]),
            store.add(OTHER, a_version(documents=(blob.sha256,))),
        ]
        for step in steps if added == "before" else steps[::-1]:
            await step

        assert await store.sweep_blobs(LAB, before=FOREVER) == 1
