"""What a store in MongoDB has between its start and its stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from functools import partial

from fhirpub.errors import StoreUnavailable, Throttled
from fhirpub.runtime.fair_turns import FairTurns
from fhirpub.storage.contract import SMALL_BYTES, Blob, Version
from fhirpub.storage.fair_commit import FairCommit
from fhirpub.storage.mongodb import schema
from fhirpub.storage.mongodb.collections import SEVERAL
from fhirpub.storage.mongodb.documents import Addition, encode_addition
from fhirpub.storage.mongodb.primary import Primary
from fhirpub.storage.mongodb.reads import Reads
from fhirpub.storage.mongodb.removal.reuse import Reuse
from fhirpub.storage.mongodb.schema import Database, Records
from fhirpub.storage.mongodb.server_checks import Concerns
from fhirpub.storage.mongodb.stored_bytes import StoredBytes
from fhirpub.storage.mongodb.writes import Additions

_FEW_VALUES = 500
"""More search values than a report has with forty results; the server takes 2 ms for so many."""
_FEW_MEMBERS = 100
"""To encode more takes more than five milliseconds."""
_SHORT_BYTES = 4 * 1024 * 1024
_MAX_LONG, _LONG_PER_TENANT = 2, 1
"""Fewer than there are batches on their way at a time: one is left for all other versions."""
_MAX_LARGE, _LARGE_PER_TENANT = 4, 2
"""So many versions have pieces of their documents written at a time."""


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
        self.reuse = Reuse(self.collections[schema.ERASURE], primary=self.primary)
        self._writes = Additions(
            versions,
            certain=versions.with_options(read_concern=concerns.certain),
            blobs=blobs,
            pieces=pieces,
            stored=self.stored,
            seconds=seconds,
        )
        self.additions: FairCommit[Addition, bool] = FairCommit(
            self._writes.commit,
            owner_of=lambda addition: addition.tenant,
            deadline_seconds=seconds,
            bounds=SEVERAL,
        )
        self._seconds = seconds
        self._large = FairTurns(max_turns=_MAX_LARGE, per_owner=_LARGE_PER_TENANT)
        self._adding_large: set[asyncio.Task[bool]] = set()
        self._long = FairTurns(max_turns=_MAX_LONG, per_owner=_LONG_PER_TENANT)
        self.reads = Reads(
            self.collections,
            primary=self.primary,
            one_moment=concerns.one_moment,
            reuse=self.reuse,
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
        addition = await asyncio.to_thread(encode) if is_large else encode()
        if not addition.pieces:
            return await self._add(addition)
        # A caller that goes away changes nothing, as for those that are in a batch.
        adding = asyncio.create_task(self._add_large(addition))
        self._adding_large.add(adding)
        adding.add_done_callback(self._forget)
        return await asyncio.shield(adding)

    async def _add_large(self, addition: Addition) -> bool:
        """Add a version once the pieces of its documents are written."""
        async with self._turn(self._large, addition.tenant):
            await self._writes.write_pieces(addition)
        return await self._add(addition.without_pieces())

    def _forget(self, added: asyncio.Task[bool]) -> None:
        self._adding_large.discard(added)
        if not added.cancelled():
            added.exception()  # its caller may have gone away

    async def _add(self, addition: Addition) -> bool:
        """Add a version.

        Those with many search values, or of many megabytes, wait for a turn of their tenant: the
        batch that one of them is in takes long.
        """
        if addition.values <= _FEW_VALUES and addition.size <= _SHORT_BYTES:
            return await self.additions.add(addition, size=addition.size)
        async with self._turn(self._long, addition.tenant):
            return await self.additions.add(addition, size=addition.size)

    @asynccontextmanager
    async def _turn(self, turns: FairTurns, tenant: str) -> AsyncGenerator[None]:
        """Hold a turn; raises StoreUnavailable if there is none in time."""
        try:
            await turns.take(tenant, seconds=self._seconds)
        except (Throttled, TimeoutError):
            raise StoreUnavailable("too many calls are waiting") from None
        try:
            yield
        finally:
            turns.release(tenant)

    async def drain(self) -> None:
        """Finish the writes that were handed in."""
        while self._adding_large:
            await asyncio.wait(self._adding_large)
        await self.additions.drain()
        await self.stored.drain()
