"""What took over from a candidate, as a server finds it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.storage.mongodb.store import MongoStore
from fhirpub.testing.contracts.store.members import a_result, results
from fhirpub.testing.contracts.store.queries import query
from fhirpub.testing.samples import a_version, new_id, successor

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_of_a_resource_the_newest_version_is_found_or_each(shared: MongoStore) -> None:
    tenant, first = new_id(), a_version()
    second = successor(first)
    other = a_version(updated=first.updated - 1)
    for version in (first, second, other):
        await shared.add(tenant, version)

    newest = await shared.search(tenant, query())
    every = await shared.search(tenant, replace(query(), every_version=True))

    assert ([*newest.versions], newest.total) == ([second, other], 2)
    assert ([*every.versions], every.total) == ([second, first, other], 3)


async def test_of_a_member_the_version_that_was_brought_last_is_found_or_each(
    shared: MongoStore,
) -> None:
    tenant, kept, changed = new_id(), a_result(), a_result()
    first = a_version(members=(kept, changed))
    later = successor(changed)
    second = successor(first, members=())
    third = successor(second, members=(replace(later, updated=successor(second).updated),))
    for version in (first, second, third):
        await shared.add(tenant, version)

    newest = await shared.search(tenant, results())
    every = await shared.search(tenant, results(every_version=True))

    assert [(one.id, one.version) for one in newest.versions] == [(changed.id, 2), (kept.id, 1)]
    assert newest.total == 2
    assert {(one.id, one.version) for one in every.versions} == {
        *((changed.id, 1), (changed.id, 2), (kept.id, 1))
    }
    assert every.total == 3
