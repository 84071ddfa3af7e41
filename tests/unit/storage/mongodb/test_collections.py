"""What every part of a MongoDB store does with its collections."""

from __future__ import annotations

from typing import Any

import pytest
from pymongo.errors import AutoReconnect, DuplicateKeyError

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.mongodb.collections import SEVERAL, OnDatabase, one_batch


class _Collection:
    """A collection that records writes, or fails."""

    def __init__(self, failure: Exception | None = None) -> None:
        self._failure = failure
        self.calls: list[Any] = []

    async def replace_one(self, wanted: Any, document: Any, *, upsert: bool = False) -> None:
        self._called(wanted, document, upsert)

    async def insert_one(self, document: Any) -> None:
        self._called(document)

    def find(self, wanted: Any, shown: Any, **options: Any) -> _Collection:
        self._called(wanted, shown, options)
        return self

    async def to_list(self, most: int | None) -> list[Any]:
        return [{"most": most}]

    def _called(self, *arguments: Any) -> None:
        self.calls.append(arguments)
        if self._failure:
            raise self._failure


class _Part(OnDatabase):
    _deadline = 20.0

    def __init__(self, failure: Exception | None = None) -> None:
        self.found = _Collection(failure)
        self.names: list[str] = []

    def _collection(self, name: str) -> Any:
        self.names.append(name)
        return self.found

    @property
    def _primary(self) -> Any:
        return self

    async def answer(self, look: Any) -> Any:
        return await look()


async def test_what_is_put_replaces_what_has_its_id_or_is_added() -> None:
    part = _Part()

    await part._put("client", {"_id": "a", "name": "Ana"})

    assert part.found.calls == [({"_id": "a"}, {"_id": "a", "name": "Ana"}, True)]
    assert part.names == ["client"]


async def test_what_is_added_is_inserted() -> None:
    part = _Part()

    assert await part._add("client", {"_id": "a"}) is True
    assert part.found.calls == [({"_id": "a"},)]


async def test_what_meets_at_its_id_is_not_added() -> None:
    assert await _Part(DuplicateKeyError("a value"))._add("client", {"_id": "a"}) is False


async def test_any_other_failure_is_unavailable_without_its_words() -> None:
    part = _Part(AutoReconnect("a value"))

    for call in (part._add("client", {"_id": "a"}), part._put("client", {"_id": "a"})):
        with pytest.raises(StoreUnavailable) as failed:
            await call
        assert failed.value.reason == "AutoReconnect"


async def test_a_list_is_all_that_is_found_as_it_is_asked_for() -> None:
    part = _Part()

    assert await part._list("hold", {"a": 1}, {"b": 1}, limit=3) == [{"most": None}]
    assert await part._list("hold", {}) == [{"most": None}]
    assert part.found.calls == [({"a": 1}, {"b": 1}, {"limit": 3}), ({}, None, {})]


def test_a_single_batch_has_so_many_or_all() -> None:
    assert one_batch(5) == {"limit": -5, "batch_size": 5}
    assert one_batch(0) == {"limit": 0, "batch_size": 0}


def test_three_batches_may_be_on_their_way_and_a_megabyte_goes_alone() -> None:
    assert (SEVERAL.alone, SEVERAL.in_flight) == (1024 * 1024, 3)
