"""Indexes are made where they are missing, and refused where they are not ours."""

from __future__ import annotations

from typing import Any

import pytest
from pymongo.errors import OperationFailure

from fhirpub.errors import ConfigurationError
from fhirpub.storage.mongodb import indexes
from tests.unit.storage.mongodb.answers import Found

_WANTED = [
    {"name": "one", "key": {"a": 1, "b": -1}, "unique": True},
    {"name": "two", "key": {"c": 1}, "partialFilterExpression": {"d": True}},
]
_THERE = [
    {"name": "_id_", "key": {"_id": 1}, "v": 2},
    {"name": "one", "key": {"a": 1, "b": -1}, "unique": True, "v": 2, "ns": "x.y"},
    {"name": "two", "key": {"c": 1}, "partialFilterExpression": {"d": True}, "v": 2},
]


class _Collection:
    """A collection with indexes, whose commands may fail with a code."""

    name = "version"

    def __init__(self, *there: list[dict[str, Any]], fails_with: int | None = None) -> None:
        self._there = [*there]
        self._code = fails_with
        self.created: list[dict[str, Any]] = []
        self.dropped: list[str] = []

    def list_indexes(self) -> Found:
        return Found(self._there.pop(0) if len(self._there) > 1 else self._there[0])

    async def create_indexes(self, models: Any) -> None:
        self.created += [model.document for model in models]
        self._fail()

    async def drop_index(self, name: str) -> None:
        self.dropped.append(name)
        self._fail()

    def _fail(self) -> None:
        if self._code is not None:
            raise OperationFailure("a value of a key", self._code)


async def make(collection: _Collection) -> None:
    await indexes.make(collection, _WANTED)  # type: ignore[arg-type]


async def test_missing_indexes_are_made_with_their_options() -> None:
    collection = _Collection(_THERE[:1], _THERE)

    await make(collection)

    made = [{**document, "key": dict(document["key"])} for document in collection.created]
    assert made == _WANTED
    assert [[*document["key"]] for document in collection.created] == [["a", "b"], ["c"]]


async def test_indexes_that_are_there_are_asked_for_too() -> None:
    collection = _Collection(_THERE)

    await make(collection)

    assert [document["name"] for document in collection.created] == ["one", "two"]


@pytest.mark.parametrize(
    "other",
    [
        {"name": "one", "key": {"b": -1, "a": 1}, "unique": True},
        {"name": "one", "key": {"a": 1, "b": 1}, "unique": True},
        {"name": "one", "key": {"a": 1, "b": -1}},
        {"name": "one", "key": {"a": 1, "b": -1}, "unique": True, "sparse": True},
    ],
)
async def test_an_index_of_our_name_that_does_something_else_is_refused(
    other: dict[str, Any],
) -> None:
    collection = _Collection([_THERE[0], other])

    with pytest.raises(ConfigurationError, match="index one is not as this release makes it"):
        await make(collection)

    assert collection.created == []


async def test_what_another_process_made_in_between_is_compared_too() -> None:
    other = {"name": "two", "key": {"c": -1}}

    with pytest.raises(ConfigurationError, match="index two is not as"):
        await make(_Collection(_THERE[:2], [*_THERE[:2], other]))


@pytest.mark.parametrize("code", [67, 85, 86])
async def test_an_index_in_the_way_is_refused_without_the_words_of_the_server(code: int) -> None:
    with pytest.raises(ConfigurationError, match="an index of the collection version") as refused:
        await make(_Collection(_THERE[:1], fails_with=code))

    assert "value" not in str(refused.value)
    assert refused.value.__cause__ is None


async def test_any_other_failure_is_that_of_the_server() -> None:
    with pytest.raises(OperationFailure):
        await make(_Collection(_THERE[:1], fails_with=13))


async def drop(collection: _Collection, *names: str) -> None:
    await indexes.drop(collection, names)  # type: ignore[arg-type]


async def test_indexes_that_are_there_are_dropped() -> None:
    collection = _Collection(_THERE)

    await drop(collection, "two", "three")

    assert collection.dropped == ["two"]


async def test_an_index_that_another_process_has_dropped_is_gone() -> None:
    await drop(_Collection(_THERE, fails_with=27), "two")


async def test_an_index_that_cannot_be_dropped_is_a_failure() -> None:
    with pytest.raises(OperationFailure):
        await drop(_Collection(_THERE, fails_with=13), "two")


async def test_what_has_all_indexes_passes_and_none_is_made() -> None:
    collection = _Collection(_THERE)

    await indexes.require(collection, _WANTED)  # type: ignore[arg-type]

    assert collection.created == []


async def test_an_index_that_is_missing_in_a_newer_database_is_named() -> None:
    with pytest.raises(ConfigurationError, match="the index two is missing"):
        await indexes.require(_Collection(_THERE[:2]), _WANTED)  # type: ignore[arg-type]


async def test_an_index_of_a_newer_database_that_is_another_is_refused() -> None:
    other = {"name": "one", "key": {"a": 1}}

    with pytest.raises(ConfigurationError, match="index one is not as"):
        await indexes.require(_Collection([other, _THERE[2]]), _WANTED)  # type: ignore[arg-type]
