"""Admission control for large request and response bodies: a byte budget with a FIFO queue.

A handler reserves memory for a large body as it arrives: announced bytes that do not come keep no
others out. While it waits, nothing is read from the connection, so that TCP holds the client back
(D-168). For a large response, memory is reserved once its size is known (`large_responses.py`,
D-280).
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

from tornado.iostream import IOStream

from fhirpub.errors import Busy
from fhirpub.http.reader import is_signalled
from fhirpub.web.message.request import Request

_LOOK_SECONDS = 1.0
"""How often a waiting request is checked for a client that has disconnected."""
_DISCONNECTED = getattr(select, "POLLRDHUP", select.POLLHUP)
_RETRY_SECONDS = 5
_DIVIDED = 2 / 3
"""The part of the budget that is divided among the owners that hold some of it."""
_STALLED_SECONDS = 2.0
"""A body that has not grown for so long counts with what has arrived, not with what will."""
_FOR_UNKNOWN = 3 / 4
"""The part of a share that is kept for the oldest body of unknown size, at most."""


@dataclass(slots=True)
class _Reservation:
    """Bytes that a request holds; it is expected to need ``expected`` in all."""

    size: int
    expected: int
    owner: str
    grown: float
    """When it got its last bytes, by the clock of the event loop."""

    def claim(self, now: float, *, at_least: float = 0) -> float:
        """Return how many bytes count against the share of the owner."""
        is_growing = now - self.grown < _STALLED_SECONDS
        return max(self.size, self.expected, at_least) if is_growing else self.size


@dataclass(slots=True)
class _Growth:
    """A reservation that a request waits for; ``turn`` is resolved when it is granted."""

    size: int
    expected: int
    owner: str
    turn: asyncio.Future[None]


class MemoryBudget:
    """Shares ``max_bytes`` among large requests, fairly among their owners, the tenants.

    A request reserves memory step by step, as its body arrives. Owners get equal shares of two
    thirds of the budget; the rest is left for an owner that holds nothing yet. The only request
    of an owner may exceed the share, and one that is larger than the budget is admitted alone.

    An owner begins a further body only if its share has room for all that it has begun: if they
    all stopped half-way, each would wait for the others. So what a body will need counts within
    the share of its owner, as long as the body grows, but never against other owners. The oldest
    one of unknown size, in chunks or in gzip, is expected to need ``largest`` bytes.
    """

    def __init__(self, max_bytes: int, *, patience_seconds: float, largest: int = 0) -> None:
        self._max = max_bytes
        self._largest = largest
        self._patience = patience_seconds
        self._held: dict[Request, _Reservation] = {}
        self._queue: dict[Request, _Growth] = {}
        self._is_full = False
        """Whether one waits for room, which those behind it must not take."""

    def __contains__(self, request: Request) -> bool:
        """Return whether a request holds a reservation."""
        return request in self._held

    def acquire(
        self, request: Request, size: int, *, expected: int = 0, owner: str = ""
    ) -> Awaitable[None] | None:
        """Reserve ``size`` bytes in all: at once, or by awaiting the returned object.

        ``expected`` is how many the request will need in the end, if it knows that.

        The wait ends when the bytes are granted, or when the client has disconnected; its
        connection is closed then. After ``patience_seconds`` it raises Busy.
        """
        turn = asyncio.get_running_loop().create_future()
        growth = self._queue[request] = _Growth(size, expected, owner, turn)
        if not self._is_full:  # nothing was released: requests that wait already go on waiting
            self._grant_if_possible(request, growth)
        self._prevent_deadlock()
        return None if turn.done() else self._wait(request, turn)

    def shrink(self, request: Request, size: int) -> None:
        """Shrink a reservation to ``size`` bytes, now that the body is complete."""
        if request in self._held:
            self._held[request].size = self._held[request].expected = size
            self._admit()

    def release(self, request: Request) -> None:
        """Release a request's reservation, if it has one."""
        if self._held.pop(request, None) is not None:
            self._admit()

    def _admit(self) -> None:
        """Grant what waiting requests ask for, in FIFO order, which prevents starvation.

        Only requests whose owner has used up its share are skipped.
        """
        self._is_full = False
        for request, growth in [*self._queue.items()]:
            self._grant_if_possible(request, growth)
            if self._is_full:
                break
        self._prevent_deadlock()

    def _grant_if_possible(self, request: Request, growth: _Growth) -> None:
        """Grant what a request asks for, or note that the budget is full.

        A request that has to wait for its own share does not make the budget full.
        """
        self._is_full = not self._has_room(request, growth)
        if not self._is_full and not self._exceeds_share(request, growth):
            self._grant(request, growth)

    def _prevent_deadlock(self) -> None:
        """If all that hold memory wait for more, grant it to one: else none would release any."""
        if self._queue and self._held.keys() <= self._queue.keys():
            first = next((held for held in self._queue if held in self._held), None)
            first = first or next(iter(self._queue))
            self._grant(first, self._queue[first])
            self._admit()  # those that were behind it

    def _has_room(self, request: Request, growth: _Growth) -> bool:
        others = sum(held.size for other, held in self._held.items() if other is not request)
        return not others or others + growth.size <= self._max

    def _exceeds_share(self, request: Request, growth: _Growth) -> bool:
        own = [other for other, held in self._held.items() if held.owner == growth.owner]
        if not growth.owner or (own and own[0] is request):  # its oldest body goes on to its end
            return False
        owners = {held.owner for held in self._held.values()} | {growth.owner}
        share = self._max * _DIVIDED / len(owners)
        others = self._claims([other for other in own if other is not request], share)
        is_begun = request in self._held
        needed = growth.size if is_begun else max(growth.size, growth.expected)
        return bool(others) and others + needed > share

    def _claims(self, requests: Sequence[Request], share: float) -> float:
        """Return how many bytes of some requests, the oldest first, count against a share."""
        now = asyncio.get_running_loop().time()
        unknown = next((other for other in requests if not self._held[other].expected), None)
        kept = {unknown: min(self._largest, share * _FOR_UNKNOWN)}
        return sum(self._held[other].claim(now, at_least=kept.get(other, 0)) for other in requests)

    def _grant(self, request: Request, growth: _Growth) -> None:
        del self._queue[request]
        self._held[request] = _Reservation(
            growth.size, growth.expected, growth.owner, asyncio.get_running_loop().time()
        )
        growth.turn.set_result(None)

    async def _wait(self, request: Request, turn: asyncio.Future[None]) -> None:
        clock = asyncio.get_running_loop().time
        until = clock() + self._patience
        stream: IOStream = request.connection.stream
        while not turn.done():
            if has_disconnected(stream):
                self._give_up(request)
                stream.close()
                return
            left = until - clock()
            if left <= 0:
                self._give_up(request)
                raise Busy(retry_after=_RETRY_SECONDS)
            await asyncio.wait([turn], timeout=min(left, _LOOK_SECONDS))
            self._admit()  # a body of the same owner may have stalled

    def _give_up(self, request: Request) -> None:
        del self._queue[request]
        self._admit()  # the next in the queue may need less


def has_disconnected(stream: IOStream) -> bool:
    """Return whether the client has closed its side, even if unread bytes are left."""
    return stream.closed() or is_signalled(stream, _DISCONNECTED)
