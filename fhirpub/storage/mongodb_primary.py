"""Asking the primary, so that no answer is older than what anybody was told.

A new primary has all that was acknowledged, but for a moment it does not know of the last of it
that a majority has it, and a read of what a majority has does not show it: a report that was
registered an instant ago would not be there. It knows once a majority has taken over something
of its own. A ``linearizable`` read waits for that, so that each primary is asked for one before
it is believed; and if another took over while an answer was on its way, it is asked for again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pymongo
from pymongo import MongoClient
from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.topology_description import TopologyDescription

from fhirpub.storage.mongodb_outcomes import within
from fhirpub.storage.mongodb_schema import PROBE, STORE, Database

Term = tuple[object, ...]
"""A time in office: who was elected, and by which election."""

_WITHOUT_ELECTIONS = ("Single", "Sharded", "LoadBalanced")
R = TypeVar("R")


class Primary:
    """The primary of a replica set, whichever that is at the moment.

    ``certain`` is the read concern of that name (`mongodb_server.Concerns`). Elections behind a
    router are not seen from here, and a single server has none: there every answer is taken as
    it comes.
    """

    def __init__(self, database: Database, *, certain: ReadConcern, seconds: float) -> None:
        self._client: MongoClient[dict[str, Any]] = database.client.delegate
        self._certain = database[STORE].with_options(read_concern=certain)
        self._seconds = seconds
        self._description: TopologyDescription | None = None
        self._term: Term | None = None
        self._trusted: Term | None = None
        self._proving = asyncio.Lock()

    async def answer(self, look: Callable[[], Awaitable[R]]) -> R:
        """Return what a read finds, within the deadline; raises StoreUnavailable."""
        async with within(self._seconds):
            while True:
                term = await self.trusted_term()
                found = await self._twice(look)
                if self._current_term() == term:
                    return found

    async def trusted_term(self) -> Term:
        """Return the present term, once its primary knows all that was acknowledged."""
        while (term := self._current_term()) is None or term != self._trusted:
            async with self._proving:
                if (term := self._current_term()) is None or term != self._trusted:
                    await self._twice(self._look_for_certain)
                    if self._current_term() == term:
                        self._trusted = term
        return term

    def _look_for_certain(self) -> Awaitable[object]:
        return self._certain.find({"_id": PROBE}).to_list(None)

    async def _twice(self, look: Callable[[], Awaitable[R]]) -> R:
        """Try once with half of the time, and once more.

        A primary that fell silent, with connections that nobody ended, would have all of it,
        while another took over long ago.
        """
        try:
            with pymongo.timeout(self._seconds / 2):
                return await look()
        except PyMongoError as error:
            if not error.timeout:
                raise
        return await look()

    def _current_term(self) -> Term | None:
        """Return the term that the driver knows of; None while there is no primary."""
        description = self._client.topology_description
        if description is not self._description:
            self._description, self._term = description, _term_of(description)
        return self._term


def _term_of(description: TopologyDescription) -> Term | None:
    for each in description.server_descriptions().values():
        if each.server_type_name == "RSPrimary":
            return each.address, each.election_id
    return () if description.topology_type_name in _WITHOUT_ELECTIONS else None
