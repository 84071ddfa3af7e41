"""What a store in MongoDB has between its start and its stop."""

from __future__ import annotations

from fhirpub.storage.batching import GroupCommit
from fhirpub.storage.mongodb import schema
from fhirpub.storage.mongodb.documents import Addition
from fhirpub.storage.mongodb.primary import Primary
from fhirpub.storage.mongodb.reads import SEVERAL, Reads
from fhirpub.storage.mongodb.schema import Database, Records
from fhirpub.storage.mongodb.server_checks import Concerns
from fhirpub.storage.mongodb.stored_bytes import StoredBytes
from fhirpub.storage.mongodb.writes import Additions


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
        self.reads = Reads(
            versions,
            blobs,
            pieces,
            primary=self.primary,
            one_moment=concerns.one_moment,
            seconds=seconds,
        )

    async def drain(self) -> None:
        """Finish the writes that were handed in."""
        await self.additions.drain()
        await self.stored.drain()
