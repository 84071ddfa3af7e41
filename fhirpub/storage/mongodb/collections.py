"""What every part of a MongoDB store does with its collections, within its deadline."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from pymongo.errors import DuplicateKeyError

from fhirpub.storage.batching import Bounds
from fhirpub.storage.mongodb.errors import within
from fhirpub.storage.mongodb.primary import Primary
from fhirpub.storage.mongodb.schema import Records

SEVERAL = Bounds(alone=1024 * 1024, in_flight=3)
"""The driver works in threads and the server beside us: while one batch is away, others can be.

A megabyte takes the server some ten milliseconds, a batch of small versions a few.
"""


def one_batch(most: int) -> dict[str, int]:
    """Return the options for a single batch, which the server ends at `MAX_PAGE_BYTES`; 0: all."""
    return {"limit": -most, "batch_size": most}


class OnDatabase(ABC):
    """What works on a database between its start and its stop."""

    _deadline: float

    @abstractmethod
    def _collection(self, name: str) -> Records:
        """Return a collection; raises StoreUnavailable before the start and after the stop."""

    @property
    @abstractmethod
    def _primary(self) -> Primary:
        """Return the collection for reads; raises StoreUnavailable as well."""

    async def _put(self, name: str, document: dict[str, Any]) -> None:
        collection = self._collection(name)
        async with within(self._deadline):
            await collection.replace_one({"_id": document["_id"]}, document, upsert=True)

    async def _add(self, name: str, document: dict[str, Any]) -> bool:
        """Add a document unless there is one with its id; return whether it was added."""
        collection = self._collection(name)
        async with within(self._deadline):
            try:
                await collection.insert_one(document)
            except DuplicateKeyError:
                return False
            return True

    async def _list(
        self,
        name: str,
        wanted: dict[str, Any],
        shown: dict[str, Any] | None = None,
        **options: Any,
    ) -> list[dict[str, Any]]:
        """Return what is found; ``options`` are those of ``find``."""
        collection = self._collection(name)
        return await self._primary.answer(
            lambda: collection.find(wanted, shown, **options).to_list(None)
        )
