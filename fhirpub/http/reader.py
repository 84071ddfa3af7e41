"""What comes on a connection: heads, and bodies by their length or in chunks (RFC 9112, 6 and 7).

Reading proceeds only as fast as the data is consumed (backpressure).
"""

from __future__ import annotations

import asyncio
import re
import select
from collections.abc import Awaitable, Callable
from itertools import count
from typing import cast

from tornado.httputil import HTTPInputError
from tornado.iostream import IOStream

from fhirpub.http.head import HeadTooLong, HeadTooSlow

_END_OF_HEAD = re.compile(rb"\n\r?\n")  # begins with one certain byte: it is found quickly
_END_OF_LINE = re.compile(rb"\r\n")
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_TEXT = rb"[\t -~\x80-\xff]*"
# No blank before an extension: RFC 9112, 7.1.1 allows it, but h11 and llhttp refuse it.
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,12})(?:;[ \t]*" + _TOKEN + _TEXT + rb")?\r\n")
_TRAILER = re.compile(_TOKEN + b":" + _TEXT + rb"\r\n")
_CHUNK_LINE_BYTES = 256
_TRAILERS_BYTES = 16_384
_PIECE = 65_536
_BODY_TURN = 262_144
"""So much of a body is read before all other connections have their turn. The fewer turns a body
needs, the less it waits for the requests of others."""
_CHUNK_BATCH_SIZE = 64
"""After this many chunks, of possibly one byte each, other connections get the loop."""

Taker = Callable[[bytes], Awaitable[None] | None]
"""Takes a piece of a body; the next is not read before what it returns is done."""


class TooLong(HTTPInputError):
    """A body is longer than what is read at most."""


class RequestReader:
    """What has come on a connection and is still to be read."""

    def __init__(self, stream: IOStream) -> None:
        self._stream = stream
        self._data = b""
        self._at = 0
        """Where what is still to be read begins."""
        self._reading: asyncio.Future[bytes] | None = None

    def has_more(self) -> bool:
        """Return whether more has arrived than was parsed."""
        if self._stream.closed():
            return False
        is_read = self._reading is not None and self._reading.done()
        return is_read or is_signalled(self._stream, select.POLLIN)

    def is_ahead(self) -> bool:
        """Return whether part of the next request has been read."""
        return bool(self._data)

    async def head(self, most: int, seconds: float) -> bytes:
        """Return the next head; raises HeadTooLong or HeadTooSlow.

        The time begins with the first byte of the head.
        """
        if not self._data:
            reading = self._begin_reading(_PIECE)
            if reading.done():
                await asyncio.sleep(0)  # a client that is always ahead has one turn, as all others
            self._data = await reading
        data = self._complete(_END_OF_HEAD, most)
        if data is None:
            try:
                async with asyncio.timeout(seconds):
                    data = await self._until(_END_OF_HEAD, most)
            except TimeoutError:
                raise HeadTooSlow from None
        if not data:
            in_line = b"\n" not in self._data[self._at : self._at + most // 2]
            raise HeadTooLong(in_line=in_line)
        return data

    async def body(self, length: int, take: Taker) -> None:
        """Pass on a body of a known length, in bytes."""
        in_turn = 0
        while length:
            piece = await self._some(length)
            length -= len(piece)
            in_turn += len(piece)
            later = take(piece)
            if later is not None:
                await later
            if length and in_turn >= _BODY_TURN:
                await asyncio.sleep(0)
                in_turn = 0

    async def chunks(self, most: int, take: Taker) -> None:
        """Pass on a chunked body; chunk extensions and trailers are ignored.

        They are handed on together, so that many small ones take no more memory than they have.
        Raises TooLong for more than ``most`` bytes, HTTPInputError for what are no chunks.
        """
        gathered = bytearray()
        total = 0
        for number in count(1):
            size = _chunk_size(await self._until(_END_OF_LINE, _CHUNK_LINE_BYTES))
            if not size:
                break
            total += size
            if total > most:
                raise TooLong
            while size:
                piece = await self._some(size)
                size -= len(piece)
                gathered += piece
                if len(gathered) >= _PIECE:
                    await _hand_on(gathered, take)
                    await asyncio.sleep(0)
            if await self._until(_END_OF_LINE, 2) != b"\r\n":
                raise HTTPInputError("a chunk does not end where it says")
            if number % _CHUNK_BATCH_SIZE == 0:
                await asyncio.sleep(0)
        await self._trailers()
        await _hand_on(gathered, take)

    async def discard(self) -> None:
        """Throw away what comes, until nothing does any more: raises StreamClosedError then."""
        self._data, self._at = b"", 0
        while True:
            await self._more()
            await asyncio.sleep(0)

    async def _trailers(self) -> None:
        """Read the fields after the last chunk (RFC 9112, 7.1.2), and let them be."""
        left = _TRAILERS_BYTES
        while (line := await self._until(_END_OF_LINE, left)) != b"\r\n":
            left -= len(line)
            if not _TRAILER.fullmatch(line):
                raise HTTPInputError("after the last chunk there may be fields, and not too many")

    async def _until(self, end: re.Pattern[bytes], most: int) -> bytes:
        """Return what comes up to an end, or nothing if there is none within ``most`` bytes."""
        while (data := self._complete(end, most)) is None:
            self._data, self._at = self._data[self._at :] + await self._more(), 0
        return data

    def _complete(self, end: re.Pattern[bytes], most: int) -> bytes | None:
        """Return what is here up to an end, nothing if it comes too late, None if it may come."""
        found = end.search(self._data, self._at, self._at + most)
        if found is not None:
            return self._take(found.end() - self._at)
        return b"" if len(self._data) - self._at >= most else None

    async def _some(self, most: int) -> bytes:
        """Return what is here, or else what comes next, ``most`` bytes of it at most."""
        if self._data:
            return self._take(most)
        return await self._more(min(most, _BODY_TURN))

    async def _more(self, most: int = _PIECE) -> bytes:
        return await self._begin_reading(most)

    def _begin_reading(self, most: int) -> asyncio.Future[bytes]:
        reading = self._stream.read_bytes(most, partial=True)
        self._reading = cast("asyncio.Future[bytes]", reading)
        return self._reading

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        self._at += len(taken)
        if self._at == len(self._data):  # keep nothing of it
            self._data, self._at = b"", 0
        return taken


def is_signalled(stream: IOStream, event: int) -> bool:
    """Return whether ``select.poll`` reports an event on an open connection."""
    poll = select.poll()
    poll.register(stream.socket, event)
    return bool(poll.poll(0))


def _chunk_size(line: bytes) -> int:
    match = _CHUNK_SIZE.fullmatch(line)
    if match is None:
        raise HTTPInputError("a chunk must begin with its size")
    return int(match[1], 16)


async def _hand_on(gathered: bytearray, take: Taker) -> None:
    if gathered:
        piece = bytes(gathered)
        gathered.clear()
        later = take(piece)
        if later is not None:
            await later
