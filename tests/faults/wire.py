"""A connection that distinguishes a call that was never sent from a missing response."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Self
from urllib.parse import urlsplit

from fhirpub.testing.service import Answer

_TAKE_CARE_BYTES = 2**24


class NotSentError(Exception):
    """There was no listener: nothing has happened, and nothing will."""


class NoAnswerError(Exception):
    """The connection ended, or it took too long: the request may have had its effect."""


class Connection:
    """HTTP/1.1 to one service, over one socket after another; for one task at a time.

    Nothing is ever sent twice.
    """

    def __init__(self, base_url: str, *, token: str, seconds: float = 20.0) -> None:
        address = urlsplit(base_url)
        self._host, self._port = address.hostname or "", address.port or 80
        self._head = (
            f"Host: {address.netloc}\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/fhir+json\r\n"
        )
        self._seconds = seconds
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_failure: object) -> None:
        self._drop()

    async def request(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request and return its response.

        Raises NotSentError, NoAnswerError.
        """
        await self.open()
        lines = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        start = f"{method} {path} HTTP/1.1\r\n{self._head}{lines}"
        try:
            async with asyncio.timeout(self._seconds):
                return await self._exchange(
                    f"{start}Content-Length: {len(body)}\r\n\r\n".encode() + body
                )
        except (OSError, EOFError, TimeoutError) as failure:
            self._drop()
            raise NoAnswerError from failure
        except BaseException:
            self._drop()  # a response that is still to come must not be taken for the next one
            raise

    async def open(self) -> None:
        """Connect if necessary; raises NotSentError."""
        if self._streams is not None:
            return
        try:
            async with asyncio.timeout(self._seconds):
                self._streams = await asyncio.open_connection(
                    self._host, self._port, limit=_TAKE_CARE_BYTES
                )
        except (OSError, TimeoutError) as failure:
            raise NotSentError from failure

    async def _exchange(self, request: bytes) -> Answer:
        if self._streams is None:
            raise NotSentError
        reader, writer = self._streams
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").rstrip().split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if headers.get("connection") == "close":
            self._drop()
        return Answer(int(status.split(" ", 2)[1]), headers, body)

    def _drop(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None
