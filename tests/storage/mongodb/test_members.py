"""Members are embedded in the document of their version; each read costs as much as any other."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import TooLarge
from fhirpub.storage.contract import MAX_PAGE_BYTES, SMALL_BYTES, Version
from fhirpub.storage.criteria import encode
from fhirpub.storage.mongodb import schema
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.store.members import a_result, results
from fhirpub.testing.store_contract import (
    LAB,
    Reopen,
    a_version,
    add_all,
    all_pages,
    new_id,
    query,
    successor,
)
from tests.storage.mongodb.helpers import COMMANDS, Database


async def test_reads_of_members_that_arrive_together_are_one_command(store: Store) -> None:
    members = [a_result() for _ in range(20)]
    await store.add(LAB, a_version(members=tuple(members[:10])))
    await add_all(store, [a_version(members=(member,)) for member in members[10:]])

    with COMMANDS.recorded() as sent:
        newest = await asyncio.gather(*(store.latest(LAB, member.id) for member in members))
    with COMMANDS.recorded() as sent_for_versions:
        first = await asyncio.gather(*(store.version(LAB, member.id, 1) for member in members))

    assert list(newest) == list(first) == members
    assert [len(sent), len(sent_for_versions)] == [1, 1]


async def test_what_has_no_members_id_is_not_looked_for_among_members(store: Store) -> None:
    with COMMANDS.recorded() as sent:
        assert await store.version(LAB, new_id(), 1) is None
        assert await store.latest(LAB, new_id()) is None
        assert await store.latest_public(LAB, new_id()) is None
        assert await store.history(LAB, new_id()) == []

    assert [command["hint"] for command in sent] == [schema.VERSION_KEY] * 4


async def test_a_small_version_with_large_members_is_read_without_them(store: Store) -> None:
    version = a_version(members=tuple(a_result(body=b"x" * 50_000) for _ in range(20)))
    await store.add(LAB, version)

    for read in (store.latest, store.latest_public):
        with COMMANDS.recorded() as sent:
            assert await read(LAB, version.id) == replace(version, members=())
        assert len(sent) == 1  # a version that is large is read once more, alone


async def test_histories_and_pages_leave_members_on_the_server(store: Store) -> None:
    await store.add(LAB, version := a_version(members=(a_result(),)))

    with COMMANDS.recorded() as sent:
        assert await store.history(LAB, version.id) == [replace(version, members=())]
        assert (await store.search(LAB, query())).total == 1

    found = [command["projection"] for command in sent if command.get("find") == "version"]
    assert [projection["members"] for projection in found] == [0, 0]


async def test_a_large_member_delays_no_read_of_a_small_one(store: Store) -> None:
    large, small = a_result(body=b"x" * SMALL_BYTES), a_result(body=b"x" * (SMALL_BYTES // 2))
    await store.add(LAB, a_version(members=(large, small)))

    with COMMANDS.recorded() as sent:
        found = await asyncio.gather(*(store.latest(LAB, item.id) for item in (large, small)))

    assert found == [large, small]
    assert len(sent) == 2  # first both together, then the large one


async def test_a_search_that_finds_large_members_has_shorter_pages(store: Store) -> None:
    large = [a_result(body=b"x" * (MAX_PAGE_BYTES // 2 - 5000), updated=n) for n in range(5)]
    for member in large:
        await store.add(LAB, a_version(members=(member,), updated=member.updated))

    pages = await all_pages(store, results(limit=4))

    assert len(pages) == 2
    assert [item for page in pages for item in page.versions] == large[::-1]


async def test_a_page_of_versions_and_members_is_as_short(store: Store) -> None:
    body = b"x" * (MAX_PAGE_BYTES // 2 - 5000)
    large = [a_result(body=body, updated=n) for n in range(2)]
    alone = [a_result(body=body, id=new_id(), updated=n) for n in range(2)]
    for member in large:
        await store.add(LAB, a_version(members=(member,), updated=member.updated))
        await store.add(LAB, alone[member.updated])

    page = await store.search(LAB, results(limit=4))

    assert len(page.versions) == 3
    assert page.more


async def test_members_with_which_a_version_is_too_large_are_refused(store: Store) -> None:
    members = tuple(a_result(body=bytes(6_000_000)) for _ in range(3))
    version = a_version(members=members)

    with pytest.raises(TooLarge):
        await store.add(LAB, version)

    assert await store.latest(LAB, version.id) is None
    assert await store.latest(LAB, members[0].id) is None
    assert await store.add(LAB, replace(version, members=members[:2]))
    assert await store.latest(LAB, members[1].id) == members[1]


async def test_a_version_of_a_member_that_changed_often_is_found_by_one_step(
    store: Store, database: Database
) -> None:
    version, member = a_version(), a_result()
    for number in range(1, 41):
        changed = replace(member, version=number)
        await store.add(LAB, replace(version, version=number + 1, members=(changed,)))

    with COMMANDS.recorded() as sent:
        assert (await store.latest(LAB, member.id)) == replace(member, version=40)
        assert (await store.version(LAB, member.id, 20)) == replace(member, version=20)

    assert [examined_by(database, command) for command in sent] == [1, 2]


async def test_batches_of_versions_with_many_values_stay_short(store: Store) -> None:
    values = tuple(encode([("code", str(n), "")]) for n in range(400))
    panels = [a_version(members=tuple(a_result(search=one) for one in values)) for _ in range(30)]

    with COMMANDS.recorded() as sent:
        added = await asyncio.gather(*(store.add(LAB, panel) for panel in panels))

    assert added == [True] * 30
    assert 1 < max(len(insert["documents"]) for insert in sent) <= 10


async def test_a_database_of_a_release_without_members_gets_some(
    store: Store, reopen: Reopen, database: Database
) -> None:
    before = a_version()
    await store.add(LAB, before)
    for name in (schema.BY_MEMBER, schema.BY_MEMBER_TYPE, schema.BY_MEMBER_VALUE):
        database[schema.VERSION].drop_index(name)
    database[schema.STORE].update_one({"_id": schema.SCHEMA}, {"$set": {"version": 4}})

    again = await reopen()
    member: Version = a_result(updated=before.updated + 1)
    await again.add(LAB, successor(before, members=(member,)))

    assert await again.version(LAB, before.id, 1) == before
    assert await again.latest(LAB, member.id) == member
    assert (await again.search(LAB, results())).versions == (member,)
    assert (await again.search(LAB, query())).total == 1
    found = database[schema.STORE].find_one({"_id": schema.SCHEMA})
    assert found == {"_id": schema.SCHEMA, "version": schema.SCHEMA_VERSION}


def examined_by(database: Database, command: dict[str, Any]) -> int:
    """Return how many documents the server looks at for a command."""
    names = ("aggregate", "pipeline", "cursor")
    asked = {name: command[name] for name in names}
    explained = database.command({"explain": asked, "verbosity": "executionStats"})
    return int(explained["stages"][0]["$cursor"]["executionStats"]["totalDocsExamined"])
