"""Deletes the documents that no version refers to."""

from __future__ import annotations

from collections.abc import Sequence

from fhirpub.storage.mongodb import documents, schema
from fhirpub.storage.mongodb.errors import within
from fhirpub.storage.mongodb.quotas import MongoQuotas

_SWEEP_BATCH_SIZE = 100


class BlobSweep(MongoQuotas):
    """The sweep of blobs in the database."""

    async def sweep_blobs(self, tenant: str, *, before: int) -> int:
        # A blob is `loose` until a sweep finds a version that names it; versions stay for ever,
        # so that it is looked at once. What is named by none is deleted only if at that very
        # moment it still was last added before `before`. That cannot hit a document of a report:
        # a version names only what came with it or what an earlier version names. What comes
        # with it was added, fresh, before the version was sent. So either the version was there
        # to be found, or the blob is younger than any request lasts, which `before` is not.
        #
        # So with the pieces of large ones: a piece becomes fresh before its blob, and is `loose`
        # until that is named, for such a blob stays for ever.
        limit = _SWEEP_BATCH_SIZE
        blobs = schema.loose_blobs(tenant, before=before, limit=limit)
        pieces = schema.loose_pieces(tenant, before=before, limit=limit)
        swept = await self._sweep_loose(tenant, schema.BLOB, blobs, before=before)
        await self._sweep_loose(tenant, schema.PIECE, pieces, before=before)
        return swept

    async def _sweep_loose(
        self, tenant: str, name: str, looking: schema.Pipeline, *, before: int
    ) -> int:
        """Delete what is loose, old and named by nothing; return how many."""
        records = self._collection(name)
        swept, handled = 0, _SWEEP_BATCH_SIZE
        while handled == _SWEEP_BATCH_SIZE:
            async with within(self._deadline):
                found = await records.aggregate(looking).to_list(None)
                named = [document["_id"] for document in found if _is_named(document["naming"])]
                unnamed = [document["_id"] for document in found if not document["naming"]]
                await records.update_many({"_id": {"$in": named}}, {"$unset": {"loose": True}})
                old = {"_id": {"$in": unnamed}, "added": {"$lt": before}}
                deleted = (await records.delete_many(old)).deleted_count
                if deleted and name == schema.BLOB:
                    # Version 2 of the schema had no size, so that none was counted.
                    sizes = [item.get("size", 0) for item in found if not item["naming"]]
                    # Another process may have deleted some of them.
                    self._stored.add(tenant, -sum(sizes) * deleted // len(sizes))
                swept += deleted
                handled = len(named) + len(unnamed)
        return swept


def _is_named(naming: Sequence[documents.Document]) -> bool:
    """Return whether any of those that name it stays: a loose blob may not."""
    return any(not document.get("loose") for document in naming)
