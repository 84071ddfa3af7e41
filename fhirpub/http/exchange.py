"""A request in flight, and how its response is written in HTTP/1.1."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from tornado.httputil import HTTPOutputError, RequestStartLine, ResponseStartLine
from tornado.iostream import IOStream, StreamClosedError

_BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_WITHOUT_BODY = (204, 304)


@dataclass(frozen=True, slots=True)
class Peer:
    """The peer of a connection."""

    remote_ip: str


class AnswerHeaders(Protocol):
    """The headers of an answer, of which Tornado's ``HTTPHeaders`` are one kind."""

    def get_all(self) -> Iterable[tuple[str, str]]:
        """Return each with its name as it is to be written."""

    def __getitem__(self, name: str, /) -> str: ...


class Headers(dict[str, str]):
    """The headers of an answer, each once, under the names that HTTP writes."""

    def get_all(self) -> Iterable[tuple[str, str]]:
        """Return each with its name."""
        return self.items()


class Exchange:
    """A request in flight and its response: Tornado's ``HTTPConnection`` interface."""

    def __init__(
        self, stream: IOStream, context: Peer, line: RequestStartLine, *, is_last: bool
    ) -> None:
        self.stream = stream
        self.context = context
        self.is_last = is_last
        """Whether the connection ends with the answer in any case."""
        self.is_read = False
        """Whether all of the request is here."""
        self.finished_at: float | None = None
        """When the answer ended, by the clock of the event loop."""
        self._line = line
        self._missing: int | None = None
        self._is_decided = False
        self._leaving: asyncio.Future[None] | None = None
        self._end: asyncio.Future[None] | None = None

    @property
    def is_begun(self) -> bool:
        """Whether some of the answer was handed in."""
        return self._missing is not None

    @property
    def is_decided(self) -> bool:
        """Whether the answer is certain: whatever else comes of the request does not count."""
        return self._is_decided or self.is_begun

    def decide(self) -> None:
        """Note that the answer is certain, and is handed in later."""
        self._is_decided = True

    @property
    def is_finished(self) -> bool:
        """Whether all of the answer was handed in, or what is missing will never come."""
        return self.finished_at is not None

    @property
    def closes(self) -> bool:
        """Whether the connection ends with the answer.

        It must if the request was not read: the rest of a body would be taken for the next head.
        """
        return self.is_last or not self.is_read

    def write_headers(
        self, start_line: ResponseStartLine, headers: AnswerHeaders, chunk: bytes = b""
    ) -> asyncio.Future[None]:
        """Begin the answer, which states its Content-Length unless it can have no body.

        What is returned is done when all of it has left; it raises StreamClosedError if the
        client has gone. Raises HTTPOutputError for a header of several lines.
        """
        lines = [f"HTTP/1.1 {start_line.code} {start_line.reason}"]
        lines += [f"{name}: {value}" for name, value in headers.get_all()]
        if self.closes:
            lines.append("Connection: close")
        elif self._line.version == "HTTP/1.0":
            lines.append("Connection: keep-alive")
        head = "\r\n".join(lines)
        if not head.count("\r") == head.count("\n") == len(lines) - 1:
            raise HTTPOutputError("a header must be one line")
        bodyless = self._line.method == "HEAD" or start_line.code in _WITHOUT_BODY
        self._missing = (0 if bodyless else int(headers["Content-Length"])) - len(chunk)
        return self._send(head.encode("latin-1") + b"\r\n\r\n" + chunk)

    def write(self, chunk: bytes | memoryview) -> asyncio.Future[None]:
        """Go on with the answer; what is returned is that of :meth:`write_headers`."""
        if self._missing is None or len(chunk) > self._missing:
            self.close()
            raise HTTPOutputError("this is not part of the answer that was begun")
        self._missing -= len(chunk)
        return self._send(chunk)

    def _send(self, data: bytes | memoryview) -> asyncio.Future[None]:
        if self.stream.closed():
            self._leaving = asyncio.get_running_loop().create_future()
            self._leaving.set_exception(StreamClosedError())
            self._leaving.exception()  # not every caller retrieves it
        else:
            self._leaving = self.stream.write(data)
        return self._leaving

    def finish(self) -> None:
        """End the answer; raises HTTPOutputError if some of it is missing."""
        if self._missing != 0:
            self.close()
            raise HTTPOutputError("the answer is shorter than it says")
        self._finish()

    def refuse(self) -> None:
        """Refuse a malformed request; a response that has already begun is aborted."""
        if not self.is_begun:
            self._send(_BAD_REQUEST)
        self._finish()

    def close(self) -> None:
        """Close the connection and drop the response."""
        self.stream.close()
        self._finish()

    def _finish(self) -> None:
        if self.finished_at is None:
            self.finished_at = asyncio.get_running_loop().time()
        if self._end is not None and not self._end.done():
            self._end.set_result(None)

    async def wait_ended(self) -> None:
        """Return when all of the answer has left, or never will."""
        if not self.is_finished:
            self._end = asyncio.get_running_loop().create_future()
            await self._end
        if self._leaving is not None:
            with suppress(StreamClosedError):
                await self._leaving
