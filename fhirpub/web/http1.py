"""HTTP/1.1 on Tornado's sockets: one request after another, each handed to a delegate.

It stands where Tornado's ``HTTPServer`` could, behind the same interfaces, and takes a third of
its time (bench/README.md). Sockets and the reading of heads are Tornado's. Left out is what only
clients or other servers need: answers in chunks, compression, TLS, what proxies tell.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from functools import lru_cache
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
from fhirpub.web.exchange import BAD_REQUEST, Exchange, Peer

_END_OF_HEAD = rb"\r?\n\r?\n"
_LENGTH = re.compile(r"[0-9]{1,18}")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,12})\r\n")
_CHUNK_SIZE_BYTES = 64
_PIECE = 65_536
_CHUNKS_AT_ONCE = 256
"""After so many chunks, which may have one byte each, the other connections have their turn."""
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


class Server(TCPServer):
    """Listens, and hands what comes to a delegate."""

    def __init__(self, delegate: HTTPServerConnectionDelegate, bounds: Bounds) -> None:
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
        self._peer = peer
        self._bounds = bounds
        self._is_ending = False
        self._exchange: Exchange | None = None
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._timer = self._loop.call_later(bounds.idle_seconds, self._look)

    async def serve(self, delegate: HTTPServerConnectionDelegate) -> None:
        """Take requests until either side has enough."""
        try:
            self._stream.set_nodelay(True)
            while not self._stream.closed():
                await self._serve_one(delegate)
        except StreamClosedError:
            pass  # by the client; or by itself, if a head is too large
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

    async def _serve_one(self, delegate: HTTPServerConnectionDelegate) -> None:
        data = await self._stream.read_until_regex(_END_OF_HEAD, self._bounds.head_bytes)
        try:
            line, fields = _read_head(data)
        except HTTPInputError:
            await self._stream.write(BAD_REQUEST)
            self.close()
            return
        is_last = self._is_ending or not fields.keeps_open(line.version)
        self._exchange = exchange = Exchange(self._stream, self._peer, line, is_last=is_last)
        message = delegate.start_request(self, exchange)  # type: ignore[arg-type]
        try:
            await self._read(message, line, fields, exchange)
        except HTTPInputError:
            exchange.refuse()
        finally:
            if not (exchange.is_read or exchange.is_finished):
                message.on_connection_close()
        if exchange.is_read:
            message.finish()
        await exchange.ended()
        if exchange.closes:
            self.close()

    async def _read(
        self,
        message: HTTPMessageDelegate,
        line: RequestStartLine,
        fields: Fields,
        exchange: Exchange,
    ) -> None:
        """Hand a request on, until all of it is here or it is answered."""
        later = message.headers_received(line, fields.headers)
        if later is not None:
            await later
        if fields.has_body and not exchange.is_finished:
            await self._read_body(message, fields)
        exchange.is_read = not exchange.is_finished

    async def _read_body(self, message: HTTPMessageDelegate, fields: Fields) -> None:
        if fields.problem:
            raise HTTPInputError(fields.problem)
        if fields.length > self._bounds.body_bytes:
            raise HTTPInputError("the body is too long")
        if fields.expects_100:
            await self._stream.write(_CONTINUE)
        if fields.is_chunked:
            await self._read_chunks(message)
        else:
            await self._read_length(message, fields.length)

    async def _read_length(self, message: HTTPMessageDelegate, missing: int) -> None:
        while missing:
            piece = await self._stream.read_bytes(min(missing, _PIECE), partial=True)
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
        total = count = 0
        while size := _chunk_size(await self._stream.read_until(b"\r\n", _CHUNK_SIZE_BYTES)):
            total += size
            if total > self._bounds.body_bytes:
                raise HTTPInputError("the body is too long")
            while size:
                piece = await self._stream.read_bytes(min(size, _PIECE), partial=True)
                size -= len(piece)
                gathered += piece
                if len(gathered) >= _PIECE:
                    await _hand_on(message, gathered)
            await self._read_end_of_line()
            count += 1
            if count % _CHUNKS_AT_ONCE == 0:
                await asyncio.sleep(0)
        await self._read_end_of_line()
        await _hand_on(message, gathered)

    async def _read_end_of_line(self) -> None:
        if await self._stream.read_bytes(2) != b"\r\n":
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


@dataclass(frozen=True, slots=True)
class Fields:
    """What the fields of a head say."""

    headers: HTTPHeaders
    problem: str
    """What leaves unclear where the body ends, or nothing."""
    length: int
    is_chunked: bool
    wishes: frozenset[str]
    """The options of Connection (RFC 9110, 7.6.1)."""
    expects_100: bool

    @property
    def has_body(self) -> bool:
        """Whether something follows, or should."""
        return bool(self.length or self.is_chunked or self.problem)

    def keeps_open(self, version: str) -> bool:
        """Tell whether the client leaves the connection open (RFC 9112, 9.3)."""
        if version == "HTTP/1.1":
            return "close" not in self.wishes
        return "keep-alive" in self.wishes


def _read_head(data: bytes) -> tuple[RequestStartLine, Fields]:
    """Read the first line and the fields after it; raises HTTPInputError."""
    line, _, fields = data.lstrip(b"\r\n").partition(b"\n")
    return parse_request_start_line(line.removesuffix(b"\r").decode("latin-1")), _fields(fields)


@lru_cache(maxsize=256)
def _fields(data: bytes) -> Fields:
    """Read the fields of a head; a client sends much the same ones again and again."""
    headers = HTTPHeaders.parse(data.decode("latin-1"))
    problem = framing_problem(headers)
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


def framing_problem(headers: HTTPHeaders) -> str:
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
