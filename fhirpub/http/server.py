"""HTTP/1.1 on Tornado's streams: one request after another, each handed to a delegate.

It stands where Tornado's ``HTTPServer`` could, behind the same interfaces, and takes two fifths
of its time (bench/README.md). Left out is what only clients or other servers need: answers in
chunks, compression, TLS, proxy headers. See ADR 5.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from socket import SHUT_WR, socket
from typing import Any

from tornado.httputil import (
    HTTPHeaders,
    HTTPInputError,
    HTTPMessageDelegate,
    HTTPServerConnectionDelegate,
    RequestStartLine,
)
from tornado.iostream import IOStream, StreamClosedError

from fhirpub.http.connections import ConnectionLimits, ConnectionTable, accept_some, turn_away
from fhirpub.http.exchange import Exchange, Peer
from fhirpub.http.head import UNREAD, Fields, HeadTooLong, HeadTooSlow, read_head
from fhirpub.http.reader import RequestReader, TooLong
from fhirpub.runtime.faults import where
from fhirpub.runtime.logging import logger

_TURN_BYTES = 8_192
"""After this many bytes of buffered heads, other connections get the loop. A client that sends one
request at a time never waits for this: requests that arrive together stay together, so that their
store calls are batched."""
_LEAST_BYTES = 512
"""As many as a head counts at least: its answer takes time, too."""
_REST_SECONDS = 1.0
"""How long no connection is accepted after the process ran out of file descriptors."""
_LINGER_SECONDS = 2.0
_AGAIN_SECONDS = 0.05
"""When to check again a connection whose time is up, but on which data has arrived."""
_QUIET_SECONDS = 0.1
"""A client that was just answered may have sent its next request, as a busy proxy has."""
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_log = logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a client may send, and how long a connection waits for it.

    At most ``body_bytes`` of a body are read, even of one that is refused. ``idle_seconds`` may
    pass from the end of a response, or from the beginning, until the next head has arrived, and
    ``head_seconds`` from the first byte of a head to its last.
    """

    head_bytes: int
    body_bytes: int
    idle_seconds: float
    head_seconds: float = 15.0
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)


class Message(HTTPMessageDelegate):
    """A request on its way in; it ends with ``finish``, refuse_body or on_connection_close."""

    def refuse_body(self, problem: HTTPInputError) -> None:
        """Respond at once: the body is TooLong, or breaks HTTP. By default a 400."""
        raise problem


class Delegate(HTTPServerConnectionDelegate):
    """What answers requests, and what is none."""

    def start_request(self, server_conn: object, request_conn: Any) -> Message:
        """Expect a request on a connection."""
        raise NotImplementedError

    def refuse(
        self,
        exchange: Exchange,
        line: RequestStartLine,
        headers: HTTPHeaders,
        problem: HTTPInputError,
    ) -> None:
        """Answer what breaks HTTP, at once; else it is answered with a 400 that has no body.

        ``problem`` is a HeadTooLong for a head that is longer than may be. If the head could not
        be read there are no ``headers``, and ``line`` is that of a plain GET.
        """

    def busy_response(self) -> bytes:
        """Return the whole response to a connection that is one too many."""
        return (
            b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        )


class Server:
    """Listens, and hands what comes to a delegate."""

    def __init__(self, delegate: Delegate, bounds: Bounds) -> None:
        self._delegate = delegate
        self._bounds = bounds
        self._sockets: list[socket] = []
        self._connections: dict[Connection, asyncio.Task[None]] = {}
        self._table = ConnectionTable(bounds.connections, asyncio.get_running_loop().time)

    def add_sockets(self, sockets: Iterable[socket]) -> None:
        """Take the connections that come to these, which listen already."""
        for item in sockets:
            self._sockets.append(item)
            self._listen(item)

    def stop(self) -> None:
        """Take no more connections, and at most one more request on those that there are."""
        for item in self._sockets:
            asyncio.get_running_loop().remove_reader(item)
            item.close()
        self._sockets.clear()
        for connection in self._connections:
            connection.end_after_answer()

    def close_idle(self) -> bool:
        """Close idle connections; return whether others are left."""
        busy = [connection for connection in self._connections if not connection.is_idle()]
        for connection in self._connections.keys() - busy:
            connection.close()
        return bool(busy)

    async def close_all_connections(self) -> None:
        """Close all connections, also with requests in flight; return when none is left."""
        for connection in self._connections:
            connection.close()
        if self._connections:
            await asyncio.wait(self._connections.values())

    def _listen(self, listening: socket) -> None:
        if listening in self._sockets:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket) -> None:
        try:
            for accepted, address in accept_some(listening):
                if self._table.admits(address):
                    self._serve(Connection(IOStream(accepted), Peer(address), self._bounds))
                else:
                    turn_away(accepted, self._delegate.busy_response())
        except OSError as problem:  # no file descriptor, perhaps: there may be one later
            _log.error("no connection taken", reason=problem.strerror)
            loop = asyncio.get_running_loop()
            loop.remove_reader(listening)
            loop.call_later(_REST_SECONDS, self._listen, listening)

    def _serve(self, connection: Connection) -> None:
        task = asyncio.create_task(connection.serve(self._delegate))
        self._connections[connection] = task
        address = connection.address
        self._table.add(address, connection)

        def forget(_done: object) -> None:
            del self._connections[connection]
            self._table.remove(address, connection)

        task.add_done_callback(forget)


class Connection:
    """A connection of a client, which reads one request after another."""

    def __init__(self, stream: IOStream, peer: Peer, bounds: Bounds) -> None:
        self._stream = stream
        self._incoming = RequestReader(stream)
        self._peer = peer
        self._bounds = bounds
        self._is_ending = False
        self._is_waiting = True
        """Whether the next head is not here yet."""
        self._exchange: Exchange | None = None
        self._turn_bytes = 0
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._timer = self._loop.call_later(bounds.idle_seconds, self._look)

    @property
    def address(self) -> str:
        """The address of the client."""
        return self._peer.remote_ip

    def waiting_since(self) -> float | None:
        """Return when it began to wait for a head, by the loop's clock; None if it does not."""
        return self._waits_since() if self._is_waiting else None

    def has_served(self) -> bool:
        """Return whether it has had a request."""
        return self._exchange is not None

    def has_unread(self) -> bool:
        """Return whether something has arrived that is still to be read."""
        return self._incoming.has_more()

    async def serve(self, delegate: Delegate) -> None:
        """Take requests until either side has enough."""
        try:
            self._stream.set_nodelay(True)
            while not self._stream.closed():
                await self._serve_one(delegate)
                if not self._incoming.is_ahead():
                    self._turn_bytes = 0
                elif self._turn_bytes >= _TURN_BYTES:
                    self._turn_bytes = 0
                    await asyncio.sleep(0)
        except StreamClosedError:
            pass
        except Exception as problem:  # noqa: BLE001 - it ends this connection, and no other
            _log.error("failed", **where(problem))
        finally:
            self._timer.cancel()
            self.close()

    def end_after_answer(self) -> None:
        """Close it after the response to the current request, or else to the next one."""
        self._is_ending = True
        if self._exchange is not None:
            self._exchange.is_last = True

    def close(self) -> None:
        """Close the connection, also with a request in flight."""
        self._stream.close()
        if self._exchange is not None:
            self._exchange.close()

    def is_idle(self) -> bool:
        """Return whether no request is in flight, arriving, or was served recently.

        Closing it at once then can lose only a request that is being sent at this very moment.
        """
        if not self._is_waiting:
            last = self._exchange
            return last is not None and last.is_finished and last.closes
        is_quiet = self._loop.time() - self._waits_since() > _QUIET_SECONDS
        return is_quiet and not self._incoming.has_more()

    async def _serve_one(self, delegate: Delegate) -> None:
        line, fields, problem = await self._next_head()
        is_last = self._is_ending or not fields.keeps_open
        self._exchange = exchange = Exchange(self._stream, self._peer, line, is_last=is_last)
        try:
            if problem is not None:
                raise problem
            await self._take(delegate, line, fields, exchange)
        except HTTPInputError as found:
            if not exchange.is_begun:
                delegate.refuse(exchange, line, fields.headers, found)
            if not exchange.is_finished:
                exchange.refuse()
        await exchange.wait_ended()
        if exchange.closes:
            await self._linger()
            self.close()

    async def _next_head(self) -> tuple[RequestStartLine, Fields, HTTPInputError | None]:
        """Return the next head, and why it cannot be heeded, if so."""
        self._is_waiting = True
        try:
            data = await self._incoming.head(self._bounds.head_bytes, self._bounds.head_seconds)
        except (HeadTooLong, HeadTooSlow) as problem:
            return *UNREAD, problem
        finally:
            self._is_waiting = False
        self._turn_bytes += max(len(data), _LEAST_BYTES)
        try:
            line, fields = read_head(data)
        except HeadTooLong as problem:
            return *UNREAD, problem
        if fields.problem:
            return line, fields, HTTPInputError(fields.problem)
        return line, fields, None

    async def _take(
        self, delegate: Delegate, line: RequestStartLine, fields: Fields, exchange: Exchange
    ) -> None:
        """Hand a request on, until it is answered or all of it is here."""
        message = delegate.start_request(self, exchange)
        try:
            later = message.headers_received(line, fields.headers)
            if later is not None:
                await later
            if fields.has_body and not exchange.is_decided:
                await self._read_body(message, fields)
            exchange.is_read = not exchange.is_decided
        except HTTPInputError as problem:
            if not exchange.is_decided:
                message.refuse_body(problem)
        finally:
            if not (exchange.is_read or exchange.is_decided):
                message.on_connection_close()
        if exchange.is_read:
            message.finish()

    async def _read_body(self, message: Message, fields: Fields) -> None:
        most = self._bounds.body_bytes
        if fields.length > most:
            raise TooLong
        if fields.expects_100:
            await self._stream.write(_CONTINUE)
        if fields.is_chunked:
            await self._incoming.chunks(most, message.data_received)
        else:
            await self._incoming.body(fields.length, message.data_received)

    async def _linger(self) -> None:
        """Give a client that is still sending the time to read the last answer.

        Its system would throw the answer away if what it sends came to a closed connection
        (RFC 9112, 9.6).
        """
        if self._stream.closed():
            return
        with suppress(OSError, TimeoutError):
            self._stream.socket.shutdown(SHUT_WR)
            async with asyncio.timeout(_LINGER_SECONDS):
                await self._incoming.discard()

    def _waits_since(self) -> float:
        """Return since when it is idle; that is now while a request is in flight."""
        since = self._began if self._exchange is None else self._exchange.finished_at
        return self._loop.time() if since is None else since

    def _look(self) -> None:
        """Close it if it was idle too long, or check again when it would be.

        A timer for each connection, and not one for each request, which would cost more.
        """
        now = self._loop.time()
        until = self._waits_since() + self._bounds.idle_seconds
        if until <= now and self._is_waiting and self._incoming.has_more():
            self._timer = self._loop.call_later(_AGAIN_SECONDS, self._look)
        elif until <= now:
            self.close()
        else:
            self._timer = self._loop.call_at(until, self._look)
