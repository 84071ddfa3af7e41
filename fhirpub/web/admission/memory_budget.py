"""Room for what is large and under way, bodies or answers: who finds none waits, in their order.

The handler of a request takes room before it reads a large body, and nothing of the connection
is read meanwhile: what the client has still to send stays with the client (D-168). What is large
of an answer it takes room for when it has read it (`with_memory_budget.py`, D-280).
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
"""How often those who wait are looked after: have they hung up?"""
_HUNG_UP = getattr(select, "POLLRDHUP", select.POLLHUP)
_RETRY_SECONDS = 5


@dataclass(slots=True)
class _Reservation:
    """How many bytes somebody has, or asks for; who waits for them is told when they are there."""

    size: int
    owner: str
    turn: asyncio.Future[None]


class MemoryBudget:
    """Shares ``most_bytes`` among large requests; one that is larger than that goes alone.

    An owner has at most ``share`` of it, but for one request that is larger.
    """

    def __init__(self, most_bytes: int, *, patience_seconds: float, share: float = 1.0) -> None:
        self._most = most_bytes
        self._most_of_one = most_bytes * share
        self._patience = patience_seconds
        self._taken: dict[Request, _Reservation] = {}
        self._queue: dict[Request, _Reservation] = {}

    def __contains__(self, request: Request) -> bool:
        """Tell whether a request has room."""
        return request in self._taken

    def take(self, request: Request, size: int, *, owner: str = "") -> Awaitable[None] | None:
        """Take room for ``size`` bytes: at once, or by waiting for what is returned.

        The wait ends when it is this request's turn, or when the client has hung up; its
        connection is closed then. After ``patience_seconds`` it raises Busy.
        """
        place = _Reservation(size, owner, asyncio.get_running_loop().create_future())
        self._queue[request] = place
        self._admit()
        return None if place.turn.done() else self._wait(request, place.turn)

    def settle(self, request: Request, size: int) -> None:
        """Give back what was taken beyond ``size``, now that all of the body is here."""
        if request in self._taken:
            self._taken[request].size = size
            self._admit()

    def leave(self, request: Request) -> None:
        """Give back all that was taken, if any was."""
        if self._taken.pop(request, None) is not None:
            self._admit()

    def _admit(self) -> None:
        """Let those in whose turn has come.

        Nobody overtakes, so that nobody waits for ever, but who waits for their owner's share.
        """
        for request, place in [*self._queue.items()]:
            taken = sum(each.size for each in self._taken.values())
            own = sum(each.size for each in self._taken.values() if each.owner == place.owner)
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
            if _has_hung_up(stream):
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
        self._admit()  # who came next may need less


def _has_hung_up(stream: IOStream) -> bool:
    """Tell whether the client has closed its side, even if something that it sent is unread."""
    return stream.closed() or is_signalled(stream, _HUNG_UP)
