"""What a store in MongoDB has between its start and its stop."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from functools import partial

from fhirpub.errors import StoreUnavailable, Throttled
from fhirpub.runtime.fair_turns import FairTurns
from fhirpub.storage.batching import GroupCommit
from fhirpub.storage.contract import SMALL_BYTES, Blob, Version
from fhirpub.storage.mongodb import schema
from fhirpub.storage.mongodb.collections import SEVERAL
from fhirpub.storage.mongodb.documents import Addition, encode_addition
from fhirpub.storage.mongodb.primary import Primary
from fhirpub.storage.mongodb.reads import Reads
from fhirpub.storage.mongodb.schema import Database, Records
from fhirpub.storage.mongodb.server_checks import Concerns
from fhirpub.storage.mongodb.stored_bytes import StoredBytes
from fhirpub.storage.mongodb.writes import Additions

_FEW_VALUES = 500
"""More search values than a report has with forty results; the server takes 2 ms for so many."""
_FEW_MEMBERS = 100
"""To encode more takes more than five milliseconds."""
_MAX_DENSE, _DENSE_PER_TENANT = 2, 1
"""Fewer than there are batches on their way at a time: one is left for all other versions."""


class Opened:
    """The collections of an open database, and what reads and writes them."""

    def __init__(self, database: Database, concerns: Concerns, seconds: float) -> None:
        self.collections: dict[str, Records] = {
            collection: database[collection] for collection in schema.COLLECTIONS
        }
        versions, blobs, pieces = (
            self.collections[name] for name in (schema.VERSION, schema.BLOB, schema.PIECE)
        )
        self.stored = StoredBytes(self.collections[schema.STORED_BYTES], seconds=seconds)
        self.primary = Primary(database, certain=concerns.certain, seconds=seconds)
        additions = Additions(
            versions,
            certain=versions.with_options(read_concern=concerns.certain),
            blobs=blobs,
            pieces=pieces,
            stored=self.stored,
            seconds=seconds,
        )
        self.additions: GroupCommit[Addition, bool] = GroupCommit(
            additions.commit, deadline_seconds=seconds, bounds=SEVERAL
        )
        self._seconds = seconds
        self._dense = FairTurns(max_turns=_MAX_DENSE, per_owner=_DENSE_PER_TENANT)
        self.reads = Reads(
            versions,
            blobs,
            pieces,
            primary=self.primary,
            one_moment=concerns.one_moment,
            seconds=seconds,
        )

    async def add(
        self, tenant: str, version: Version, blobs: Collection[Blob], *, now: int
    ) -> bool:
        """Return whether a version took its key, once this is durable.

        Raises StoreUnavailable, and what `encode_addition` raises.
        """
        encode = partial(encode_addition, tenant, version, blobs, now=now)
        is_large = len(version.members) > _FEW_MEMBERS or version.size > SMALL_BYTES
        return await self._add(await asyncio.to_thread(encode) if is_large else encode())

    async def _add(self, addition: Addition) -> bool:
        """Add a version.

        Those with many search values wait for a turn of their tenant: the batch that one of
        them is in takes long.
        """
        if addition.values <= _FEW_VALUES:
            return await self.additions.add(addition, size=addition.size)
        try:
            await self._dense.take(addition.tenant, seconds=self._seconds)
        except (Throttled, TimeoutError):
            raise StoreUnavailable("too many calls are waiting") from None
        try:
            return await self.additions.add(addition, size=addition.size)
        finally:
            self._dense.release(addition.tenant)

    async def drain(self) -> None:
        """Finish the writes that were handed in."""
        await self.additions.drain()
        await self.stored.drain()
