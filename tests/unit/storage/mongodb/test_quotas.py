"""How quotas are written: each under one key, that others leave alone."""

from __future__ import annotations

import pytest
from pymongo import DeleteOne, ReplaceOne

from fhirpub.storage.mongodb.quotas import _count_write, _override_write
from fhirpub.storage.quota_contract import QuotaCount, QuotaOverride


@pytest.mark.parametrize("limit", [0, 5])
def test_an_override_replaces_that_of_the_same_owner_and_quota(limit: int) -> None:
    stored = {"_id": "t1/bytes", "owner": "t1", "quota": "bytes", "limit": limit}

    write = _override_write(QuotaOverride("t1", "bytes", limit))

    assert write == ReplaceOne({"_id": "t1/bytes"}, stored, upsert=True)


def test_an_override_without_a_limit_is_removed() -> None:
    assert _override_write(QuotaOverride("t1", "bytes", None)) == DeleteOne({"_id": "t1/bytes"})


def test_a_count_replaces_that_of_the_same_process() -> None:
    count = QuotaCount(owner="t1", quota="bytes", period=60, until=120, used=7)

    write = _count_write("p1", count)

    stored = {
        "_id": "t1/bytes/p1",
        "owner": "t1",
        "quota": "bytes",
        "period": 60,
        "until": 120,
        "used": 7,
        "process": "p1",
    }
    assert write == ReplaceOne({"_id": "t1/bytes/p1"}, stored, upsert=True)
