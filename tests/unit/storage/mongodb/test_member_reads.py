"""How members are looked for in the versions that brought them."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.storage.contract import SMALL_BYTES
from fhirpub.storage.mongodb import member_reads
from fhirpub.storage.mongodb.member_reads import MemberReads, _by_key, filter_by_key
from fhirpub.storage.mongodb.projections import members_with


class _Versions:
    """A collection that records what is asked of it."""

    def __init__(self, *found: dict[str, Any]) -> None:
        self._found = [*found]
        self.asked: list[Any] = []

    def find(self, wanted: Any, shown: Any, **options: Any) -> None:
        self.asked.append((wanted, shown, options))

    def aggregate(self, pipeline: Any) -> None:
        self.asked.append(pipeline)

    async def answer(self, ask: Any) -> list[dict[str, Any]]:
        ask()
        return self._found

    def reads(self) -> MemberReads:
        return MemberReads(self, self.answer, seconds=10)  # type: ignore[arg-type]


def _carrier(version: int, *members: tuple[str, int]) -> dict[str, Any]:
    brought = [{"id": name, "version": number} for name, number in members]
    return {"id": "c", "version": version, "tenant": "t", "updated": 5, "members": brought}


def _member(name: str, number: int, *, of: int) -> dict[str, Any]:
    carrier = {"id": "c", "version": of}
    return {"id": name, "version": number, "tenant": "t", "updated": 5, "carrier": carrier}


def test_the_carrier_of_a_version_has_no_lower_number() -> None:
    assert filter_by_key(("m", 3)) == {
        "members.id": "m",
        "version": {"$gte": 3},
        "members": {"$elemMatch": {"id": "m", "version": 3}},
    }


def test_members_are_returned_by_their_own_keys() -> None:
    found = _by_key([_carrier(7, ("m", 1), ("n", 2)), _carrier(8, ("m", 2))])

    assert found == {
        ("m", 1): _member("m", 1, of=7),
        ("n", 2): _member("n", 2, of=7),
        ("m", 2): _member("m", 2, of=8),
    }


def _steps(pipeline: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: item for step in pipeline for name, item in step.items()}


async def test_the_latest_version_of_a_member_is_in_its_last_carrier() -> None:
    versions = _Versions(_carrier(8, ("m", 2)))

    assert await versions.reads().latest.get("m") == _member("m", 2, of=8)

    steps = _steps(versions.asked[0])
    assert steps["$match"] == {"members.id": "m"}
    assert steps["$sort"] == {"version": -1}
    assert steps["$limit"] == 1
    assert steps["$project"]["members"] == members_with(["m"], None)


async def test_a_version_of_a_member_is_in_the_first_carrier_that_has_it() -> None:
    versions = _Versions(_carrier(8, ("m", 2)))

    assert await versions.reads().exact.get(("m", 2)) == _member("m", 2, of=8)

    steps = _steps(versions.asked[0])
    assert steps["$match"] == filter_by_key(("m", 2))
    assert steps["$sort"] == {"version": 1}
    assert steps["$limit"] == 1


async def test_several_members_are_looked_for_together() -> None:
    versions = _Versions(_carrier(7, ("m", 1), ("n", 2)))

    found = await versions.reads()._fetch_latest(["m", "n"])

    assert found == {"m": _member("m", 1, of=7), "n": _member("n", 2, of=7)}
    (pipeline,) = versions.asked
    union = pipeline[-1]["$unionWith"]
    assert union["coll"] == "version"
    assert union["pipeline"][0] == {"$match": {"members.id": "n"}}


def test_of_what_is_large_the_keys_alone_are_returned() -> None:
    step: dict[str, Any] = member_reads._IF_SMALL
    condition = step["$set"]["members"]["$cond"]

    assert condition[0] == {"$lte": [{"$bsonSize": "$$ROOT"}, SMALL_BYTES]}
    assert condition[1] == "$members"
    assert condition[2]["$map"]["in"] == {"id": "$$this.id", "version": "$$this.version"}


async def test_a_history_is_that_of_one_member_below_a_version_newest_first() -> None:
    versions = _Versions(_carrier(8, ("m", 2)), _carrier(7, ("m", 1)))

    history = await versions.reads().history("t", "m", below=3, limit=9)

    assert [found["version"] for found in history] == [2, 1]
    ((wanted, shown, options),) = versions.asked
    assert wanted == {
        "members.id": "m",
        "tenant": "t",
        "members": {"$elemMatch": {"id": "m", "version": {"$lt": 3}}},
    }
    assert shown["members"] == members_with(["m"], None)
    assert options == {
        "sort": [("version", -1)],
        "hint": "version_by_member",
        "limit": -9,
        "batch_size": 9,
    }


@pytest.mark.parametrize(("at_once", "most"), [(True, 2), (False, 0)])
async def test_members_of_a_page_are_read_once_from_each_of_their_carriers(
    *, at_once: bool, most: int
) -> None:
    places = [_member("m", 1, of=7), _member("n", 2, of=7), _member("m", 2, of=8)]
    versions = _Versions(_carrier(7, ("m", 1), ("n", 2)))

    found = await versions.reads().fetch(places, frozenset({"code"}), at_once=at_once)

    assert found.keys() == {("m", 1), ("n", 2)}
    ((wanted, shown, options),) = versions.asked
    assert sorted(wanted["$or"], key=lambda one: one["version"]) == [
        {"version": 7, "id": {"$in": ["c"]}},
        {"version": 8, "id": {"$in": ["c"]}},
    ]
    assert shown["members"] == members_with(["m", "n", "m"], frozenset({"code"}))
    assert options == {"hint": "version_key", "limit": -most, "batch_size": most}


async def test_a_page_without_members_asks_for_none() -> None:
    versions = _Versions()

    assert await versions.reads().fetch([], None) == {}
    assert versions.asked == []
