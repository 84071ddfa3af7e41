"""Tests of members: versions of other resources that are added with a version (ADR 24)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.storage.contract import SearchQuery, Version
from fhirpub.storage.criteria import LAST_UPDATED, Order, TokenMatch, encode
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.store.queries import all_pages, find_ids, has, token, wanting
from fhirpub.testing.contracts.store.quotas import wait_for_stored_bytes
from fhirpub.testing.contracts.store.records import Reopen, add_all
from fhirpub.testing.samples import LAB, OTHER, a_version, new_id, new_member_id, successor

_RESULT = "Observation"


def a_result(**changes: Any) -> Version:
    """Return version 1 of a result, to be added as a member.

    Args:
        **changes: The fields that differ from the sample.

    Returns:
        The version. Like every member it has no identifier of its own.
    """
    usual = {"type": _RESULT, "system": "", "value": "", "body": b'{"n":1}'}
    return a_version(**({"id": new_member_id()} | usual | changes))


def results(**changes: Any) -> SearchQuery:
    """Return a query for results, members or not.

    Args:
        **changes: The fields of the query that differ from the sample.

    Returns:
        The query, newest first.
    """
    return replace(SearchQuery(type=_RESULT, has_members=True), **changes)


class MemberContract:
    """Members are added with their version or not at all, and are found like all others."""

    async def test_a_member_is_read_like_a_version_added_alone(
        self, store: Store, reader: Store
    ) -> None:
        members = (a_result(body=b"a"), a_result(body=b"b" * 100_000))
        await store.add(LAB, a_version(members=members))

        for member in members:
            assert await reader.latest(LAB, member.id) == member
            assert await reader.latest_public(LAB, member.id) == member.without_internal_fields()
            assert await reader.version(LAB, member.id, 1) == member
            assert await reader.history(LAB, member.id) == [member]
            assert await reader.version(LAB, member.id, 2) is None

    async def test_members_survive_a_restart(self, store: Store, reopen: Reopen) -> None:
        member = a_result()
        await store.add(LAB, a_version(members=(member,)))

        assert await (await reopen()).latest(LAB, member.id) == member

    async def test_reads_of_the_version_that_brought_members_leave_them_out(
        self, store: Store
    ) -> None:
        version = a_version(members=(a_result(),))
        await store.add(LAB, version)

        alone = replace(version, members=())
        assert await store.latest(LAB, version.id) == alone
        assert await store.version(LAB, version.id, 1) == alone
        assert await store.history(LAB, version.id) == [alone]

    async def test_a_refused_version_adds_no_member(self, store: Store) -> None:
        first = a_version()
        await store.add(LAB, first)
        member = a_result()

        assert not await store.add(LAB, replace(first, members=(member,)))
        assert await store.latest(LAB, member.id) is None

    async def test_of_many_concurrent_calls_one_adds_its_members(
        self, store: Store, other_store: Store
    ) -> None:
        version, member = a_version(), a_result()
        bodies = [b"%d" % number for number in range(12)]

        added = await asyncio.gather(
            *(
                (store, other_store)[number % 2].add(
                    LAB, replace(version, body=body, members=(replace(member, body=body),))
                )
                for number, body in enumerate(bodies)
            )
        )

        assert added.count(True) == 1
        winner = bodies[added.index(True)]
        found = await store.version(LAB, version.id, 1)
        result = await other_store.version(LAB, member.id, 1)
        assert found is not None
        assert result is not None
        assert (found.body, result.body) == (winner, winner)

    async def test_a_later_version_brings_later_versions_of_its_members(
        self, store: Store, reader: Store
    ) -> None:
        kept, changed = a_result(), a_result()
        first = a_version(members=(kept, changed))
        corrected = successor(changed, status="corrected", body=b"2")
        added = a_result(updated=corrected.updated)
        await store.add(LAB, first)
        await store.add(LAB, successor(first, members=(corrected, added)))

        assert await reader.latest(LAB, kept.id) == kept
        assert await reader.latest(LAB, changed.id) == corrected
        assert await reader.version(LAB, changed.id, 1) == changed
        assert await reader.history(LAB, changed.id) == [corrected, changed]
        assert await reader.history(LAB, changed.id, below=2) == [changed]
        assert await reader.latest(LAB, added.id) == added

    async def test_the_latest_version_of_a_member_is_the_highest_number(
        self, store: Store
    ) -> None:
        version, member = a_version(), a_result()
        for number in range(1, 13):
            carried = replace(member, version=number, body=b"%d" % number)
            await store.add(LAB, replace(version, version=number + 5, members=(carried,)))

        latest = await store.latest(LAB, member.id)

        assert latest is not None
        assert latest.version == 12
        history = await store.history(LAB, member.id, below=4)
        assert [one.version for one in history] == [3, 2, 1]

    @pytest.mark.parametrize("limit", [1, 3, 100])
    async def test_a_search_finds_members_and_versions_added_alone(
        self, store: Store, limit: int
    ) -> None:
        sodium, other = encode([("code", "2951-2", "loinc")]), encode([("code", "x", "loinc")])
        members = tuple(
            a_result(search=sodium if number % 2 else other, updated=1_000 + number // 4)
            for number in range(8)
        )
        alone = [
            a_result(id=new_id(), search=sodium, updated=1_001 + number) for number in range(3)
        ]
        for some in (members[:4], members[4:]):
            await store.add(LAB, a_version(members=some, search=sodium, updated=some[0].updated))
        await add_all(store, alone)

        pages = await all_pages(
            store, results(criteria=(has("code", token("2951-2")),), limit=limit)
        )

        expected = sorted([*members[1::2], *alone], key=lambda each: (-each.updated, each.id))
        assert [item for page in pages for item in page.versions] == expected
        assert {page.total for page in pages} == {7}

    @pytest.mark.parametrize("limit", [1, 4, 100])
    async def test_a_list_of_everything_has_members_in_their_places(
        self, store: Store, limit: int
    ) -> None:
        newest: dict[str, Version] = {}
        for number in range(6):
            some = tuple(a_result(updated=1_000 + number // 2) for _ in range(3))
            report = a_version(members=some, updated=some[0].updated)
            corrected = successor(some[0], updated=1_002)
            await store.add(LAB, report)
            await store.add(LAB, successor(report, members=(corrected,), updated=1_002))
            newest |= {one.id: one for one in (*some, corrected)}
            await store.add(LAB, alone := a_result(id=new_id(), updated=1_000 + number))
            newest[alone.id] = alone

        pages = await all_pages(store, results(limit=limit))

        expected = sorted(newest.values(), key=lambda each: (-each.updated, each.id))
        assert [item for page in pages for item in page.versions] == expected
        assert {page.total for page in pages} == {24}

    async def test_all_criteria_must_hold_of_the_same_member(self, store: Store) -> None:
        one = a_result(search=encode([("code", "a", ""), ("status", "final", "")]))
        two = a_result(search=encode([("code", "b", ""), ("status", "preliminary", "")]))
        await store.add(LAB, a_version(members=(one, two)))
        final, code = has("status", token("final")), has("code", token("b"))
        not_a = has("code", token("a"), negated=True)

        assert await find_ids(store, results(criteria=(code,))) == {two.id}
        assert await find_ids(store, results(criteria=(final, code))) == set()
        assert await find_ids(store, results(criteria=(not_a,))) == {two.id}

    async def test_members_are_found_by_id_and_in_every_order(self, store: Store) -> None:
        members = [
            a_result(search=encode([("date", number, number + 1)]), updated=2_000 - number)
            for number in range(6)
        ]
        for member in members:
            await store.add(LAB, a_version(members=(member,), updated=member.updated))
        ids = frozenset(member.id for member in members[:4])

        by_id = await store.search(LAB, results(ids=ids, limit=10))
        by_date = await store.search(LAB, results(order=(Order("date", descending=True),)))
        oldest = await store.search(LAB, results(order=(Order(LAST_UPDATED),)))

        assert list(by_id.versions) == members[:4]
        assert list(by_date.versions) == members[::-1]
        assert list(oldest.versions) == members[::-1]

    async def test_versions_are_found_by_the_members_that_they_refer_to(
        self, store: Store
    ) -> None:
        kept, changed = a_result(), a_result()
        both = encode([("result", each.id, each.type) for each in (kept, changed)])
        first = a_version(members=(kept, changed), search=both)
        second = successor(first, members=(successor(changed),), search=both)
        only_kept = encode([("result", kept.id, kept.type), ("text", changed.id, "kind")])
        other = a_version(members=(a_result(),), search=only_kept)
        for version in (first, second, other):
            await store.add(LAB, version)

        async def found(*members: Version, **changes: Any) -> set[tuple[str, int]]:
            wanted = has("result", *(TokenMatch(each.type, each.id) for each in members))
            page = await store.search(LAB, wanting(wanted, **changes))
            assert page.total == len(page.versions)
            return {(version.id, version.version) for version in page.versions}

        assert await found(kept) == await found(kept, changed) == {(first.id, 2), (other.id, 1)}
        assert await found(changed) == {(first.id, 2)}
        assert await found(changed, every_version=True) == {(first.id, 1), (first.id, 2)}

    async def test_only_the_newest_version_of_a_member_is_found(self, store: Store) -> None:
        member = a_result(search=encode([("code", "a", "")]))
        later = successor(member, search=encode([("code", "b", "")]))
        first = a_version(members=(member,))
        await store.add(LAB, first)
        await store.add(LAB, successor(first, members=(later,)))
        # A version of the report that leaves the member as it is.
        await store.add(LAB, replace(successor(successor(first)), members=()))

        assert await find_ids(store, results(criteria=(has("code", token("a")),))) == set()
        page = await store.search(LAB, results(criteria=(has("code", token("b")),)))
        assert page.versions == (later,)
        assert page.total == 1

    async def test_ids_lead_to_the_newest_version_of_each_member(self, store: Store) -> None:
        members = [a_result(search=encode([("code", "a", "")])) for _ in range(6)]
        later = [successor(each, search=encode([("code", "b", "")])) for each in members]
        await store.add(LAB, first := a_version(members=tuple(members)))
        await store.add(LAB, successor(first, members=tuple(later)))
        ids = frozenset(each.id for each in members[1:])
        old, new = (results(ids=ids, criteria=(has("code", token(code)),)) for code in "ab")
        assert await find_ids(store, old) == set()
        assert await find_ids(store, new) == ids

    async def test_every_version_of_a_member_is_found_if_asked_for(self, store: Store) -> None:
        member, alone = a_result(updated=1_000), a_result(id=new_id(), updated=3_000)
        later = successor(member, updated=2_000)
        first = a_version(members=(member,), updated=member.updated)
        await store.add(LAB, first)
        await store.add(LAB, successor(first, members=(later,), updated=later.updated))
        await store.add(LAB, alone)

        page = await store.search(LAB, results(every_version=True))

        assert page.versions == (alone, later, member)
        assert page.total == 3

    async def test_a_member_is_not_found_as_its_report(self, store: Store) -> None:
        member = a_result(search=encode([("code", "a", "")]))
        version = a_version(members=(member,), search=encode([("code", "r", "")]))
        await store.add(LAB, version)

        report = SearchQuery(type=version.type, criteria=(has("code", token("a")),))
        assert (await store.search(LAB, report)).versions == ()
        assert (await store.search(LAB, results(criteria=(has("code", token("r")),)))).total == 0

    async def test_members_belong_to_their_tenant(self, store: Store) -> None:
        member = a_result(search=encode([("code", "a", "")]))
        await store.add(LAB, a_version(members=(member,)))

        assert await store.latest(OTHER, member.id) is None
        assert await store.version(OTHER, member.id, 1) is None
        assert await store.history(OTHER, member.id) == []
        wanted = results(criteria=(has("code", token("a")),))
        assert (await store.search(OTHER, wanted)).total == 0
        for more in (0, 20):
            ids = frozenset([member.id, *(new_member_id() for _ in range(more))])
            assert (await store.search(LAB, results(ids=ids))).total == 1
            assert (await store.search(OTHER, results(ids=ids))).total == 0

    async def test_a_scan_returns_members_with_the_version_that_brought_them(
        self, store: Store
    ) -> None:
        version = a_version(members=(a_result(), a_result(search=encode([("code", "a", "")]))))
        plain = a_version()
        count = await store.count()
        await store.add(LAB, version)
        await store.add(LAB, plain)

        found: dict[str, Version] = {}
        after = ("", 0)
        while page := await store.scan(after=after, limit=1):
            found |= {one.id: one for _tenant, one in page}
            after = (page[-1][1].id, page[-1][1].version)

        assert found[version.id] == version
        assert found[plain.id] == plain
        assert not {member.id for member in version.members} & found.keys()
        assert await store.count() == count + 2

    async def test_search_values_of_a_member_can_be_replaced(self, store: Store) -> None:
        member, other = a_result(search=encode([("code", "a", "")])), a_result()
        await store.add(LAB, a_version(members=(member, other)))

        await store.replace_search(OTHER, member.id, 1, encode([("code", "c", "")]))
        await store.replace_search(LAB, member.id, 1, encode([("code", "b", "")]))

        assert await find_ids(store, results(criteria=(has("code", token("b")),))) == {member.id}
        assert await find_ids(store, results(criteria=(has("code", token("a")),))) == set()
        assert await find_ids(store, results(criteria=(has("code", token("c")),))) == set()
        found = await store.latest(LAB, member.id)
        assert found == replace(member, search=encode([("code", "b", "")]))

    async def test_members_count_as_stored_bytes(self, store: Store) -> None:
        tenant = new_id()
        version = a_version(members=(a_result(body=b"x" * 5_000), a_result()))

        await store.add(tenant, version)

        await wait_for_stored_bytes(store, tenant, version.size)

    async def test_a_version_with_a_thousand_members_is_added_and_found(
        self, store: Store
    ) -> None:
        members = tuple(
            a_result(search=encode([("code", str(number % 10), "")])) for number in range(1_000)
        )
        await store.add(LAB, a_version(members=members))

        page = await store.search(LAB, results(criteria=(has("code", token("7")),), limit=100))

        assert page.total == 100
        assert {one.id for one in page.versions} == {member.id for member in members[7::10]}
