"""The group commit of a MongoDB store, and how an unknown outcome becomes a known one.

See ADR 8.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

import pymongo
from bson.objectid import ObjectId
from bson.raw_bson import RawBSONDocument
from pymongo.errors import BulkWriteError, PyMongoError

from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.logging import logger
from fhirpub.storage.mongodb.documents import Addition, Key, refresh_update
from fhirpub.storage.mongodb.errors import DUPLICATE_KEY, reason, was_not_executed
from fhirpub.storage.mongodb.schema import VERSION_KEY, Records
from fhirpub.storage.mongodb.stored_bytes import StoredBytes

_TOO_LATE_SECONDS = 0.02
_PAUSE_SECONDS = 0.05
_PIECES_AT_ONCE = 4
"""One megabyte, which the server takes in some ten milliseconds."""

_log = logger()


class Additions:
    """Adds versions in batches.

    The driver retries on its own, and then an insert that was already applied counts once. What
    it gives up on may have happened or not. Then the key is read: what a majority has will stay,
    and where it has nothing, a ``linearizable`` read is answered by the true primary. Our nonce
    under the key means that the insert was ours. Another's means that the key is taken. If there
    is nothing, the same insert is sent once more, nonce and all; should the first still arrive,
    one of the two finds the key taken, and both are ours.
    """

    def __init__(
        self,
        versions: Records,
        certain: Records,
        *,
        blobs: Records,
        pieces: Records,
        stored: StoredBytes,
        seconds: float,
    ) -> None:
        self._versions = versions
        self._certain = certain
        self._blobs = blobs
        self._pieces = pieces
        self._stored = stored
        self._seconds = seconds

    async def commit(self, batch: Sequence[Addition]) -> Sequence[bool | Exception]:
        """Return for each addition whether it took its key, or that this is unknown."""
        time = _Time(self._seconds)
        owners: dict[Key, ObjectId] = {}
        why = "outcome unknown"
        ready = batch
        try:
            # In this order: what is named is there before anything names it.
            blobs = [blob for addition in batch for blob in addition.blobs]
            await self._keep(self._blobs, blobs, time)
        except StoreUnavailable as problem:
            ready, why = [addition for addition in batch if not addition.blobs], problem.reason
        try:
            await self._take_keys(ready, owners, time)
        except StoreUnavailable as problem:
            why = problem.reason
        ours = [addition for addition in ready if owners.get(addition.key) == addition.nonce]
        self._stored.add_all((addition.tenant, addition.stored) for addition in ours)
        return [
            owners[addition.key] == addition.nonce
            if addition.key in owners
            else StoreUnavailable(why)
            for addition in batch
        ]

    async def write_pieces(self, addition: Addition) -> None:
        """Write the pieces of large documents, some at a time; raises StoreUnavailable.

        They are written before the addition is in a batch, which would wait for them, and so that
        the server takes other writes in between.
        """
        time = _Time(self._seconds)
        for start in range(0, len(addition.pieces), _PIECES_AT_ONCE):
            some = addition.pieces[start : start + _PIECES_AT_ONCE]
            await self._keep(self._pieces, some, time)

    async def _keep(
        self, records: Records, documents: Sequence[dict[str, Any]], time: _Time
    ) -> None:
        """Write blobs, or pieces of them; each write may be repeated.

        Most are new: to insert them all costs less than to ask for each whether it is there.
        Those that are, or may be, are marked as fresh.
        """
        known = await self._insert(records, documents, time) if documents else ()
        if records is self._blobs:
            new = [blob for place, blob in enumerate(documents) if place not in known]
            self._stored.add_all((blob["tenant"], blob["size"]) for blob in new)
        writes = [refresh_update(documents[index]) for index in known]
        for last in (False, True):
            if not writes:
                return
            try:
                with time.half():
                    await records.bulk_write(writes, ordered=False)
            except PyMongoError as error:
                if last or was_not_executed(error):
                    raise StoreUnavailable(reason(error)) from None
            else:
                return

    async def _take_keys(
        self, batch: Sequence[Addition], owners: dict[Key, ObjectId], time: _Time
    ) -> None:
        """Insert, and note the nonce that each key has then."""
        missing = batch
        for _ in ("first", "once more"):
            if not missing:
                return
            documents = [addition.document for addition in missing]
            places = await self._insert(self._versions, documents, time)
            doubtful = {missing[place] for place in places}
            owners |= {
                addition.key: addition.nonce for addition in missing if addition not in doubtful
            }
            if doubtful:
                owners |= await self._nonces([addition.key for addition in doubtful], time)
            missing = [addition for addition in doubtful if addition.key not in owners]

    async def _insert(
        self, records: Records, documents: Sequence[dict[str, Any] | RawBSONDocument], time: _Time
    ) -> Collection[int]:
        """Return the places of those of which it is not certain that they were inserted.

        Raises StoreUnavailable if it is certain that none was.
        """
        try:
            with time.half():
                await records.insert_many(documents, ordered=False)
        except BulkWriteError as error:
            refused = error.details["writeErrors"]
            if error.details["writeConcernErrors"]:  # applied, but it may be undone
                _log_refused("not yet durable", error, error.details["writeConcernErrors"])
                return range(len(documents))
            if any(item["code"] != DUPLICATE_KEY for item in refused):
                _log_refused("not written", error, refused)
            return {item["index"] for item in refused}
        except PyMongoError as error:
            if was_not_executed(error):
                raise StoreUnavailable(reason(error)) from None
            _log.warning("outcome unknown", reason=reason(error), documents=len(documents))
            return range(len(documents))
        return ()

    async def _nonces(self, keys: Sequence[Key], time: _Time) -> dict[Key, ObjectId]:
        """Return the nonces of keys that are taken; retry until the answer is certain.

        What a majority has will stay, on any member, and is cheap to read. Only what is not
        found that way needs the dear question.
        """
        found: dict[Key, ObjectId] = {}
        with suppress(PyMongoError):
            found = await self._look(self._versions, keys, time)
        while missing := [key for key in keys if key not in found]:
            try:
                return found | await self._look(self._certain, missing, time)
            except PyMongoError as error:
                if time.is_up:
                    raise StoreUnavailable(reason(error)) from None
                await asyncio.sleep(_PAUSE_SECONDS)
        return found

    async def _look(
        self, versions: Records, keys: Sequence[Key], time: _Time
    ) -> dict[Key, ObjectId]:
        wanted = [{"id": resource_id, "version": version} for resource_id, version in keys]
        shown = {"id": True, "version": True}
        with time.half():
            looking = versions.find({"$or": wanted}, shown, hint=VERSION_KEY)
            found = await looking.to_list(None)
        return {(document["id"], document["version"]): document["_id"] for document in found}


class _Time:
    """What a batch has left. Each step may take half of it, so that another can follow."""

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + seconds

    @property
    def is_up(self) -> bool:
        return self._end - self._loop.time() < _TOO_LATE_SECONDS

    def half(self) -> AbstractContextManager[None]:
        if self.is_up:
            raise StoreUnavailable("deadline exceeded")
        return pymongo.timeout((self._end - self._loop.time()) / 2)


def _log_refused(event: str, error: BulkWriteError, problems: Iterable[dict[str, object]]) -> None:
    codes = sorted({str(problem.get("code")) for problem in problems})
    _log.warning(event, reason=reason(error), codes=" ".join(codes))
