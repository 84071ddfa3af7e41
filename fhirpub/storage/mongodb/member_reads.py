"""Reads of members, which are embedded in their carriers: the versions that brought them.

The id of a member shows that it is one (ADR 24), so that no other read looks here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from fhirpub.storage.batching import GroupedReads
from fhirpub.storage.contract import SMALL_BYTES
from fhirpub.storage.mongodb.collections import SEVERAL, one_batch
from fhirpub.storage.mongodb.documents import Document, Key, members_of
from fhirpub.storage.mongodb.projections import members_with
from fhirpub.storage.mongodb.schema import (
    BY_MEMBER,
    VERSION,
    VERSION_KEY,
    Cursor,
    Filter,
    Pipeline,
    Records,
    by_keys,
)

_SHOWN = {"id": 1, "version": 1, "tenant": 1, "updated": 1}
_KEYS = {"$map": {"input": "$members", "in": {"id": "$$this.id", "version": "$$this.version"}}}
_IS_SMALL = {"$lte": [{"$bsonSize": "$$ROOT"}, SMALL_BYTES]}
_IF_SMALL = {"$set": {"members": {"$cond": [_IS_SMALL, "$members", _KEYS]}}}
"""What many ask for together comes together, but for what is large: see `reads.py`."""


class MemberReads:
    """Looks members up; each is returned as a document in the form of a version.

    Look-ups by key are grouped; of what is large they return the keys alone. Each is one step
    through the index, however many versions a member has: the number of its carrier grows with
    its own.
    """

    def __init__(
        self,
        versions: Records,
        answer: Callable[[Callable[[], Cursor]], Awaitable[list[dict[str, Any]]]],
        *,
        seconds: float,
    ) -> None:
        self._versions = versions
        self._answer = answer
        self.latest: GroupedReads[str, Document] = GroupedReads(
            self._fetch_latest, deadline_seconds=seconds, bounds=SEVERAL
        )
        self.exact: GroupedReads[Key, Document] = GroupedReads(
            self._fetch_exact, deadline_seconds=seconds, bounds=SEVERAL
        )

    async def history(
        self, tenant: str, member_id: str, *, below: int, limit: int
    ) -> Sequence[Document]:
        """Return versions of a member, newest first, as many as are in one batch."""
        lower = {"$elemMatch": {"id": member_id, "version": {"$lt": below}}}
        wanted = {"members.id": member_id, "tenant": tenant, "members": lower}
        options = {"sort": [("version", -1)], "hint": BY_MEMBER, **one_batch(limit)}
        shown = _only([member_id])
        found = await self._answer(lambda: self._versions.find(wanted, shown, **options))
        return [member for carrier in found for member in members_of(carrier)]

    async def fetch(
        self,
        places: Sequence[Document],
        needed_values: frozenset[str] | None,
        *,
        at_once: bool = False,
    ) -> Mapping[Key, Document]:
        """Return members by their ids and the keys of their carriers.

        With ``at_once`` only those are returned that are in one batch.
        """
        carriers = {(place["carrier"]["id"], place["carrier"]["version"]) for place in places}
        if not carriers:
            return {}
        options = {"hint": VERSION_KEY, **one_batch(len(carriers) if at_once else 0)}
        shown = _only([place["id"] for place in places], needed_values)
        return _by_key(
            await self._answer(lambda: self._versions.find(by_keys(carriers), shown, **options))
        )

    async def _fetch_latest(self, ids: Collection[str]) -> Mapping[str, Document]:
        found = await self._take([_first({"members.id": id_}, id_, direction=-1) for id_ in ids])
        return {member_id: member for (member_id, _version), member in found.items()}

    async def _fetch_exact(self, keys: Collection[Key]) -> Mapping[Key, Document]:
        return await self._take([_first(filter_by_key(key), key[0], direction=1) for key in keys])

    async def _take(self, steps: Sequence[Pipeline]) -> Mapping[Key, Document]:
        first, *others = steps
        union = [{"$unionWith": {"coll": VERSION, "pipeline": other}} for other in others]
        return _by_key(await self._answer(lambda: self._versions.aggregate([*first, *union])))


def filter_by_key(key: Key) -> Filter:
    """Return what finds the carrier of a version of a member, whose number is no lower."""
    member_id, version = key
    its_key = {"$elemMatch": {"id": member_id, "version": version}}
    return {"members.id": member_id, "version": {"$gte": version}, "members": its_key}


def _first(wanted: Filter, member_id: str, *, direction: int) -> Pipeline:
    """Return what finds the first carrier in an order, with the one member."""
    return [
        {"$match": wanted},
        {"$sort": {"version": direction}},
        {"$limit": 1},
        {"$project": _only([member_id])},
        _IF_SMALL,
    ]


def _only(ids: Collection[str], needed_values: frozenset[str] | None = None) -> dict[str, Any]:
    """Return what of a carrier is needed to return these members."""
    return {**_SHOWN, "members": members_with(ids, needed_values)}


def _by_key(carriers: Iterable[Document]) -> dict[Key, Document]:
    members = (member for carrier in carriers for member in members_of(carrier))
    return {(member["id"], member["version"]): member for member in members}
