"""What is inserted, how often it is tried, and which parts the next version is made with."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import StoreUnavailable, VersionConflict
from fhirpub.fhir.strict_json import loads_stored
from fhirpub.interactions.context import Context
from fhirpub.interactions.update import Update, add_next, update
from fhirpub.plugin_api import ResourceType
from fhirpub.storage.contract import Blob, Version
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.samples import LAB, a_version, successor
from tests.unit.interactions.updating import CONTEXT, TENANT, registered


class Adding:
    """A context over a store, which counts what it is informed of."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.added = 0
        self.read = 0
        self.context: Context = replace(CONTEXT, resources=store, added=self._note)

    def _note(self) -> None:
        self.added += 1

    async def newest(self, resource_id: str) -> Version:
        self.read += 1
        found = await self.store.latest(LAB, resource_id)
        assert found is not None
        return found

    async def add_next(self, first: Version, make: Any) -> Any:
        return await add_next(
            newest_of=lambda: self.newest(first.id),
            make=make,
            tenant=TENANT,
            context=self.context,
        )


@pytest.fixture
def adding(store: SqliteStore) -> Adding:
    return Adding(store)


Made = tuple[Version | None, Collection[Blob], str]


async def test_what_was_made_is_inserted_with_its_documents_and_announced(
    adding: Adding,
) -> None:
    first, blob = a_version(), Blob("a" * 64, "text/plain", b"x" * 70_000)
    await adding.store.add(LAB, first)

    async def make(newest: Version) -> Made:
        return successor(newest, documents=(blob.sha256,)), (blob,), "made"

    assert await adding.add_next(first, make) == "made"
    assert (await adding.newest(first.id)).version == 2
    assert list(await adding.store.blobs(LAB, [blob.sha256])) == [blob.sha256]
    assert adding.added == 1


async def test_without_a_version_nothing_is_inserted_or_announced(adding: Adding) -> None:
    first = a_version()
    await adding.store.add(LAB, first)

    async def make(_newest: Version) -> Made:
        return None, (), "as it is"

    assert await adding.add_next(first, make) == "as it is"
    assert (await adding.newest(first.id)) == first
    assert adding.added == 0


async def test_an_overtaken_call_begins_again_with_the_version_of_the_other(
    adding: Adding,
) -> None:
    first = a_version()
    await adding.store.add(LAB, first)
    seen: list[int] = []

    async def make(newest: Version) -> Made:
        seen.append(newest.version)
        if len(seen) < 3:
            await adding.store.add(LAB, successor(newest))
        return successor(newest, status="amended"), (), "made"

    assert await adding.add_next(first, make) == "made"
    assert seen == [1, 2, 3]
    assert (await adding.newest(first.id)).status == "amended"
    assert adding.added == 1


async def test_after_300_lost_races_the_store_is_said_to_be_unavailable(adding: Adding) -> None:
    first = a_version()
    await adding.store.add(LAB, first)

    async def make(newest: Version) -> Made:
        return newest, (), "made"  # this version is there already

    with pytest.raises(StoreUnavailable) as refused:
        await adding.add_next(first, make)

    assert refused.value.reason == "lost 300 races for the next version"
    assert (adding.read, adding.added) == (300, 0)


REPORT = CONTEXT.types["DiagnosticReport"]
WITH_PARTS = replace(
    REPORT, parts=tuple(replace(part, include_in_events=True) for part in REPORT.parts)
)


async def parts_of_update(adding: Adding, latest: Version, of: ResourceType = REPORT) -> bytes:
    """Return the parts of the version that an update is prepared with."""
    seen: list[bytes] = []

    async def prepared(version: Version) -> Update:
        seen.append(version.parts)
        return Update(successor(version), ())

    made = await update(
        newest_of=lambda: adding.newest(latest.id),
        check=lambda _version: None,
        resource_type=of,
        tenant=TENANT,
        context=adding.context,
        prepared=prepared,
    )
    assert made.version.version == latest.version + 1
    return seen[0]


async def test_the_first_update_is_prepared_with_the_parts_that_came_with_the_report(
    adding: Adding,
) -> None:
    first = registered()
    await adding.store.add(LAB, first)

    assert await parts_of_update(adding, first) == first.parts


async def test_a_later_update_is_prepared_with_the_parts_that_events_include(
    adding: Adding,
) -> None:
    first = registered()
    await adding.store.add(LAB, first)
    await adding.store.add(LAB, successor(first))
    second = await adding.newest(first.id)

    parts = await parts_of_update(adding, second, WITH_PARTS)

    assert loads_stored(parts) == loads_stored(first.parts)


async def test_a_later_update_reads_no_parts_if_events_include_none(adding: Adding) -> None:
    first = registered()
    await adding.store.add(LAB, first)
    await adding.store.add(LAB, replace(successor(first), parts=b"{}"))

    assert await parts_of_update(adding, await adding.newest(first.id)) == b""


async def test_a_condition_that_does_not_hold_is_found_before_the_body_is_looked_at(
    adding: Adding,
) -> None:
    first = a_version()
    await adding.store.add(LAB, first)
    prepared: list[Version] = []

    def check(version: Version) -> None:
        raise VersionConflict(target="2", current=version.version)

    async def prepare(version: Version) -> Update:
        prepared.append(version)
        return Update(version, ())

    with pytest.raises(VersionConflict):
        await update(
            newest_of=lambda: adding.newest(first.id),
            check=check,
            resource_type=REPORT,
            tenant=TENANT,
            context=adding.context,
            prepared=prepare,
        )

    assert prepared == []
