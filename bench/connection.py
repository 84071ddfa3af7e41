"""One keep-alive connection that sends the next request as soon as it has the last response.

It reads only the status line and ``Content-Length``: the generator has to be much faster than the
server that it measures.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from time import perf_counter, process_time

from bench.payloads import Chunk, Request

_CONTENT_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CONTENTLESS = {204, 304}


class Tally:
    """The outcome of the requests of one run, and whether there may be another request.

    A run ends when its time is over or its requests are used up. The responses to requests in
    flight are then still awaited, so that the rate is all responses divided by the time until the
    last one.
    """

    def __init__(
        self, *, status: int, seconds: float, most: int, keep_heads: bool = False
    ) -> None:
        self.latencies: list[float] = []
        self.statuses: Counter[str] = Counter()
        self.heads: list[bytes] = []
        self.started = perf_counter()
        self.started_cpu = process_time()
        self.ended = self.started
        self.finished = asyncio.Event()
        self._status = status
        self._deadline = self.started + seconds
        self._left = most
        self._keep_heads = keep_heads
        self._in_flight = 0

    def begin(self) -> bool:
        """Count one more request as in flight, if there may be one."""
        if self._left <= 0 or perf_counter() >= self._deadline:
            return False
        self._left -= 1
        self._in_flight += 1
        return True

    def answered(self, status: int, since: float, head: bytes) -> None:
        """Count a response; only an expected one has a latency."""
        self.ended = perf_counter()
        self._in_flight -= 1
        self.statuses[str(status)] += 1
        if status == self._status:
            self.latencies.append(self.ended - since)
        if self._keep_heads:
            self.heads.append(head)

    def lost(self) -> None:
        """Count a request whose connection was closed, or whose response could not be parsed."""
        self._in_flight -= 1
        self.statuses["closed"] += 1

    def leave(self) -> None:
        """End the run when no request is in flight any more."""
        if self._in_flight == 0:
            self.finished.set()

    def abandon(self) -> None:
        """Count the requests in flight as given up."""
        self.statuses["unanswered"] += self._in_flight
        self._in_flight = 0

    @property
    def errors(self) -> dict[str, int]:
        """The number of each unexpected result."""
        good = str(self._status)
        return {name: n for name, n in self.statuses.items() if name != good and n}


class Connection(asyncio.Protocol):
    """Sends a stream of requests, one at a time, and reports each response to a tally."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._tally: Tally | None = None
        self._stream: Iterator[Request] = iter(())
        self._unsent: Iterator[Chunk] = iter(())
        self._paused = False
        self._since = 0.0
        self._head = b""
        self._missing = 0
        self._status = 0

    def start(self, stream: Iterator[Request], tally: Tally) -> None:
        """Send the requests of ``stream`` for as long as ``tally`` allows."""
        self._stream = stream
        self._tally = tally
        self._next()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.set_write_buffer_limits(high=0)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._transport = None
        if self._tally is not None:
            self._tally.lost()
            self._leave()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._write()

    def data_received(self, data: bytes) -> None:
        if self._missing > 0:
            self._missing -= len(data)
        elif not self._read_head(self._head + data if self._head else data):
            return
        if self._missing <= 0:
            self._answered()

    def _read_head(self, data: bytes) -> bool:
        """Take status and length from ``data``; False while the head is not complete."""
        self._head = data
        end = data.find(b"\r\n\r\n")
        if end < 0:
            return False
        self._status = int(data[9:12])
        length = _CONTENT_LENGTH.search(data, 0, end)
        if length is None and self._status not in _CONTENTLESS:
            self._close()
            return False
        body = int(length[1]) if length is not None else 0
        self._missing = end + 4 + body - len(data)
        return True

    def _answered(self) -> None:
        tally, head, excess = self._tally, self._head, self._missing
        self._head = b""
        self._missing = 0
        if tally is None:
            return
        if excess or next(self._unsent, None) is not None:
            # There is more than one response, or one from before the request was sent: later data
            # on this connection could not be attributed.
            self._close()
            return
        tally.answered(self._status, self._since, head)
        self._next()

    def _next(self) -> None:
        if self._tally is None or self._transport is None or not self._tally.begin():
            self._leave()
            return
        self._unsent = iter(next(self._stream))
        self._since = perf_counter()
        self._write()

    def _write(self) -> None:
        while self._transport is not None and not self._paused:
            chunk = next(self._unsent, None)
            if chunk is None:
                return
            self._transport.write(chunk)

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _leave(self) -> None:
        tally, self._tally = self._tally, None
        if tally is not None:
            tally.leave()
