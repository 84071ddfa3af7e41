"""Quotas and what is used of them, as a server keeps them."""

from __future__ import annotations

import pytest

from fhirpub.storage.mongodb.store import MongoStore
from fhirpub.storage.quota_contract import QuotaCount, QuotaOverride, QuotaUse
from fhirpub.testing.samples import new_id

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_overrides_are_listed_in_order_and_removed(shared: MongoStore) -> None:
    owner = new_id()
    changed = [QuotaOverride(owner, "requests", 5), QuotaOverride(owner, "bytes", 0)]
    await shared.put_quota_overrides([])
    await shared.put_quota_overrides(changed)
    assert [one for one in await shared.quota_overrides() if one.owner == owner] == changed[::-1]

    await shared.put_quota_overrides(
        [QuotaOverride(owner, "bytes", None), QuotaOverride(owner, "requests", 6)]
    )

    left = [one for one in await shared.quota_overrides() if one.owner == owner]
    assert left == [QuotaOverride(owner, "requests", 6)]


async def test_counts_of_other_processes_add_up_until_their_time(shared: MongoStore) -> None:
    owner, other = new_id(), new_id()

    def count(owner: str, used: int, *, until: int = 100) -> QuotaCount:
        return QuotaCount(owner=owner, quota="requests", period=60, until=until, used=used)

    await shared.put_quota_counts("p1", [])
    for process, counts in {
        "p1": [count(owner, 1), count(other, 20)],
        "p2": [count(owner, 300)],
        "p3": [count(owner, 4_000, until=50)],
    }.items():
        await shared.put_quota_counts(process, counts)
    use = QuotaUse(owner, "requests", 60)

    assert await shared.quota_counts([owner], now=49) == {use: 4_301}
    assert await shared.quota_counts([owner], now=50) == {use: 301}
    assert await shared.quota_counts([owner], now=50, besides="p1") == {use: 300}
    assert await shared.quota_counts([new_id()], now=49) == {}
    await shared.put_quota_counts("p2", [count(owner, 301)])
    assert await shared.quota_counts([owner], now=50) == {use: 302}

    assert await shared.sweep_quota_counts(before=100) == 1
    assert await shared.quota_counts([owner, other], now=0) == {
        use: 302,
        QuotaUse(other, "requests", 60): 20,
    }
