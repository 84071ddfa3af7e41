"""Where the handler of an entry writes its answer: into memory, within the bounds of its batch."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from tornado.httputil import ResponseStartLine
from tornado.iostream import IOStream, StreamClosedError

from fhirpub.http.exchange import AnswerHeaders, Exchange, Headers
from fhirpub.web.message.content_negotiation import FHIR_JSON


@dataclass(slots=True)
class AnswerBytes:
    """How many bytes the answers of a batch may have together, and have."""

    most: int
    used: int = 0

    @property
    def is_used_up(self) -> bool:
        """Whether there is no room for another resource."""
        return self.used >= self.most

    def take(self, size: int) -> bool:
        """Take some bytes, or return False if there are not as many left."""
        if self.used + size > self.most:
            return False
        self.used += size
        return True


class EntryExchange:
    """An answer that is kept: the interface of `fhirpub.http.exchange.Exchange` for a handler."""

    def __init__(self, connection: Exchange, room: AnswerBytes) -> None:
        self.stream: IOStream = connection.stream
        self.context = connection.context
        self.status = 0
        self.headers = Headers()
        self.body: bytes | None = b""
        """The body; None if there is no room for it."""
        self.is_complete = False
        self._room = room
        self._pieces: list[bytes] = []
        loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = loop.create_future()
        self._sent: asyncio.Future[None] = loop.create_future()
        self._sent.set_result(None)

    @property
    def is_fhir(self) -> bool:
        """Whether the answer is FHIR in JSON, or has no body."""
        return self.headers.get("Content-Type", FHIR_JSON) == FHIR_JSON

    def decide(self) -> None:
        """Note nothing: the request of an entry is complete when it is handed on."""

    def write_headers(
        self, start_line: ResponseStartLine, headers: AnswerHeaders, chunk: bytes = b""
    ) -> asyncio.Future[None]:
        """Begin the answer."""
        self.status = start_line.code
        self.headers = Headers(headers.get_all())
        if not self._room.take(int(self.headers.get("Content-Length", "0"))):
            self.body = None
        return self.write(chunk) if self.body is not None else self._sent

    def write(self, chunk: bytes | memoryview) -> asyncio.Future[None]:
        """Go on with the answer; raises StreamClosedError if there is no room for it."""
        if self.body is None:
            raise StreamClosedError
        if chunk:
            self._pieces.append(bytes(chunk))
        return self._sent

    def finish(self) -> None:
        """End the answer."""
        self.is_complete = True
        self.close()

    def close(self) -> None:
        """End the answer, whether it is complete or not."""
        if self.body is not None:
            self.body = b"".join(self._pieces)
        if not self._ended.done():
            self._ended.set_result(None)

    async def wait_ended(self) -> None:
        """Return when the handler has nothing to write any more."""
        await self._ended
