"""Tests of the outbox (ADR 11)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import (
    OutboxEntry,
)
from fhirpub.testing.contracts.webhooks.records import (
    EVENTS,
    NOW,
    events_added,
    pending_keys,
)
from fhirpub.testing.samples import LAB, OTHER, a_version, new_id, successor


class OutboxContract:
    """No version with events is skipped, and none is returned after it was published."""

    async def test_a_version_with_events_is_unrelayed(self, store: Store, reader: Store) -> None:
        version = a_version(events=EVENTS, body=bytes(range(256)))
        await store.add(OTHER, version)

        assert await reader.pending_outbox(limit=10) == [(OTHER, OutboxEntry.of(version))]

    async def test_a_version_without_events_is_not(self, store: Store) -> None:
        await store.add(LAB, a_version())

        assert await store.pending_outbox(limit=10) == []

    async def test_a_version_that_was_refused_is_not(self, store: Store) -> None:
        version = a_version()
        await store.add(LAB, version)
        await store.add(LAB, replace(version, events=EVENTS))

        assert await store.pending_outbox(limit=10) == []

    async def test_a_version_that_is_marked_is_not_seen_again(
        self, store: Store, reader: Store
    ) -> None:
        versions = [a_version() for _ in range(3)]
        versions.append(successor(versions[0]))
        await events_added(store, versions)

        await store.mark_published([(versions[0].id, 1), (versions[2].id, 1), (new_id(), 1)])

        left = {(versions[1].id, 1), (versions[0].id, 2)}
        assert set(await pending_keys(reader)) == left

    async def test_of_versions_it_can_be_asked_which_are_unrelayed(
        self, store: Store, reader: Store
    ) -> None:
        first, silent, marked = a_version(), a_version(), a_version()
        await events_added(store, [first, successor(first), marked])
        await store.add(LAB, silent)
        await store.mark_published([(marked.id, 1), (first.id, 1)])

        keys = [(first.id, 1), (first.id, 2), (silent.id, 1), (marked.id, 1), (new_id(), 1)]

        assert await reader.outbox_contains(keys) == {(first.id, 2)}
        assert await reader.outbox_contains([]) == frozenset()

    async def test_marking_again_changes_nothing(self, store: Store) -> None:
        version = a_version()
        await events_added(store, [version])
        await store.mark_published([(version.id, 1)])

        await store.mark_published([(version.id, 1)])

        assert await store.pending_outbox(limit=10) == []

    @pytest.mark.parametrize("limit", [1, 5, 100])
    async def test_the_earlier_version_of_a_resource_stands_first_and_none_is_passed_over(
        self, store: Store, limit: int
    ) -> None:
        resources = [a_version(updated=NOW + 3 * number) for number in range(4)]
        versions = list(resources)
        for _ in range(3):
            resources = [successor(version) for version in resources]
            versions += resources
        await events_added(store, versions)

        met: list[tuple[str, int]] = []
        while page := await pending_keys(store, limit=limit):
            assert len(page) <= limit
            met += page
            await store.mark_published(page)

        assert sorted(met) == sorted((version.id, version.version) for version in versions)
        for resource in resources:
            assert [number for name, number in met if name == resource.id] == [1, 2, 3, 4]

    async def test_an_entry_that_is_left_out_stays_pending_and_none_behind_it_is_missed(
        self, store: Store, reader: Store
    ) -> None:
        versions = [a_version(updated=NOW + number) for number in range(6)]
        await events_added(store, versions[:4])
        found = await pending_keys(store)

        await store.mark_published([found[1], found[3]])
        await events_added(store, versions[4:])
        await store.mark_published([(versions[5].id, 1)])

        left = [(versions[number].id, 1) for number in (0, 2, 4)]
        assert await pending_keys(reader) == left
        assert await pending_keys(reader, limit=1) == left[:1]
        assert await reader.outbox_contains([(each.id, 1) for each in versions]) == {*left}
        await reader.mark_published(left)
        assert await pending_keys(store) == []

    @pytest.mark.parametrize("order", [1, -1])
    async def test_entries_are_marked_one_at_a_time_in_any_order(
        self, store: Store, reader: Store, order: int
    ) -> None:
        versions = [a_version(updated=NOW + number) for number in range(4)]
        await events_added(store, versions)
        left = await pending_keys(reader)

        for key in left[::order]:
            await store.mark_published([key])
            left.remove(key)

            assert await pending_keys(reader) == left

    async def test_of_two_processes_that_mark_the_same_entries_none_is_missed(
        self, store: Store, other_store: Store
    ) -> None:
        await events_added(store, [a_version(updated=NOW + number) for number in range(6)])
        found = await pending_keys(store)
        assert await pending_keys(other_store) == found

        await store.mark_published(found[1:3])
        await other_store.mark_published([found[0], found[2], found[4]])
        await store.mark_published(found[:3])

        assert await pending_keys(store) == await pending_keys(other_store) == [found[3], found[5]]

    async def test_versions_without_events_hide_no_entry(
        self, store: Store, reader: Store
    ) -> None:
        silent = [a_version(updated=NOW) for _ in range(5)]
        loud = [a_version(updated=NOW + number) for number in range(3)]
        for version in silent[:3]:
            await store.add(LAB, version)
        await events_added(store, loud[:2])
        for version in silent[3:]:
            await store.add(LAB, version)
        await events_added(store, loud[2:])

        keys = [(version.id, 1) for version in loud]
        assert await pending_keys(reader, limit=2) == keys[:2]
        assert await pending_keys(reader) == keys
        await store.mark_published([(silent[4].id, 1), keys[2]])
        assert await pending_keys(reader) == keys[:2]
        assert await reader.outbox_contains([(version.id, 1) for version in silent]) == frozenset()

    async def test_of_no_entries_none_is_returned_and_none_is_marked(self, store: Store) -> None:
        version = a_version()
        await events_added(store, [version])

        await store.mark_published([])

        assert [*await store.pending_outbox(limit=0)] == []
        assert await pending_keys(store) == [(version.id, 1)]
