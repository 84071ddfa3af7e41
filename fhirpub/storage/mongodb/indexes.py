"""Makes the indexes of a collection, and checks those that are there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from motor.motor_asyncio import AsyncIOMotorCollection
from pymongo import IndexModel
from pymongo.errors import OperationFailure

from fhirpub.errors import ConfigurationError

Records = AsyncIOMotorCollection[dict[str, Any]]
Definition = dict[str, Any]

_INDEX_NOT_FOUND = 27
_CONFLICTS = (67, 85, 86)
"""CannotCreateIndex, IndexOptionsConflict, IndexKeySpecsConflict."""


async def make(collection: Records, wanted: Sequence[Definition]) -> None:
    """Make the indexes that are missing.

    Those that are there are asked for too: another process may not have built them to the end.

    Raises ConfigurationError for an index that is in the way, or is not as we make it.
    """
    found = await _indexes_of(collection)
    _compare(found, wanted)
    models = [
        IndexModel(list(document["key"].items()), **_options(document)) for document in wanted
    ]
    try:
        await collection.create_indexes(models)
    except OperationFailure as error:
        if error.code not in _CONFLICTS:
            raise
        raise ConfigurationError(
            f"[storage] url: an index of the collection {collection.name} is in the way of ours"
        ) from None
    if not found.keys() >= {document["name"] for document in wanted}:
        _compare(await _indexes_of(collection), wanted)


async def drop(collection: Records, names: Collection[str]) -> None:
    """Drop indexes of these names, if they are there."""
    for name in {*names} & {*await _indexes_of(collection)}:
        try:
            await collection.drop_index(name)
        except OperationFailure as error:
            if error.code != _INDEX_NOT_FOUND:  # another process has dropped it
                raise


async def require(collection: Records, wanted: Sequence[Definition]) -> None:
    """Raise ConfigurationError unless all indexes are there: queries name them."""
    found = await _indexes_of(collection)
    _compare(found, wanted)
    for document in wanted:
        if document["name"] not in found:
            raise ConfigurationError(
                f"[storage] url: the index {document['name']} is missing, and a newer release has "
                "upgraded the database: start that release"
            )


async def _indexes_of(collection: Records) -> dict[str, Definition]:
    found = await collection.list_indexes().to_list(None)
    return {document["name"]: dict(document) for document in found}


def _compare(found: dict[str, Definition], wanted: Iterable[Definition]) -> None:
    """Raise ConfigurationError for an index of our name that does something else."""
    for document in wanted:
        there = found.get(document["name"], document)
        same_order = list(there["key"].items()) == list(document["key"].items())
        if not same_order or _options(there) != _options(document):
            raise ConfigurationError(
                f"[storage] url: the index {document['name']} is not as this release makes it; "
                "drop it, and the next start creates it again"
            )


def _options(definition: Definition) -> dict[str, Any]:
    # `v` and `ns` are the server's; any other option that is not ours changes what is kept.
    return {name: item for name, item in definition.items() if name not in ("key", "v", "ns")}
