"""Limits, what was used of them, and stored bytes, in a file."""

from __future__ import annotations

import pytest

from fhirpub.storage.quota_contract import QuotaCount, QuotaOverride, QuotaUse
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.samples import LAB, OTHER, a_version


def count(owner: str, used: int, *, period: int = 0, until: int = 100) -> QuotaCount:
    return QuotaCount(owner=owner, quota="q", period=period, until=until, used=used)


async def test_overrides_are_put_replaced_and_removed_by_owner_and_quota(
    store: SqliteStore,
) -> None:
    first = [QuotaOverride(owner, quota, 1) for owner in "ba" for quota in "yx"]
    await store.put_quota_overrides(first)

    removed = [QuotaOverride("b", "y", None), QuotaOverride("a", "y", None)]
    await store.put_quota_overrides([QuotaOverride("a", "x", 0), *removed])

    assert await store.quota_overrides() == [
        QuotaOverride("a", "x", 0),
        QuotaOverride("b", "x", 1),
    ]


async def test_a_count_of_a_process_replaces_the_one_before(store: SqliteStore) -> None:
    await store.put_quota_counts("p", [count("a", 5)])
    await store.put_quota_counts("p", [count("a", 3)])

    assert await store.quota_counts(["a"], now=0) == {QuotaUse("a", "q", 0): 3}


async def test_counts_of_processes_are_added_up_period_by_period(store: SqliteStore) -> None:
    await store.put_quota_counts("p", [count("a", 5)])
    await store.put_quota_counts("o", [count("a", 3)])
    await store.put_quota_counts("n", [count("a", 9, period=60)])

    assert await store.quota_counts(["a"], now=0) == {
        QuotaUse("a", "q", 0): 8,
        QuotaUse("a", "q", 60): 9,
    }


async def test_the_counts_of_one_process_can_be_left_out(store: SqliteStore) -> None:
    await store.put_quota_counts("p", [count("a", 5)])
    await store.put_quota_counts("o", [count("a", 3)])

    assert await store.quota_counts(["a"], now=0, besides="p") == {QuotaUse("a", "q", 0): 3}


async def test_only_counts_of_the_owners_are_returned(store: SqliteStore) -> None:
    await store.put_quota_counts("p", [count("a", 5), count("b", 6)])

    assert await store.quota_counts(["b", "c"], now=0) == {QuotaUse("b", "q", 0): 6}


@pytest.mark.parametrize(("now", "found"), [(99, 1), (100, 0), (101, 0)])
async def test_a_count_ends_exactly_at_its_time(store: SqliteStore, now: int, found: int) -> None:
    await store.put_quota_counts("p", [count("a", 5, until=100)])

    assert len(await store.quota_counts(["a"], now=now)) == found


@pytest.mark.parametrize(("before", "swept"), [(100, 0), (101, 1)])
async def test_counts_that_ended_before_are_swept(
    store: SqliteStore, before: int, swept: int
) -> None:
    await store.put_quota_counts("p", [count("a", 5, until=100), count("b", 5, until=200)])

    assert await store.sweep_quota_counts(before=before) == swept


async def test_stored_bytes_are_those_of_each_tenant(store: SqliteStore) -> None:
    first, second = a_version(body=b"1" * 100), a_version(body=b"1" * 1_000)
    await store.add(LAB, first, [])
    await store.add(OTHER, second, [])

    found = await store.stored_bytes([LAB, OTHER, "unknown"])

    assert {**found} == {LAB: first.size, OTHER: second.size}
    assert {**await store.stored_bytes([OTHER])} == {OTHER: second.size}


async def test_a_tenant_of_which_nothing_is_left_is_omitted(store: SqliteStore) -> None:
    await store.add(LAB, a_version(), [])
    await store._execute("UPDATE stored_bytes SET bytes = 0", ())

    assert {**await store.stored_bytes([LAB])} == {}
