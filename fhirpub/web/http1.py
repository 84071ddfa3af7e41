"""HTTP/1.1 on Tornado's sockets: one request after another, each handed to a delegate.

It stands where Tornado's ``HTTPServer`` could, behind the same interfaces, and takes a third of
its time (bench/README.md). Sockets and the reading of heads are Tornado's. Left out is what only
clients or other servers need: answers in chunks, compression, TLS, what proxies tell.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from socket import SHUT_WR
from typing import Any

from tornado.httputil import (
    HTTPHeaders,
    HTTPInputError,
    HTTPMessageDelegate,
    HTTPServerConnectionDelegate,
    RequestStartLine,
    parse_request_start_line,
)
from tornado.iostream import IOStream, StreamClosedError
from tornado.tcpserver import TCPServer

from fhirpub.logs import logger, where
from fhirpub.web.exchange import Exchange, Peer

_END_OF_HEAD = re.compile(rb"\n\r?\n")  # begins with one certain byte: it is found quickly
_END_OF_LINE = re.compile(rb"\r\n")
_LENGTH = re.compile(r"[0-9]{1,18}")
_HOST = re.compile(r"[A-Za-z0-9._~!$&'()*+;=%:\[\]-]*")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,12})\r\n")
_CHUNK_SIZE_BYTES = 64
_PIECE = 65_536
_AT_ONCE = 16
"""After so many requests, which may all be here already, the other connections have their turn."""
_CHUNKS_AT_ONCE = 256
"""The same for chunks, which may have one byte each."""
_LINGER_SECONDS = 2.0
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_log = logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a client may send, and how long a connection waits for it.

    ``body_bytes`` are read at most, whatever becomes of them. ``idle_seconds`` may pass from the
    end of an answer, or from the beginning, until the next head is there.
    """

    head_bytes: int
    body_bytes: int
    idle_seconds: float


class Delegate(HTTPServerConnectionDelegate):
    """What answers requests, and what is none."""

    def refuse(
        self,
        exchange: Exchange,
        line: RequestStartLine,
        headers: HTTPHeaders,
        problem: HTTPInputError,
    ) -> None:
        """Answer what breaks HTTP, at once; else it is answered with a 400 that has no body.

        ``problem`` is a TooLong for a body that is longer than anything that is read, a
        HeadTooLong for a head that is. If the head could not be read there are no ``headers``,
        and ``line`` is that of a plain GET.
        """


class TooLong(HTTPInputError):
    """A body is longer than what is read at most."""


class HeadTooLong(HTTPInputError):
    """A head is longer than it may be."""


class Server(TCPServer):
    """Listens, and hands what comes to a delegate."""

    def __init__(self, delegate: Delegate, bounds: Bounds) -> None:
        super().__init__()
        self._delegate = delegate
        self._bounds = bounds
        self._connections: set[Connection] = set()

    async def handle_stream(self, stream: IOStream, address: Any) -> None:
        """Serve a connection until it ends."""
        connection = Connection(stream, Peer(address[0]), self._bounds)
        self._connections.add(connection)
        try:
            await connection.serve(self._delegate)
        finally:
            self._connections.discard(connection)

    def stop(self) -> None:
        """Take no more connections, and at most one more request on those that there are."""
        super().stop()
        for each in self._connections:
            each.end_after_answer()

    async def close_all_connections(self) -> None:
        """Close them, whatever is under way; return when nothing is."""
        for each in self._connections:
            each.close()
        while self._connections:
            await asyncio.sleep(0.005)


class Connection:
    """A connection of a client, which reads one request after another."""

    def __init__(self, stream: IOStream, peer: Peer, bounds: Bounds) -> None:
        self._stream = stream
        self._incoming = Incoming(stream)
        self._peer = peer
        self._bounds = bounds
        self._is_ending = False
        self._exchange: Exchange | None = None
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._timer = self._loop.call_later(bounds.idle_seconds, self._look)

    async def serve(self, delegate: Delegate) -> None:
        """Take requests until either side has enough."""
        try:
            self._stream.set_nodelay(True)
            for number in count(1):
                await self._serve_one(delegate)
                if self._stream.closed():
                    break
                if number % _AT_ONCE == 0:
                    await asyncio.sleep(0)
        except StreamClosedError:
            pass
        except Exception as problem:  # noqa: BLE001 - it ends this connection, and no other
            _log.error("failed", **where(problem))
        finally:
            self._timer.cancel()
            self.close()

    def end_after_answer(self) -> None:
        """Close it once the request that is under way, or else the next, is answered."""
        self._is_ending = True
        if self._exchange is not None:
            self._exchange.is_last = True

    def close(self) -> None:
        """Hang up, whatever is under way."""
        self._stream.close()
        if self._exchange is not None:
            self._exchange.close()

    async def _serve_one(self, delegate: Delegate) -> None:
        data = await self._incoming.until(_END_OF_HEAD, self._bounds.head_bytes)
        line, fields = _read_head(data)
        is_last = self._is_ending or not fields.keeps_open(line.version)
        self._exchange = exchange = Exchange(self._stream, self._peer, line, is_last=is_last)
        try:
            if not data:
                raise HeadTooLong
            await self._take(delegate, line, fields, exchange)
        except HTTPInputError as problem:
            delegate.refuse(exchange, line, fields.headers, problem)
            if not exchange.is_finished:
                exchange.refuse()
        await exchange.ended()
        if exchange.closes:
            await self._linger()
            self.close()

    async def _take(
        self, delegate: Delegate, line: RequestStartLine, fields: Fields, exchange: Exchange
    ) -> None:
        """Hand a request on, until it is answered or all of it is here."""
        self._check(line, fields)
        message = delegate.start_request(self, exchange)  # type: ignore[arg-type]
        try:
            later = message.headers_received(line, fields.headers)
            if later is not None:
                await later
            if fields.has_body and not exchange.is_finished:
                if fields.expects_100 and line.version != "HTTP/1.0":
                    await self._stream.write(_CONTINUE)
                await self._read_body(message, fields)
            exchange.is_read = not exchange.is_finished
        finally:
            if not (exchange.is_read or exchange.is_finished):
                message.on_connection_close()
        if exchange.is_read:
            message.finish()

    def _check(self, line: RequestStartLine, fields: Fields) -> None:
        if fields.problem:
            raise HTTPInputError(fields.problem)
        if "Host" not in fields.headers and line.version != "HTTP/1.0":
            raise HTTPInputError("a Host is needed")
        if fields.length > self._bounds.body_bytes:
            raise TooLong

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
                while True:
                    await self._stream.read_bytes(_PIECE, partial=True)
                    await asyncio.sleep(0)

    async def _read_body(self, message: HTTPMessageDelegate, fields: Fields) -> None:
        if fields.is_chunked:
            await self._read_chunks(message)
        else:
            await self._read_length(message, fields.length)

    async def _read_length(self, message: HTTPMessageDelegate, missing: int) -> None:
        while missing:
            piece = await self._incoming.some(missing)
            missing -= len(piece)
            later = message.data_received(piece)
            if later is not None:
                await later
            if missing:
                await asyncio.sleep(0)

    async def _read_chunks(self, message: HTTPMessageDelegate) -> None:
        """Read a body in chunks (RFC 9112, 7.1) that have no extensions and no trailers.

        They are handed on together, so that many small ones take no more memory than they have.
        """
        gathered = bytearray()
        total = 0
        for number in count(1):
            size = _chunk_size(await self._incoming.until(_END_OF_LINE, _CHUNK_SIZE_BYTES))
            if not size:
                break
            total += size
            if total > self._bounds.body_bytes:
                raise TooLong
            while size:
                piece = await self._incoming.some(size)
                size -= len(piece)
                gathered += piece
                if len(gathered) >= _PIECE:
                    await _hand_on(message, gathered)
            await self._read_end_of_line()
            if number % _CHUNKS_AT_ONCE == 0:
                await asyncio.sleep(0)
        await self._read_end_of_line()
        await _hand_on(message, gathered)

    async def _read_end_of_line(self) -> None:
        if await self._incoming.until(_END_OF_LINE, 2) != b"\r\n":
            raise HTTPInputError("a chunk does not end where it says")

    def _look(self) -> None:
        """Hang up if it has waited too long, or look again when it would have.

        A timer for each connection, and not one for each request, which would cost more.
        """
        since = self._began if self._exchange is None else self._exchange.finished_at
        now = self._loop.time()
        until = (now if since is None else since) + self._bounds.idle_seconds
        if until <= now:
            self.close()
        else:
            self._timer = self._loop.call_at(until, self._look)


class Incoming:
    """What has come on a connection and is still to be read."""

    def __init__(self, stream: IOStream) -> None:
        self._stream = stream
        self._data = b""
        self._at = 0
        """Where what is still to be read begins."""

    async def until(self, end: re.Pattern[bytes], most: int) -> bytes:
        """Return what comes up to an end, or nothing if there is none within ``most`` bytes."""
        while True:
            found = end.search(self._data, self._at, self._at + most)
            if found is not None:
                return self._take(found.end() - self._at)
            if len(self._data) - self._at >= most:
                return b""
            more = await self._stream.read_bytes(_PIECE, partial=True)
            self._data, self._at = self._data[self._at :] + more, 0

    async def some(self, most: int) -> bytes:
        """Return what is here, or else what comes next, ``most`` bytes of it at most."""
        if self._data:
            return self._take(most)
        return await self._stream.read_bytes(min(most, _PIECE), partial=True)

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        self._at += len(taken)
        if self._at == len(self._data):  # keep nothing of it
            self._data, self._at = b"", 0
        return taken


@dataclass(frozen=True, slots=True)
class Fields:
    """What the fields of a head say."""

    headers: HTTPHeaders
    problem: str
    """What leaves unclear where the body ends or who is asked, or nothing."""
    length: int
    is_chunked: bool
    wishes: frozenset[str]
    """The options of Connection (RFC 9110, 7.6.1)."""
    expects_100: bool

    @property
    def has_body(self) -> bool:
        """Whether something follows, or should."""
        return bool(self.length or self.is_chunked)

    def keeps_open(self, version: str) -> bool:
        """Tell whether the client leaves the connection open (RFC 9112, 9.3)."""
        if "close" in self.wishes:
            return False
        return version == "HTTP/1.1" or "keep-alive" in self.wishes


def _read_head(data: bytes) -> tuple[RequestStartLine, Fields]:
    """Read the first line and the fields after it, or tell why neither can be read."""
    start, _, fields = data.lstrip(b"\r\n").partition(b"\n")
    try:
        line = parse_request_start_line(start.removesuffix(b"\r").decode("latin-1"))
        return line, _fields(fields)
    except HTTPInputError:
        return _PLAIN_LINE, _UNREAD


@lru_cache(maxsize=256)
def _fields(data: bytes) -> Fields:
    """Read the fields of a head; a client sends much the same ones again and again."""
    headers = HTTPHeaders.parse(data.decode("latin-1"))
    problem = _framing_problem(headers) or _host_problem(headers)
    return Fields(
        headers=headers,
        problem=problem,
        length=0 if problem else int(headers.get("Content-Length", "0")),
        is_chunked="Transfer-Encoding" in headers,
        wishes=frozenset(
            each.strip().lower() for each in headers.get("Connection", "").split(",")
        ),
        expects_100=headers.get("Expect", "").lower() == "100-continue",
    )


def _framing_problem(headers: HTTPHeaders) -> str:
    """Return what leaves the length of the body unclear (RFC 9112 section 6), or nothing."""
    length = headers.get("Content-Length")
    if "Transfer-Encoding" in headers:
        if length is not None:
            return "Content-Length and Transfer-Encoding must not be sent together"
        if headers["Transfer-Encoding"].lower() != "chunked":
            return "Transfer-Encoding must be chunked"
    elif length is not None and not _LENGTH.fullmatch(length):
        return "Content-Length must be one whole number"  # once, even if both say the same
    return ""


def _host_problem(headers: HTTPHeaders) -> str:
    """Return nothing if one host is named, or none on purpose (RFC 9112 section 3.2)."""
    return "" if _HOST.fullmatch(headers.get("Host", "")) else "one Host is needed"


_PLAIN_LINE = RequestStartLine("GET", "/", "HTTP/1.1")
_UNREAD = Fields(
    headers=HTTPHeaders(),
    problem="this is not HTTP/1.1",
    length=0,
    is_chunked=False,
    wishes=frozenset(),
    expects_100=False,
)


def _chunk_size(line: bytes) -> int:
    match = _CHUNK_SIZE.fullmatch(line)
    if match is None:
        raise HTTPInputError("a chunk must begin with its size")
    return int(match[1], 16)


async def _hand_on(message: HTTPMessageDelegate, gathered: bytearray) -> None:
    if gathered:
        piece = bytes(gathered)
        gathered.clear()
        later = message.data_received(piece)
        if later is not None:
            await later
