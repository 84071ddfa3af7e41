"""Tests of the steps of an erasure: what each reports, and what it leaves alone (ADR 36)."""

from __future__ import annotations

from dataclasses import replace

from fhirpub.storage.erasure.contract import ErasedStep
from fhirpub.storage.erasure.tombstones import is_erased
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.erasure.content import a_tombstone, erase
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.contracts.store.records import a_blob
from fhirpub.testing.samples import LAB, OTHER, a_version, new_id, successor


class ErasureStepContract:
    """Steps add up to the whole, and go no further than they must."""

    async def test_steps_report_all_that_they_erase(self, store: Store) -> None:
        first = a_version(body=b"1" * 500, members=tuple(a_result() for _ in range(3)))
        second = successor(first, body=b"2" * 700, members=())
        tombstone = a_tombstone(second, *first.members)
        for version in (first, second, tombstone):
            assert await store.add(LAB, version)

        steps = []
        while step := await store.erase_versions(LAB, tombstone):
            steps.append(step)

        assert sum(step.versions for step in steps) == 2
        assert sum(step.members for step in steps) == 3
        assert sum(step.size for step in steps) == first.size + second.size

    async def test_a_step_that_finds_nothing_reports_nothing(self, store: Store) -> None:
        first = a_version()
        await store.add(LAB, first)

        tombstone = await erase(store, first)

        assert await store.erase_versions(LAB, tombstone) == ErasedStep()

    async def test_version_1_is_erased_first(self, store: Store) -> None:
        first = a_version()
        second = successor(first)
        tombstone = a_tombstone(second)
        for version in (second, first, tombstone):
            assert await store.add(LAB, version)

        await store.erase_versions(LAB, tombstone)

        found = await store.version(LAB, first.id, 1)
        assert found is not None
        assert is_erased(found)

    async def test_what_was_registered_after_a_tombstone_stays(self, store: Store) -> None:
        first = a_version()
        await store.add(LAB, first)
        tombstone = await erase(store, first, allows_reuse=True)
        again = replace(first, version=3, body=b'{"again":true}')
        await store.add(LAB, again)

        assert not await store.erase_versions(LAB, tombstone)
        assert await store.latest(LAB, first.id) == again

    async def test_another_resource_stays(self, store: Store) -> None:
        first, other = a_version(), a_version()
        for version in (first, other):
            await store.add(LAB, version)

        await erase(store, first)

        assert await store.latest(LAB, other.id) == other

    async def test_documents_that_another_resource_has_do_not_count_as_gone(
        self, store: Store
    ) -> None:
        own, shared = a_blob(), a_blob()
        names = (own.sha256, shared.sha256)
        first = a_version(documents=names, attached=(own, shared))
        other = a_version(documents=(shared.sha256,), attached=(shared,))
        for version in (first, other):
            await store.add(LAB, version)

        await erase(store, first)

        assert await store.erase_documents(LAB, names) == 1
        assert (await store.blobs(LAB, names)).keys() == {shared.sha256}

    async def test_documents_of_another_tenant_are_not_shared(self, store: Store) -> None:
        blob = a_blob()
        await store.add(OTHER, a_version(documents=(blob.sha256,)), [blob])

        assert await store.shared_documents(LAB, [blob.sha256], besides=[]) == frozenset()

    async def test_of_the_documents_of_others_only_those_that_are_named_are_shared(
        self, store: Store
    ) -> None:
        one, two = a_blob(), a_blob()
        names = (one.sha256, two.sha256)
        await store.add(LAB, a_version(documents=names), [one, two])

        shared = await store.shared_documents(LAB, [one.sha256], besides=[new_id()])

        assert shared == {one.sha256}

    async def test_documents_of_several_resources_that_do_not_count_are_not_shared(
        self, store: Store
    ) -> None:
        blob = a_blob()
        versions = [a_version(documents=(blob.sha256,)) for _ in range(2)]
        for version in versions:
            await store.add(LAB, version, [blob])
        ids = [version.id for version in versions]

        assert await store.shared_documents(LAB, [blob.sha256], besides=ids) == frozenset()
        assert await store.shared_documents(LAB, [blob.sha256], besides=ids[:1]) == {blob.sha256}
