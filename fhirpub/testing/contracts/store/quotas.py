"""Tests of quotas: limits of operators, counts of processes, and stored bytes."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace

import pytest

from fhirpub.storage.quota_contract import QuotaCount, QuotaOverride, QuotaUse
from fhirpub.storage.store import Store
from fhirpub.testing.contracts.store.records import Reopen, a_blob, keep
from fhirpub.testing.samples import FOREVER, LAB, OTHER, a_version, new_id, successor

_REQUESTS, _BYTES = "client_requests_per_minute", "client_bytes_per_day"
_PATIENCE_SECONDS = 20.0


def a_count(owner: str, used: int, **changes: int | str) -> QuotaCount:
    """Return a count of the first minute.

    Args:
        owner: The id of the tenant or client.
        used: How much was counted.
        **changes: The fields that differ from the sample.

    Returns:
        The count.
    """
    usual = QuotaCount(owner=owner, quota=_REQUESTS, period=0, until=60_000, used=used)
    return replace(usual, **changes)  # type: ignore[arg-type]


async def wait_for_stored_bytes(store: Store, tenant: str, expected: int) -> None:
    """Wait until a store returns the expected number of stored bytes.

    Args:
        store: The store.
        tenant: The id of the tenant.
        expected: The number of bytes.

    Raises:
        AssertionError: It does not within 20 seconds.
    """
    until = time.monotonic() + _PATIENCE_SECONDS
    while (found := (await store.stored_bytes([tenant])).get(tenant, 0)) != expected:
        assert time.monotonic() < until, f"{found} bytes instead of {expected}"
        await asyncio.sleep(0.05)


class QuotaContract:
    """Counts of processes add up, and stored bytes are those of versions and documents."""

    async def test_an_override_is_returned_by_every_process_until_it_is_removed(
        self, store: Store, reader: Store
    ) -> None:
        first, second = QuotaOverride("b", _REQUESTS, 5), QuotaOverride("a", _BYTES, 0)
        await store.put_quota_overrides([first, second])
        assert await reader.quota_overrides() == [second, first]

        await store.put_quota_overrides([QuotaOverride("b", _REQUESTS, 7)])
        assert await reader.quota_overrides() == [second, QuotaOverride("b", _REQUESTS, 7)]

        await store.put_quota_overrides([QuotaOverride("b", _REQUESTS, None)])
        assert await reader.quota_overrides() == [second]

    async def test_overrides_are_put_and_removed_together(self, store: Store) -> None:
        kept, removed = QuotaOverride("a", _REQUESTS, 5), QuotaOverride("b", _REQUESTS, 6)
        await store.put_quota_overrides([kept, removed])

        added = QuotaOverride("b", _BYTES, 7)
        await store.put_quota_overrides([replace(removed, limit=None), added])

        assert await store.quota_overrides() == [kept, added]

    async def test_removing_an_override_that_does_not_exist_changes_nothing(
        self, store: Store
    ) -> None:
        await store.put_quota_overrides([QuotaOverride(new_id(), _REQUESTS, None)])

        assert await store.quota_overrides() == []

    async def test_concurrent_changes_of_different_quotas_are_all_kept(
        self, store: Store, other_store: Store
    ) -> None:
        overrides = [QuotaOverride("a", f"quota_{number:02}", number) for number in range(20)]

        await asyncio.gather(
            *(
                (store, other_store)[place % 2].put_quota_overrides([override])
                for place, override in enumerate(overrides)
            )
        )

        assert await store.quota_overrides() == overrides

    async def test_counts_of_processes_are_added_up(self, store: Store, reader: Store) -> None:
        owner, other = new_id(), new_id()
        await store.put_quota_counts("p", [a_count(owner, 3), a_count(other, 10)])
        await store.put_quota_counts("q", [a_count(owner, 4), a_count(owner, 9, quota=_BYTES)])

        assert await reader.quota_counts([owner], now=0) == {
            QuotaUse(owner, _REQUESTS, 0): 7,
            QuotaUse(owner, _BYTES, 0): 9,
        }
        assert await reader.quota_counts([owner], now=0, besides="q") == {
            QuotaUse(owner, _REQUESTS, 0): 3
        }
        assert await reader.quota_counts([], now=0) == {}

    async def test_a_count_that_is_put_again_is_replaced(self, store: Store) -> None:
        owner = new_id()
        for used in (3, 8, 8, 5):
            await store.put_quota_counts("p", [a_count(owner, used)])

        assert await store.quota_counts([owner], now=0) == {QuotaUse(owner, _REQUESTS, 0): 5}

    async def test_periods_are_kept_apart(self, store: Store) -> None:
        owner = new_id()
        await store.put_quota_counts("p", [a_count(owner, 3)])
        await store.put_quota_counts("q", [a_count(owner, 4, period=60_000, until=120_000)])

        assert await store.quota_counts([owner], now=0) == {
            QuotaUse(owner, _REQUESTS, 0): 3,
            QuotaUse(owner, _REQUESTS, 60_000): 4,
        }

    async def test_a_process_has_one_period_at_a_time(self, store: Store) -> None:
        owner = new_id()
        await store.put_quota_counts("p", [a_count(owner, 3)])
        await store.put_quota_counts("p", [a_count(owner, 1, period=60_000, until=120_000)])

        assert await store.quota_counts([owner], now=0) == {QuotaUse(owner, _REQUESTS, 60_000): 1}

    async def test_a_count_ends_with_its_time(self, store: Store) -> None:
        owner = new_id()
        await store.put_quota_counts("p", [a_count(owner, 3, until=1000)])

        assert await store.quota_counts([owner], now=999)
        assert await store.quota_counts([owner], now=1000) == {}

    async def test_a_sweep_deletes_the_counts_that_ended_before(self, store: Store) -> None:
        owner = new_id()
        await store.put_quota_counts("p", [a_count(owner, 3, until=1000)])
        await store.put_quota_counts("q", [a_count(owner, 4, until=2000)])

        assert await store.sweep_quota_counts(before=1001) == 1
        assert await store.quota_counts([owner], now=0) == {QuotaUse(owner, _REQUESTS, 0): 4}
        assert await store.sweep_quota_counts(before=1001) == 0

    async def test_large_counts_are_kept_exactly(self, store: Store) -> None:
        owner = new_id()
        await store.put_quota_counts("p", [a_count(owner, 2**53, until=FOREVER)])

        assert [*(await store.quota_counts([owner], now=0)).values()] == [2**53]

    async def test_versions_and_documents_are_counted(self, store: Store, reader: Store) -> None:
        tenant, blob = new_id(), a_blob(os.urandom(300_000))
        first = a_version(body=b"b" * 500, response=b"r" * 70, parts=b"p" * 9)
        later = successor(first, body=b"c" * 600)
        await store.add(tenant, replace(first, documents=(blob.sha256,)), [blob])
        await store.add(tenant, later)
        await store.add(OTHER, a_version())

        await wait_for_stored_bytes(reader, tenant, first.size + later.size + 300_000)

    async def test_a_document_counts_once_however_often_it_is_sent(self, store: Store) -> None:
        tenant, blob = new_id(), a_blob(os.urandom(1000))
        versions = [a_version(documents=(blob.sha256,)) for _ in range(5)]

        await asyncio.gather(*(store.add(tenant, version, [blob]) for version in versions))

        size = sum(version.size for version in versions)
        await wait_for_stored_bytes(store, tenant, size + 1000)

    async def test_a_version_that_was_not_added_is_not_counted(self, store: Store) -> None:
        tenant, version = new_id(), a_version(body=b"b" * 500)

        added = await asyncio.gather(*(store.add(tenant, version) for _ in range(6)))

        assert added.count(True) == 1
        await wait_for_stored_bytes(store, tenant, version.size)

    @pytest.mark.parametrize("size", [100, 300_000])
    async def test_a_document_that_is_swept_counts_no_more(self, store: Store, size: int) -> None:
        tenant = new_id()
        await keep(store, tenant, [a_blob(os.urandom(size))])
        await wait_for_stored_bytes(store, tenant, size + a_version().size)

        assert await store.sweep_blobs(tenant, before=FOREVER) == 1

        await wait_for_stored_bytes(store, tenant, a_version().size)

    async def test_the_bytes_of_several_tenants_are_kept_apart(self, store: Store) -> None:
        stored = {new_id(): a_version(body=b"b" * (1_000 + number)) for number in range(3)}
        for tenant, version in stored.items():
            await store.add(tenant, version)
            await wait_for_stored_bytes(store, tenant, version.size)
        first, second, _third = stored

        found = await store.stored_bytes([first, second, new_id()])

        assert found == {first: stored[first].size, second: stored[second].size}

    async def test_a_tenant_without_versions_stores_nothing(self, store: Store) -> None:
        assert await store.stored_bytes([new_id()]) == {}

    async def test_stored_bytes_and_overrides_are_there_after_a_restart(
        self, store: Store, reopen: Reopen
    ) -> None:
        version, override = a_version(body=b"b" * 500), QuotaOverride(LAB, _BYTES, 9)
        before = (await store.stored_bytes([LAB])).get(LAB, 0)
        await store.add(LAB, version)
        await store.put_quota_overrides([override])
        await store.stop()

        again = await reopen()

        assert await again.stored_bytes([LAB]) == {LAB: before + version.size}
        assert await again.quota_overrides() == [override]

    async def test_a_sweep_leaves_a_count_that_ends_at_that_time(self, store: Store) -> None:
        owner = new_id()
        await store.put_quota_counts("p", [a_count(owner, 3, until=1000)])

        assert await store.sweep_quota_counts(before=1000) == 0
        assert await store.quota_counts([owner], now=0) == {QuotaUse(owner, _REQUESTS, 0): 3}

    async def test_stored_bytes_are_those_of_the_tenants_that_are_asked_for(
        self, store: Store
    ) -> None:
        tenant, other = new_id(), new_id()
        for each in (tenant, other):
            await store.add(each, a_version())
            await wait_for_stored_bytes(store, each, a_version().size)

        assert await store.stored_bytes([tenant]) == {tenant: a_version().size}
        assert (await store.stored_bytes([tenant, other, new_id()])).keys() == {tenant, other}
        assert await store.stored_bytes([]) == {}

    async def test_nothing_to_write_is_no_trouble(self, store: Store) -> None:
        await store.put_quota_overrides([])
        await store.put_quota_counts("p", [])

    async def test_documents_that_are_swept_together_count_no_more(self, store: Store) -> None:
        tenant, size = new_id(), a_version().size
        kept = [a_blob(os.urandom(length)) for length in (100, 4_000, 30_001)]
        await keep(store, tenant, kept)
        await wait_for_stored_bytes(store, tenant, size + 34_101)

        assert await store.sweep_blobs(tenant, before=FOREVER) == 3

        await wait_for_stored_bytes(store, tenant, size)
