"""Tests of the steps in which resources are erased, and of what they leave alone (ADR 36)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.storage.contract import Version
from fhirpub.storage.erasure.tombstones import is_emptied, is_erased
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.erasure.content import a_tombstone, erase
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.contracts.store.records import a_blob
from fhirpub.testing.samples import LAB, OTHER, a_version, new_id, successor


async def with_members(store: Store, count: int) -> tuple[Version, Version]:
    """Add a report with members, and the tombstone that erases it.

    Args:
        store: The store.
        count: The number of members.

    Returns:
        The report, and its tombstone.
    """
    first = a_version(members=tuple(a_result() for _ in range(count)))
    assert await store.add(LAB, first)
    tombstone = a_tombstone(first, *first.members)
    assert await store.add(LAB, tombstone)
    return first, tombstone


async def are_emptied(store: Store, versions: tuple[Version, ...]) -> bool:
    """Return whether nothing is left of any of some versions."""
    found = [await store.version(LAB, each.id, each.version) for each in versions]
    return all(each is not None and is_emptied(each) for each in found)


class ErasureStepContract:
    """An erasure is made of steps, of which each is counted and none depends on another."""

    async def test_the_steps_count_each_version_and_member_once(self, store: Store) -> None:
        first = a_version(members=tuple(a_result() for _ in range(23)))
        second = successor(first, members=())
        await store.add(LAB, first)
        await store.add(LAB, second)
        tombstone = a_tombstone(second, *first.members)
        await store.add(LAB, tombstone)

        steps = []
        while step := await store.erase_versions(LAB, tombstone):
            steps.append(step)

        assert sum(step.versions for step in steps) == 2
        assert sum(step.members for step in steps) == 23

    async def test_members_are_erased_in_whatever_order_their_versions_were_stored(
        self, store: Store
    ) -> None:
        first = a_version(members=tuple(a_result() for _ in range(23)))
        second = successor(first, members=tuple(a_result() for _ in range(3)))
        await store.add(LAB, second)
        await store.add(LAB, first)
        tombstone = a_tombstone(second, *first.members, *second.members)
        await store.add(LAB, tombstone)

        while await store.erase_versions(LAB, tombstone):
            pass

        assert await are_emptied(store, (*first.members, *second.members))

    async def test_a_step_that_finds_nothing_erases_nothing(self, store: Store) -> None:
        _first, tombstone = await with_members(store, 1)
        while await store.erase_versions(LAB, tombstone):
            pass

        step = await store.erase_versions(LAB, tombstone)

        assert (step.versions, step.members, step.size) == (0, 0, 0)

    async def test_the_bytes_that_a_step_erases_are_counted(self, store: Store) -> None:
        first = a_version(body=b"b" * 50_000)
        await store.add(LAB, first)
        tombstone = a_tombstone(first)
        await store.add(LAB, tombstone)

        step = await store.erase_versions(LAB, tombstone)

        assert 49_000 < step.size <= first.size

    async def test_erasures_of_two_resources_may_take_turns(self, store: Store) -> None:
        one, first_tombstone = await with_members(store, 35)
        other, second_tombstone = await with_members(store, 35)

        going_on = True
        while going_on:
            going_on = bool(await store.erase_versions(LAB, first_tombstone))
            going_on |= bool(await store.erase_versions(LAB, second_tombstone))

        assert await are_emptied(store, (one, *one.members, other, *other.members))

    async def test_versions_above_the_tombstone_stay(self, store: Store) -> None:
        first = a_version()
        await store.add(LAB, first)
        tombstone = await erase(store, first, allows_reuse=True)
        again = replace(first, version=3, body=b'{"again":1}')
        await store.add(LAB, again)

        assert not await store.erase_versions(LAB, tombstone)
        assert await store.latest(LAB, first.id) == again

    async def test_other_resources_stay(self, store: Store) -> None:
        kept = a_version(members=(a_result(),))
        await store.add(LAB, kept)
        first, tombstone = await with_members(store, 2)
        later = a_version(members=(a_result(),))
        await store.add(LAB, later)

        while await store.erase_versions(LAB, tombstone):
            pass

        assert await are_emptied(store, (first, *first.members))
        for each in (kept, later):
            assert await store.latest(LAB, each.id) == replace(each, members=())
            (member,) = each.members
            assert await store.latest(LAB, member.id) == member

    @pytest.mark.parametrize("count", [0, 1, 2])
    async def test_documents_are_shared_unless_only_named_resources_have_them(
        self, store: Store, count: int
    ) -> None:
        blobs = [a_blob(), a_blob()]
        names = tuple(blob.sha256 for blob in blobs)
        versions = [a_version(documents=names[:number]) for number in (1, 2)]
        for version in versions:
            await store.add(LAB, version, blobs[: len(version.documents)])
        besides = [version.id for version in versions[::-1]][:count]

        shared = await store.shared_documents(LAB, names, besides=[*besides, new_id()])

        assert shared == {*names[: 2 - count]}
        assert await store.shared_documents(LAB, [], besides=besides) == frozenset()

    async def test_documents_of_another_tenant_are_not_shared(self, store: Store) -> None:
        blob = a_blob()
        await store.add(OTHER, a_version(documents=(blob.sha256,)), [blob])

        assert await store.shared_documents(LAB, [blob.sha256], besides=[]) == frozenset()

    async def test_documents_of_another_tenant_are_not_deleted(self, store: Store) -> None:
        blob = a_blob()
        await store.add(OTHER, a_version(documents=(blob.sha256,)), [blob])

        assert await store.erase_documents(LAB, [blob.sha256]) == 1
        assert (await store.blobs(OTHER, [blob.sha256])).keys() == {blob.sha256}

    async def test_a_document_that_is_still_shared_is_not_gone(self, store: Store) -> None:
        shared, unknown = a_blob(), a_blob()
        first = a_version(documents=(shared.sha256,))
        await store.add(LAB, first, [shared])
        await store.add(LAB, a_version(documents=(shared.sha256,)), [shared])
        await erase(store, first)

        assert await store.erase_documents(LAB, [shared.sha256, unknown.sha256]) == 1

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

    async def test_of_the_documents_of_others_only_those_that_are_named_are_shared(
        self, store: Store
    ) -> None:
        one, two = a_blob(), a_blob()
        names = (one.sha256, two.sha256)
        await store.add(LAB, a_version(documents=names), [one, two])

        shared = await store.shared_documents(LAB, [one.sha256], besides=[new_id()])

        assert shared == {one.sha256}
