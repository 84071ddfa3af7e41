"""Tests of erased content: it goes, keys stay, and nothing else is touched (ADR 36)."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.storage.contract import Version
from fhirpub.storage.criteria import encode
from fhirpub.storage.erasure.contract import Erasure
from fhirpub.storage.erasure.tombstones import (
    Tombstone,
    fhir_type,
    husk_of,
    is_erased,
    member_body,
    tombstone_of,
)
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.store.members import a_result, results
from fhirpub.testing.contracts.store.queries import find_ids, has, match, query, token, wanting
from fhirpub.testing.contracts.store.quotas import wait_for_stored_bytes
from fhirpub.testing.contracts.store.records import a_blob
from fhirpub.testing.samples import LAB, OTHER, REPORT, SYSTEM, a_version, new_id, successor

_AT = 1_800_000_000_000


def a_tombstone(newest: Version, *members: Version, **changes: Any) -> Version:
    """Return the version that erases a resource.

    Args:
        newest: Its newest version.
        *members: A version of each of its members.
        **changes: The fields of the tombstone that differ from the sample.

    Returns:
        The tombstone, to be added.
    """
    number = newest.version + 1
    usual: dict[str, Any] = {"version": number, "at": _AT, "operator": "eve", "reason": "order 7"}
    tombstone = Tombstone(**(usual | changes))
    one = husk_of(replace(newest, version=number, updated=_AT), tombstone)
    husks = [
        husk_of(replace(each, version=number, updated=_AT), tombstone.of_member())
        for each in members
    ]
    return replace(one, members=tuple(husks))


async def erase(store: Store, newest: Version, *members: Version, **changes: Any) -> Version:
    """Erase a resource with its documents, and return its tombstone.

    Args:
        store: The store.
        newest: The newest version of the resource.
        *members: A version of each of its members.
        **changes: The fields of the tombstone that differ from the sample.
    """
    tombstone = a_tombstone(newest, *members, **changes)
    assert await store.add(LAB, tombstone)
    while await store.erase_versions(LAB, tombstone):
        pass
    return tombstone


def an_erasure(**changes: Any) -> Erasure:
    """Return an order to erase a report.

    Args:
        **changes: The fields that differ from the sample.
    """
    usual = Erasure(
        tenant=LAB, type=REPORT, id=new_id(), ordered=_AT, operator="eve", reason="order 7"
    )
    return replace(usual, **changes)


class ErasedContentContract:
    """What is erased is in no answer of the store, and its keys are taken for ever."""

    async def test_the_tombstone_is_the_newest_version(self, store: Store, reader: Store) -> None:
        first = a_version(response=b"first", digest=b"d" * 32, parts=b'{"patient":{}}')
        await store.add(LAB, first)
        await store.add(LAB, successor(first))

        tombstone = await erase(store, successor(first))

        for found in (
            await reader.latest(LAB, first.id),
            await reader.latest_public(LAB, first.id),
            await reader.version(LAB, first.id, 3),
        ):
            assert found == tombstone
            assert is_erased(found)
            assert fhir_type(found.type) == REPORT
        assert tombstone_of(tombstone) == Tombstone(
            version=3, at=_AT, operator="eve", reason="order 7", allows_reuse=False
        )

    async def test_of_an_erased_version_only_the_key_stays(
        self, store: Store, reader: Store
    ) -> None:
        first = a_version(
            response=b"first",
            digest=b"d" * 32,
            parts=b'{"patient":{}}',
            events=b'[{"id":"x","type":"t","data":{}}]',
            search=encode([("status", "final", "")]),
        )
        await store.add(LAB, first)

        tombstone = await erase(store, first)

        husk = await reader.version(LAB, first.id, 1)
        assert husk == husk_of(replace(first, audit=b""), tombstone_of(tombstone))
        assert await reader.history(LAB, first.id) == [tombstone, husk]

    async def test_the_keys_of_erased_versions_stay_taken(
        self, store: Store, other_store: Store
    ) -> None:
        first = a_version()
        await store.add(LAB, first)

        await erase(store, first)

        assert not await other_store.add(LAB, first)
        assert not await other_store.add(LAB, successor(first))

    async def test_of_a_tombstone_and_an_update_one_is_added(
        self, store: Store, other_store: Store
    ) -> None:
        first = a_version()
        await store.add(LAB, first)

        assert await other_store.add(LAB, successor(first))
        assert not await store.add(LAB, a_tombstone(first))

    async def test_no_search_finds_an_erased_resource(self, store: Store, reader: Store) -> None:
        first = a_version(search=encode([("status", "final", ""), ("date", 5, 5)]))
        kept = a_version(search=encode([("status", "final", "")]))
        for version in (first, kept):
            await store.add(LAB, version)

        await erase(store, first)

        searches = [
            query(),
            replace(query(), every_version=True),
            query(ids=[first.id, kept.id]),
            query(ids=[first.id, *(new_id() for _ in range(9))]),
            query(match(SYSTEM, first.value) + match(SYSTEM, kept.value)),
            wanting(has("status", token("final"))),
        ]
        for each in searches:
            assert first.id not in await find_ids(reader, each)
        assert kept.id in await find_ids(reader, wanting(has("status", token("final"))))

    @pytest.mark.parametrize("size", [100, 70_000, 2_000_000])
    async def test_documents_that_no_other_version_has_are_deleted(
        self, store: Store, reader: Store, size: int
    ) -> None:
        own, shared = a_blob(os.urandom(size)), a_blob(os.urandom(size))
        names = (own.sha256, shared.sha256)
        first, other = a_version(documents=names), a_version(documents=(shared.sha256,))
        await store.add(LAB, first, [own, shared])
        await store.add(LAB, other, [shared])

        await erase(store, first)
        assert await reader.shared_documents(LAB, names, besides=[first.id]) == {shared.sha256}
        await store.erase_documents(LAB, names)
        await store.sweep_blobs(LAB, before=2**53)  # as an hour later

        assert (await reader.blobs(LAB, names)).keys() == {shared.sha256}
        found = (await reader.blobs(LAB, names))[shared.sha256]
        assert (await reader.whole_blob(LAB, found)).data == shared.data

    async def test_documents_within_an_erased_version_are_gone(
        self, store: Store, reader: Store
    ) -> None:
        blob = a_blob()
        first = a_version(documents=(blob.sha256,), attached=(blob,))
        await store.add(LAB, first)

        await erase(store, first)

        assert await store.erase_documents(LAB, [blob.sha256]) == 1
        assert await reader.blobs(LAB, [blob.sha256]) == {}

    async def test_a_document_that_another_version_holds_is_not_gone(
        self, store: Store, reader: Store
    ) -> None:
        blob = a_blob()
        first, other = (a_version(documents=(blob.sha256,), attached=(blob,)) for _ in range(2))
        for version in (first, other):
            await store.add(LAB, version)

        await erase(store, first)

        assert await store.erase_documents(LAB, [blob.sha256]) == 0
        assert (await reader.blobs(LAB, [blob.sha256])).keys() == {blob.sha256}

    async def test_a_document_that_is_added_again_is_stored_again(
        self, store: Store, reader: Store
    ) -> None:
        blob = a_blob(os.urandom(2_000_000))
        first = a_version(documents=(blob.sha256,))
        await store.add(LAB, first, [blob])
        await erase(store, first)
        await store.erase_documents(LAB, [blob.sha256])

        await store.add(LAB, a_version(documents=(blob.sha256,)), [blob])
        await store.erase_documents(LAB, [blob.sha256])

        found = (await reader.blobs(LAB, [blob.sha256]))[blob.sha256]
        assert (await reader.whole_blob(LAB, found)).data == blob.data

    async def test_members_are_erased_with_their_version(
        self, store: Store, reader: Store
    ) -> None:
        members = tuple(a_result(search=encode([("code", "m", "")])) for _ in range(25))
        other = a_result(search=encode([("code", "m", "")]))
        first = a_version(members=members)
        await store.add(LAB, first)
        await store.add(LAB, a_version(members=(other,)))

        body = member_body(await erase(store, first, *members))

        for member in members:
            newest = await reader.latest(LAB, member.id)
            husk = await reader.version(LAB, member.id, 1)
            assert newest is not None
            assert husk is not None
            assert (newest.version, newest.type, newest.body) == (2, "!Observation", body)
            assert (husk.type, husk.body, husk.search) == ("!Observation", body, b"[]")
        assert await find_ids(reader, results(criteria=(has("code", token("m")),))) == {other.id}

    async def test_a_resource_of_many_megabytes_is_erased(
        self, store: Store, reader: Store
    ) -> None:
        first = a_version(body=b'"%s"' % (b"x" * 3_000_000), response=b"r" * 1_000_000)
        await store.add(LAB, first)

        await erase(store, first)
        await store.erase_documents(LAB, [])

        found = await reader.version(LAB, first.id, 1)
        assert found is not None
        assert found.response == b""

    async def test_erased_bytes_no_longer_count(self, store: Store) -> None:
        tenant, blob = new_id(), a_blob(os.urandom(300))
        first = a_version(
            body=b"b" * 5_000,
            response=b"r" * 5_000,
            documents=(blob.sha256,),
            attached=(blob,),
            members=(a_result(body=b"m" * 5_000),),
        )
        await store.add(tenant, first)
        tombstone = a_tombstone(first, *first.members)
        await store.add(tenant, tombstone)

        while await store.erase_versions(tenant, tombstone):
            pass

        sizes = [len(tombstone.body), len(member_body(tombstone))]
        await wait_for_stored_bytes(store, tenant, 2 * (sum(sizes) + 2 * len(b"[]")))

    async def test_what_was_interrupted_goes_on(self, store: Store, other_store: Store) -> None:
        first = a_version(members=tuple(a_result() for _ in range(25)))
        await store.add(LAB, first)
        await store.add(LAB, successor(first, members=()))
        tombstone = a_tombstone(successor(first), *first.members)
        await store.add(LAB, tombstone)
        await store.erase_versions(LAB, tombstone)

        while await other_store.erase_versions(LAB, tombstone):
            pass

        assert not await store.erase_versions(LAB, tombstone)
        for number in (1, 2):
            found = await store.version(LAB, first.id, number)
            assert found is not None
            assert is_erased(found)

    async def test_a_later_tombstone_stands_for_all_earlier_versions(self, store: Store) -> None:
        first = a_version()
        await store.add(LAB, first)
        await erase(store, first, allows_reuse=True)
        again = replace(first, version=3)
        await store.add(LAB, again)

        tombstone = await erase(store, again)

        for number in (1, 2, 3):
            found = await store.version(LAB, first.id, number)
            assert found is not None
            assert tombstone_of(found).version == tombstone.version == 4

    async def test_what_is_registered_again_is_counted(self, store: Store, reader: Store) -> None:
        tenant = new_id()
        first = a_version(members=(a_result(),))
        await store.add(tenant, first)
        await store.put_erasure(an_erasure(tenant=tenant, id=first.id, allows_reuse=True))
        tombstone = a_tombstone(first, *first.members, allows_reuse=True)
        await store.add(tenant, tombstone)
        while await store.erase_versions(tenant, tombstone):
            pass
        again = [replace(member, version=3) for member in first.members]
        await store.add(tenant, replace(first, version=3, members=tuple(again)))
        await store.add(tenant, a_version())

        for wanted, total in (
            (query(), 2),
            (query(match(SYSTEM, first.value)), 1),
            (query(match(SYSTEM)), 2),
            (results(), 1),
        ):
            page = await reader.search(tenant, wanted)
            assert page.total == total
            assert len(page.versions) == total

    async def test_no_search_value_comes_back_by_a_reindex(self, store: Store) -> None:
        member = a_result(search=encode([("code", "m", "")]))
        first = a_version(search=encode([("status", "final", "")]), members=(member,))
        await store.add(LAB, first)
        await erase(store, first, member)
        before = [await store.version(LAB, each.id, 1) for each in (first, member)]

        for each in (first, member):
            await store.replace_search(LAB, each.id, 1, encode([("status", "again", "")]))

        assert [await store.version(LAB, each.id, 1) for each in (first, member)] == before

    async def test_nothing_of_another_tenant_is_erased(self, store: Store) -> None:
        first = a_version()
        await store.add(LAB, first)

        assert not await store.erase_versions(OTHER, a_tombstone(first))
        assert await store.latest(LAB, first.id) == first
