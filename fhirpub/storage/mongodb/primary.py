"""Reads from the primary, never older than what any client has already seen.

A new primary has all that was acknowledged, but for a moment it does not know of the last of it
that a majority has it, and a read of what a majority has does not show it: a report that was
registered an instant ago would not be there. It knows once a majority has taken over something
of its own. A ``linearizable`` read waits for that, so that each primary is asked for one before
it is believed; and if another took over while an answer was on its way, it is asked for again.
See ADR 9. What waits for a primary that froze is interrupted once another is known.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any, TypeVar
from weakref import ReferenceType, ref

import pymongo
from pymongo import MongoClient
from pymongo.errors import AutoReconnect, PyMongoError
from pymongo.monitoring import (
    ServerHeartbeatFailedEvent,
    ServerHeartbeatListener,
    ServerHeartbeatStartedEvent,
    ServerHeartbeatSucceededEvent,
)
from pymongo.read_concern import ReadConcern
from pymongo.server_description import ServerDescription
from pymongo.topology_description import TopologyDescription

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.mongodb.errors import within
from fhirpub.storage.mongodb.schema import PROBE, STORE, Database

Term = tuple[object, ...]
"""A time in office: the member that was elected, and by which election."""

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
        self._proof: asyncio.Task[StoreUnavailable | None] | None = None

    async def answer(self, look: Callable[[], Awaitable[R]]) -> R:
        """Return what a read finds, within the deadline; raises StoreUnavailable."""
        async with within(self._seconds):
            while True:
                term = await self.verified_term()
                found = await self._retry_once(look)
                if self._current_term() == term:
                    return found

    async def verified_term(self) -> Term:
        """Return the present term, once its primary knows all that was acknowledged."""
        while (term := self._current_term()) is None or term != self._trusted:
            # One barrier read for all waiters, with its own deadline: it must not be started again
            # by each of them with what the one before has left of its time. If it fails,
            # later waiters have time for another.
            under_way = self._proof
            if under_way is None or under_way.done():
                self._proof = asyncio.create_task(self._prove(), context=Context())
                problem = await asyncio.shield(self._proof)
                if problem is not None:
                    raise StoreUnavailable(problem.reason)
            else:
                await asyncio.shield(under_way)
        return term

    async def _prove(self) -> StoreUnavailable | None:
        """Trust the present term, or return why not."""
        term = self._current_term()
        try:
            async with within(self._seconds):
                await self._retry_once(lambda: self._certain.find({"_id": PROBE}).to_list(None))
        except StoreUnavailable as problem:
            return problem
        if self._current_term() == term:
            self._trusted = term
        return None

    async def _retry_once(self, look: Callable[[], Awaitable[R]]) -> R:
        """Try once with half of the time, and once more.

        A primary that fell silent, with connections still open, would use all of it if no other
        takes over. If another does, a cursor with batches left is lost with the connection.
        """
        try:
            with pymongo.timeout(self._seconds / 2):
                return await look()
        except PyMongoError as error:
            if not error.timeout and not isinstance(error, AutoReconnect):
                raise
        return await look()

    def _current_term(self) -> Term | None:
        """Return the term that the driver knows of; None while there is no primary."""
        description = self._client.topology_description
        if description is not self._description:
            self._description, self._term = description, _term_of(description)
        return self._term


class FormerPrimaries(ServerHeartbeatListener):
    """Interrupts operations that wait for a former primary as soon as another is known.

    A process that was stopped, or a host that was cut off, leaves its connections open: what was
    sent to it would wait until its timeout. The driver repeats what is interrupted, as after any
    lost connection: it asks the new primary, and a write has the same number there, so that it
    takes effect once. Without this listener the driver interrupts only after a monitor received
    nothing for `connectTimeoutMS` and `heartbeatFrequencyMS`, half a minute by default.
    """

    def __init__(self) -> None:
        self._client: ReferenceType[MongoClient[dict[str, Any]]] | None = None
        self._known: object = None
        self._lock = threading.Lock()

    def observe(self, client: MongoClient[dict[str, Any]]) -> None:
        """Interrupt operations of this client, which has this listener."""
        self._client = ref(client)

    def started(self, event: ServerHeartbeatStartedEvent) -> None:  # noqa: ARG002
        """Interrupt if there is a new primary.

        A monitor's next heartbeat starts when the driver has taken in the last one: what is
        interrupted now is repeated on the new primary. Topology events come up to a second later.
        """
        client = None if self._client is None else self._client()
        if client is None:
            return
        with self._lock:  # each server's monitor is a thread
            primary = _primary_of(client.topology_description)
            if primary is not None and primary.address != self._known:
                self._known = primary.address
                _interrupt_all_but(client, primary.address)

    def succeeded(self, event: ServerHeartbeatSucceededEvent) -> None:
        """Do nothing: the driver has not taken in the reply yet."""

    def failed(self, event: ServerHeartbeatFailedEvent) -> None:
        """Do nothing: a server that is silent may still be the primary."""


def _interrupt_all_but(client: MongoClient[dict[str, Any]], primary: object) -> None:
    # The driver has no public name for this. It interrupts in the same way on its own.
    servers = client._topology._servers  # noqa: SLF001
    for address, server in list(servers.items()):
        if address == primary:
            server.pool.ready()  # if it was reset for another that was primary in between
        else:
            server.pool.reset(interrupt_connections=True)


def _term_of(description: TopologyDescription) -> Term | None:
    primary = _primary_of(description)
    if primary is not None:
        return primary.address, primary.election_id
    return () if description.topology_type_name in _WITHOUT_ELECTIONS else None


def _primary_of(description: TopologyDescription) -> ServerDescription | None:
    servers = description.server_descriptions().values()
    return next((server for server in servers if server.server_type_name == "RSPrimary"), None)
