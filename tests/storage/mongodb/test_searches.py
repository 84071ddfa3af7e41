"""The server ends a search after its time, and each tenant has a share of reads of its own."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import SearchTooCostly, StoreUnavailable, Throttled
from fhirpub.storage.contract import SMALL_BYTES
from fhirpub.storage.criteria import encode
from fhirpub.storage.mongodb.reads import READS_PER_TENANT, shares_of
from fhirpub.storage.mongodb.store import MongoStore
from fhirpub.storage.store import Store
from fhirpub.testing.samples import new_member_id
from fhirpub.testing.store_contract import (
    LAB,
    OTHER,
    a_blob,
    a_version,
    add_all,
    new_id,
    query,
    whole_blobs,
)
from tests.mongodb_proxy import Fault, Proxy
from tests.storage.mongodb.helpers import COMMANDS, Admin, failing, store_of

LIMITED = replace(query(), max_seconds=0.5)


async def test_the_server_gets_the_time_of_a_search(url: str) -> None:
    store = store_of(url, seconds=10)
    await store.start()

    with COMMANDS.recorded() as sent:
        await store.search(LAB, LIMITED)
        await store.search(LAB, replace(query(), max_seconds=60))
    await store.stop()

    # At most a share of the deadline, after which the driver still waits for the answer.
    assert times_of(sent) == [500, 4_000]


async def test_options_of_the_url_leave_the_time_of_a_search_as_it_is(url: str) -> None:
    store = store_of(f"{url}&timeoutMS=20000&socketTimeoutMS=1", seconds=10)
    await store.start()

    with COMMANDS.recorded() as sent:
        await store.search(LAB, LIMITED)
    await store.stop()

    assert times_of(sent) == [500]


def times_of(sent: list[dict[str, Any]]) -> list[int]:
    return [command["maxTimeMS"] for command in sent if command["command"] == "aggregate"]


async def test_a_search_that_the_server_ends_is_too_costly_and_not_tried_again(
    tried: MongoStore, admin: Admin
) -> None:
    with failing(admin, "aggregate", times=1, errorCode=50), pytest.raises(SearchTooCostly):
        await tried.search(LAB, LIMITED)

    assert (await tried.search(LAB, LIMITED)).total == 0


async def test_without_a_limit_of_its_own_it_is_a_matter_of_the_store(
    tried: MongoStore, admin: Admin
) -> None:
    with failing(admin, "aggregate", errorCode=50), pytest.raises(StoreUnavailable):
        await tried.search(LAB, query())


@pytest.mark.parametrize("code", [91, 189, 8000])
async def test_any_other_error_is_a_matter_of_the_store(
    tried: MongoStore, admin: Admin, code: int
) -> None:
    with failing(admin, "aggregate", errorCode=code), pytest.raises(StoreUnavailable):
        await tried.search(LAB, LIMITED)


async def test_a_server_that_falls_silent_is_unavailable(far: MongoStore, proxy: Proxy) -> None:
    proxy.inject(Fault.STALL)

    with pytest.raises(StoreUnavailable):
        await far.search(LAB, LIMITED)


async def test_a_search_is_tried_again_on_a_server_that_was_silent(
    far: MongoStore, proxy: Proxy
) -> None:
    version = a_version(id=new_id())
    await far.add(LAB, version)
    proxy.inject(Fault.STALL, "aggregate", times=1)

    assert (await far.search(LAB, LIMITED)).versions == (version,)


@pytest.mark.parametrize(("threads", "shares"), [(5, (4, 2)), (10, (8, 3)), (20, (16, 6))])
def test_a_tenant_has_two_reads_at_least_and_never_more_than_half(
    threads: int, shares: tuple[int, int]
) -> None:
    assert shares_of(threads) == shares


async def test_a_tenant_has_a_share_of_the_searches(unhurried: MongoStore, admin: Admin) -> None:
    slow = {"blockConnection": True, "blockTimeMS": 5_000}
    with failing(admin, "aggregate", times=READS_PER_TENANT, **slow):
        searches = [
            asyncio.create_task(unhurried.search(LAB, query())) for _ in range(READS_PER_TENANT)
        ]
        await asyncio.sleep(0)

        with pytest.raises(Throttled):  # its own are in the way for longer than it may wait
            await unhurried.search(LAB, query())
        assert (await unhurried.search(OTHER, query())).total == 0
        assert not any(search.done() for search in searches)
        assert [page.total for page in await asyncio.gather(*searches)] == [0] * len(searches)


async def test_a_tenant_searches_for_one_large_page_at_a_time(
    unhurried: MongoStore, admin: Admin
) -> None:
    large = replace(query(), limit=1_000)
    slow = {"blockConnection": True, "blockTimeMS": 5_000}
    with failing(admin, "aggregate", times=1, **slow):
        search = asyncio.create_task(unhurried.search(LAB, large))
        await asyncio.sleep(0)

        with pytest.raises(Throttled):
            await unhurried.search(LAB, large)
        assert (await unhurried.search(LAB, query())).total == 0
        assert (await unhurried.search(OTHER, large)).total == 0
        assert not search.done()
        assert (await search).total == 0


async def test_a_page_is_read_without_the_search_values_that_are_not_needed(
    store: Store,
) -> None:
    values = encode([("code", "a", ""), ("result", "1", "Observation"), ("status", "final", "")])
    member = a_version(id=new_member_id(), system="", value="", search=values)
    await store.add(LAB, a_version(search=values, members=(member,)))

    async def read(*names: str) -> set[bytes]:
        wanted = replace(query(), has_members=True, needed_values=frozenset(names))
        page = await store.search(LAB, wanted)
        assert len(page.versions) == 2
        return {version.search for version in page.versions}

    assert await read() == {encode([])}
    assert await read("result") == {encode([("result", "1", "Observation")])}


async def test_a_tenant_has_a_share_of_the_histories(unhurried: MongoStore, admin: Admin) -> None:
    slow = {"blockConnection": True, "blockTimeMS": 5_000}
    with failing(admin, "find", times=READS_PER_TENANT, **slow):
        histories = [
            asyncio.create_task(unhurried.history(LAB, new_id())) for _ in range(READS_PER_TENANT)
        ]
        await asyncio.sleep(0)

        with pytest.raises(Throttled):  # its own are in the way for longer than it may wait
            await unhurried.history(LAB, new_id())
        assert await unhurried.history(OTHER, new_id()) == []
        assert not any(history.done() for history in histories)
        assert await asyncio.gather(*histories) == [[]] * len(histories)


async def test_a_tenant_has_a_share_of_the_reads_of_large_versions(store: Store) -> None:
    versions = [a_version(body=b"x" * SMALL_BYTES) for _ in range(16)]
    await add_all(store, versions)

    with COMMANDS.recorded():
        await asyncio.gather(*(store.latest(LAB, version.id) for version in versions))

    assert COMMANDS.most_unanswered <= READS_PER_TENANT


async def test_a_tenant_has_a_share_of_the_reads_of_large_documents(store: Store) -> None:
    blobs = [a_blob(bytes(100_000) + b"%d" % number) for number in range(16)]
    names = [blob.sha256 for blob in blobs]
    await store.add(LAB, a_version(documents=tuple(names)), blobs)

    with COMMANDS.recorded():
        await asyncio.gather(*(whole_blobs(store, LAB, [name]) for name in names))

    assert COMMANDS.most_unanswered <= READS_PER_TENANT
