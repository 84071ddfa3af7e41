"""The connections of a server: how many it holds, and which it closes to admit another.

A client that opens connections and sends nothing must not keep others out. Connections that wait
for a request make room: those of the address that has most, first those that never had a request,
then those that have waited longest.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from socket import MSG_DONTWAIT, MSG_PEEK, SHUT_WR, socket
from typing import Protocol

_MIN_WAIT_SECONDS = 1.0
"""A younger connection may just be sending its next request."""
_MIN_FIRST_WAIT_SECONDS = 0.1
"""A younger connection may just be sending its first request."""
_DISCARDED_BYTES = 65_536
_ACCEPT_BATCH_SIZE, _GONE_BATCH_SIZE = 4, 64
_SHARE_CLOSED = 8
"""One in so many connections of an address is closed at once, so that the next find room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """How many connections a server holds, in total and from one address; 0: no limit.

    Addresses in ``proxies`` are limited in total alone: many clients are behind them.
    """

    total: int = 0
    per_address: int = 0
    proxies: Sequence[str] = field(default=())


class Closable(Protocol):
    """A connection, as far as the table looks at it."""

    def waiting_since(self) -> float | None:
        """Return when it began to wait for a request, by the loop's clock; None if it does not."""

    def has_served(self) -> bool:
        """Return whether it has had a request."""

    def has_unread(self) -> bool:
        """Return whether something has arrived that is still to be read."""

    def close(self) -> None:
        """Close the connection."""


class ConnectionTable:
    """Counts open connections by address and decides which ones are admitted."""

    def __init__(self, limits: ConnectionLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._proxies = [ipaddress.ip_network(name, strict=False) for name in limits.proxies]
        self._by_address: dict[str, dict[Closable, None]] = {}
        self._none_before: dict[str, float] = {}
        """When a connection of an address can be closed at the earliest, if none could."""
        self._count = 0

    def admits(self, address: str) -> bool:
        """Return whether there is room for one more; closes idle connections for it."""
        limits, own = self._limits, self._by_address.get(address, {})
        if limits.per_address and len(own) >= limits.per_address and not self._is_proxy(address):
            return self._close_waiting(address)
        if limits.total and self._count >= limits.total:
            counts = {name: len(held) for name, held in self._by_address.items()}
            return any(map(self._close_waiting, sorted(counts, key=counts.__getitem__)[::-1]))
        return True

    def add(self, address: str, connection: Closable) -> None:
        """Count a connection."""
        self._by_address.setdefault(address, {})[connection] = None
        self._count += 1

    def remove(self, address: str, connection: Closable) -> None:
        """Stop counting a connection; one that is not counted any more changes nothing."""
        own = self._by_address.get(address, {})
        if connection in own:
            del own[connection]
            self._count -= 1
            if not own:
                del self._by_address[address]
                self._none_before.pop(address, None)

    def _is_proxy(self, address: str) -> bool:
        if not self._proxies:
            return False
        try:
            parsed = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:  # a Unix socket has none
            return True
        return any(parsed in network for network in self._proxies)

    def _close_waiting(self, address: str) -> bool:
        """Close waiting connections of an address; return whether there were any."""
        now, own = self._clock(), self._by_address[address]
        if now < self._none_before.get(address, now):
            return False  # another look would take as long for each connection that is refused
        waiting = {
            connection: moment
            for connection in own
            if (moment := connection.waiting_since()) is not None
        }
        unused = {one: moment for one, moment in waiting.items() if not one.has_served()}
        longest = _longest(unused, before=now - _MIN_FIRST_WAIT_SECONDS)
        longest = longest or _longest(waiting, before=now - _MIN_WAIT_SECONDS)
        # What has sent its request is only waiting for its turn of the loop.
        closable = (connection for connection in longest if not connection.has_unread())
        closed = [*islice(closable, 1 + len(own) // _SHARE_CLOSED)]
        for connection in closed:
            self.remove(address, connection)
            connection.close()
        if not longest:
            self._none_before[address] = min(
                now + _MIN_FIRST_WAIT_SECONDS,
                min(unused.values(), default=now) + _MIN_FIRST_WAIT_SECONDS,
                min(waiting.values(), default=now) + _MIN_WAIT_SECONDS,
            )
        return bool(closed)


def _longest(waiting: Mapping[Closable, float], *, before: float) -> list[Closable]:
    """Return those that have waited since before a moment, the longest first."""
    ordered = sorted(waiting, key=waiting.__getitem__)
    return [connection for connection in ordered if waiting[connection] <= before]


def accept_some(listening: socket) -> Iterator[tuple[socket, str]]:
    """Yield connections that have come, with their addresses; a few, so that others have a turn.

    Each takes a tenth of a millisecond until it is closed. One that its client has closed already
    takes a tenth of that here: a flood of them would fill the backlog and keep others out of it.
    """
    left = 1.0
    while left > 0:
        try:
            accepted, address = listening.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        if _has_gone(accepted):
            accepted.close()
            left -= 1 / _GONE_BATCH_SIZE
        else:
            left -= 1 / _ACCEPT_BATCH_SIZE
            yield accepted, address[0]


def _has_gone(accepted: socket) -> bool:
    """Return whether the client has closed the connection and sent nothing."""
    try:
        return not accepted.recv(1, MSG_PEEK | MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def turn_away(accepted: socket, response: bytes) -> None:
    """Respond to a connection that is one too many, as far as that takes no time."""
    accepted.settimeout(0)
    with suppress(OSError), accepted:
        accepted.send(response)
        accepted.shutdown(SHUT_WR)
        accepted.recv(_DISCARDED_BYTES)  # unread bytes would make the system drop the response
