"""Search values that are computed again, of versions and of members."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.storage.mongodb.store import MongoStore
from fhirpub.testing.contracts.erasure.content import a_tombstone
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.samples import LAB, OTHER, a_version, new_id, successor

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("is_member", [False, True])
async def test_other_search_values_are_those_of_one_version_of_its_tenant(
    shared: MongoStore, *, is_member: bool
) -> None:
    before, after = b'[["code","a",""]]', b'[["code","b",""]]'
    member, carrier = a_result(search=before), a_version(search=before)
    carrier = replace(carrier, members=(replace(member, updated=carrier.updated),))
    await shared.add(LAB, carrier)
    changed, kept = (member.id, carrier.id) if is_member else (carrier.id, member.id)

    await shared.replace_search(OTHER, changed, 1, after)
    await shared.replace_search(LAB, changed, 2, after)
    await shared.replace_search(LAB, new_id(), 1, after)
    for id_ in (changed, kept):
        found = await shared.latest(LAB, id_)
        assert found is not None
        assert found.search == before

    await shared.replace_search(LAB, changed, 1, after)

    replaced, other = await shared.latest(LAB, changed), await shared.latest(LAB, kept)
    assert replaced is not None
    assert other is not None
    assert (replaced.search, other.search) == (after, before)


async def test_an_erased_version_and_its_members_get_no_search_values(shared: MongoStore) -> None:
    member = a_result()
    version = a_version(members=(member,))
    tombstone = a_tombstone(version, member)
    await shared.add(LAB, version)
    await shared.add(LAB, tombstone)
    await shared.erase_versions(LAB, tombstone)

    for one in (version, member):
        for number in (1, 2):
            await shared.replace_search(LAB, one.id, number, b'[["code","a",""]]')

    for one in (version, member):
        for number in (1, 2):
            erased = await shared.version(LAB, one.id, number)
            assert erased is not None
            assert erased.search == b"[]"


async def test_each_version_of_a_member_has_values_of_its_own(shared: MongoStore) -> None:
    before, after = b'[["code","a",""]]', b'[["code","b",""]]'
    member, beside = a_result(search=before), a_result(search=before)
    first = a_version(members=(member, beside))
    await shared.add(LAB, first)
    await shared.add(LAB, successor(first, members=(successor(member),)))

    await shared.replace_search(LAB, member.id, 2, after)

    found = [await shared.version(LAB, member.id, number) for number in (1, 2)]
    assert [one and one.search for one in found] == [before, after]
    kept = await shared.latest(LAB, beside.id)
    assert kept is not None
    assert kept.search == before
