"""What counts of quotas and of stored bytes, read from documents."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fhirpub.storage.mongodb.quotas import MongoQuotas
from fhirpub.storage.quota_contract import QuotaOverride, QuotaUse


class Documents:
    """What the methods use: lists of documents, and bytes that are not written yet."""

    def __init__(self, *documents: Mapping[str, Any], unwritten: Mapping[str, int] = {}) -> None:
        self.documents, self.wanted = documents, {}  # type: tuple[Mapping[str, Any], ...], Any
        self._stored = SimpleNamespace(unwritten=lambda name: unwritten.get(name, 0))

    async def _list(self, _name: str, wanted: Any) -> list[Mapping[str, Any]]:
        self.wanted = wanted
        return [*self.documents]

    @property
    def store(self) -> MongoQuotas:
        return cast("MongoQuotas", self)


def a_count(**fields: Any) -> dict[str, Any]:
    return {"owner": "t1", "quota": "writes", "period": 60, "used": 1} | fields


async def test_counts_of_all_processes_are_added_by_owner_quota_and_period() -> None:
    documents = Documents(
        a_count(used=2), a_count(used=3), a_count(period=120, used=7), a_count(owner="t2")
    )

    found = await MongoQuotas.quota_counts(documents.store, ["t1", "t2"], now=100)

    assert found == {
        QuotaUse("t1", "writes", 60): 5,
        QuotaUse("t1", "writes", 120): 7,
        QuotaUse("t2", "writes", 60): 1,
    }


async def test_counts_of_owners_that_have_not_ended_are_read_without_the_own() -> None:
    documents = Documents()

    await MongoQuotas.quota_counts(documents.store, ["t1"], now=100, besides="p1")

    assert documents.wanted == {
        "owner": {"$in": ["t1"]},
        "until": {"$gt": 100},
        "process": {"$ne": "p1"},
    }


async def test_overrides_are_in_the_order_of_owners_and_quotas() -> None:
    documents = Documents(
        {"owner": "t2", "quota": "a", "limit": 0},
        {"owner": "t1", "quota": "b", "limit": 2},
        {"owner": "t1", "quota": "a", "limit": 1},
    )

    assert await MongoQuotas.quota_overrides(documents.store) == [
        QuotaOverride("t1", "a", 1),
        QuotaOverride("t1", "b", 2),
        QuotaOverride("t2", "a", 0),
    ]


@pytest.mark.parametrize(
    ("document", "unwritten", "size"),
    [
        ({"base": 5, "added": 2}, 0, 7),
        ({"base": 5}, 0, 5),
        ({"added": 1}, 0, 1),
        ({"base": 5, "added": 2}, 3, 10),
        ({"base": 5, "added": -4}, 0, 1),
    ],
)
async def test_stored_bytes_are_those_counted_added_and_not_written_yet(
    document: Mapping[str, int], unwritten: int, size: int
) -> None:
    documents = Documents({"_id": "t1", **document}, unwritten={"t1": unwritten, "t9": 1})

    assert await MongoQuotas.stored_bytes(documents.store, ["t1"]) == {"t1": size}
    assert documents.wanted == {"_id": {"$in": ["t1"]}}


async def test_tenants_without_stored_bytes_are_left_out() -> None:
    documents = Documents({"_id": "t1", "base": 2, "added": -2}, unwritten={"t3": 1})

    assert await MongoQuotas.stored_bytes(documents.store, ["t1", "t2", "t3"]) == {"t3": 1}
