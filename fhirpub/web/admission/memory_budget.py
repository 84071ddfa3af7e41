"""Admission control for large request and response bodies: a byte budget with a FIFO queue.

A handler reserves memory before it reads a large body. While it waits, nothing is read from the
connection, so that TCP holds the client back (D-168). For a large response, memory is reserved
once its size is known (`large_responses.py`, D-280).
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Awaitable
from dataclasses import dataclass

from tornado.iostream import IOStream

from fhirpub.errors import Busy
from fhirpub.http.reader import is_signalled
from fhirpub.web.message.request import Request

_LOOK_SECONDS = 1.0
"""How often a waiting request is checked for a client that has disconnected."""
_DISCONNECTED = getattr(select, "POLLRDHUP", select.POLLHUP)
_RETRY_SECONDS = 5


@dataclass(slots=True)
class _Reservation:
    """Bytes that a request holds or waits for; ``turn`` is resolved when they are granted."""

    size: int
    owner: str
    turn: asyncio.Future[None]


class MemoryBudget:
    """Shares ``max_bytes`` among large requests; a request larger than that runs alone.

    An owner holds at most ``share`` of it, or one single request that is larger.
    """

    def __init__(self, max_bytes: int, *, patience_seconds: float, share: float = 1.0) -> None:
        self._most = max_bytes
        self._most_of_one = max_bytes * share
        self._patience = patience_seconds
        self._taken: dict[Request, _Reservation] = {}
        self._queue: dict[Request, _Reservation] = {}

    def __contains__(self, request: Request) -> bool:
        """Return whether a request holds a reservation."""
        return request in self._taken

    def acquire(self, request: Request, size: int, *, owner: str = "") -> Awaitable[None] | None:
        """Reserve ``size`` bytes: at once, or by awaiting the returned object.

        The wait ends when the bytes are granted, or when the client has disconnected; its
        connection is closed then. After ``patience_seconds`` it raises Busy.
        """
        place = _Reservation(size, owner, asyncio.get_running_loop().create_future())
        self._queue[request] = place
        self._admit()
        return None if place.turn.done() else self._wait(request, place.turn)

    def shrink(self, request: Request, size: int) -> None:
        """Shrink a reservation to ``size`` bytes, now that the body is complete."""
        if request in self._taken:
            self._taken[request].size = size
            self._admit()

    def release(self, request: Request) -> None:
        """Release a request's reservation, if it has one."""
        if self._taken.pop(request, None) is not None:
            self._admit()

    def _admit(self) -> None:
        """Admit waiting requests in FIFO order, which prevents starvation.

        Only requests whose owner has used up its share are skipped.
        """
        for request, place in [*self._queue.items()]:
            taken = sum(reservation.size for reservation in self._taken.values())
            own = sum(
                reservation.size
                for reservation in self._taken.values()
                if reservation.owner == place.owner
            )
            if taken and taken + place.size > self._most:
                return
            if own and own + place.size > self._most_of_one:
                continue
            del self._queue[request]
            self._taken[request] = place
            place.turn.set_result(None)

    async def _wait(self, request: Request, turn: asyncio.Future[None]) -> None:
        clock = asyncio.get_running_loop().time
        until = clock() + self._patience
        stream: IOStream = request.connection.stream
        while not turn.done():
            if _has_disconnected(stream):
                self._give_up(request)
                stream.close()
                return
            left = until - clock()
            if left <= 0:
                self._give_up(request)
                raise Busy(retry_after=_RETRY_SECONDS)
            await asyncio.wait([turn], timeout=min(left, _LOOK_SECONDS))

    def _give_up(self, request: Request) -> None:
        del self._queue[request]
        self._admit()  # the next in the queue may need less


def _has_disconnected(stream: IOStream) -> bool:
    """Return whether the client has closed its side, even if unread bytes are left."""
    return stream.closed() or is_signalled(stream, _DISCONNECTED)
