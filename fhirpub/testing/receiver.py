"""A webhook receiver on a real socket, with scripted responses, valid or hostile."""

from __future__ import annotations

import asyncio
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from socket import SO_LINGER, SOL_SOCKET
from typing import Any, Literal, Self

from fhirpub.fhir.strict_json import loads
from fhirpub.testing.certificate import Certificate

Misbehaviour = Literal[
    "silent",
    "dripping-headers",
    "dripping-body",
    "endless-body",
    "endless-interim",
    "header-flood",
    "long-header",
    "reset",
    "closed",
    "body-after-204",
    "no-http",
]
"""What a receiver does instead of sending a valid response."""

_DRIP_SECONDS = 0.05
_START_SECONDS = 10.0
_FOREVER_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the receiver does with one request.

    Attributes:
        status: The HTTP status of the response.
        headers: Its headers, besides Content-Length and Connection.
        body: Its body.
        delay: The time before the response, in seconds.
        echo: Whether the body is that of the request, which verifies an endpoint.
        keep_open: Whether the next request may use the same connection.
        misbehaviour: What to do instead of sending a response, or None.
    """

    status: int = 204
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    delay: float = 0.0
    echo: bool = False
    keep_open: bool = False
    misbehaviour: Misbehaviour | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request as it was received.

    Attributes:
        method: Its method.
        path: Its path, with the query.
        headers: Its headers; the names are in lower case.
        body: Its body.
        at: When it was received, in seconds of the monotonic clock.
        port: The port of the sender, the same for all requests on one connection.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float
    port: int

    @property
    def json(self) -> Any:
        """The body as JSON, parsed strictly."""
        return loads(self.body)


class Receiver:
    """A webhook receiver on 127.0.0.1, in a thread of its own; use it as a context manager.

    Each request is added to ``received`` before its response is sent. All responses are 204 until
    `answer` or `answer_by` is called.

    Args:
        certificate: The certificate to present; without it the receiver does not use TLS.

    Attributes:
        port: The port on which it listens, 0 before it is started.
        received: The requests in the order of their arrival.
    """

    def __init__(self, *, certificate: Certificate | None = None) -> None:
        self.port = 0
        self.received: list[Received] = []
        self._replies: list[Reply] = [Reply()]
        self._choose: Callable[[Received], Reply] | None = None
        self._certificate = certificate
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="receiver", daemon=True)
        self._listening = threading.Event()
        self._stop: Callable[[], object] = list

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._listening.wait(_START_SECONDS):
            raise RuntimeError("the receiver does not listen")
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stop()
        self._thread.join()

    @property
    def url(self) -> str:
        """The URL at which it receives webhooks."""
        scheme = "https" if self._certificate else "http"
        return f"{scheme}://127.0.0.1:{self.port}/webhook"

    def answer(self, *replies: Reply) -> None:
        """Set the replies to the next requests.

        Args:
            *replies: The replies, one for each request, in order. The last one repeats.
        """
        with self._changed:
            self._choose = None
            self._replies = list(replies)

    def answer_by(self, choose: Callable[[Received], Reply]) -> None:
        """Set a function that chooses the reply to each request.

        Args:
            choose: The function, which is called in the thread of the receiver.
        """
        with self._changed:
            self._choose = choose

    def wait(self, number: int, *, seconds: float = 30.0) -> Sequence[Received]:
        """Wait for requests.

        Args:
            number: The minimum number of requests in total.
            seconds: The maximum time to wait, in seconds.

        Returns:
            All requests that were received.

        Raises:
            TimeoutError: There were fewer requests in that time.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.received) >= number, seconds):
                raise TimeoutError(f"{len(self.received)} of {number} requests came")
            return tuple(self.received)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        context = self._certificate.server() if self._certificate else None
        server = await asyncio.start_server(self._handle_connection, "127.0.0.1", 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        self._stop = lambda: loop.call_soon_threadsafe(stopped.set)
        self._listening.set()
        await stopped.wait()
        await close_server(server)

    async def _handle_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            open_ = True
            while open_:
                received = await _read(reader, writer)
                reply = self._record(received)
                if reply.echo:
                    reply = replace(reply, body=received.body)
                await asyncio.sleep(reply.delay)
                await _write(writer, reply)
                open_ = reply.keep_open
        except (OSError, EOFError, ValueError):
            writer.transport.abort()  # the client has gone, or does not speak HTTP
        except asyncio.CancelledError:
            writer.transport.abort()
        else:
            writer.close()

    def _record(self, received: Received) -> Reply:
        with self._changed:
            self.received.append(received)
            self._changed.notify_all()
            if self._choose is not None:
                return self._choose(received)
            return self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]


async def close_server(server: asyncio.Server) -> None:
    """Stop listening, after the connections that are being accepted.

    `asyncio.Server.close` would leave those open: https://github.com/python/cpython/issues/109564.

    Args:
        server: The server; it runs on the current event loop.
    """
    for listening in server.sockets:
        server.get_loop().remove_reader(listening.fileno())
    await asyncio.sleep(0)
    server.close()


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
    method, path, _version = first.split(" ")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(
        method=method,
        path=path,
        headers=headers,
        body=body,
        at=time.monotonic(),
        port=writer.get_extra_info("peername")[1],
    )


async def _write(writer: asyncio.StreamWriter, reply: Reply) -> None:
    if reply.misbehaviour is not None:
        await _MISBEHAVIOURS[reply.misbehaviour](writer)
        return
    lines = [f"HTTP/1.1 {reply.status} -", *(f"{k}: {v}" for k, v in reply.headers.items())]
    if reply.status != 204:
        lines.append(f"Content-Length: {len(reply.body)}")
    if not reply.keep_open:
        lines.append("Connection: close")
    writer.write("\r\n".join([*lines, "", ""]).encode() + reply.body)
    await writer.drain()


# How a receiver can be hostile.

_STATUS_LINE = b"HTTP/1.1 200 OK\r\n"


async def _stay_silent(_writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(_FOREVER_SECONDS)  # held by the loop, as an event would not be


async def _drip_headers(writer: asyncio.StreamWriter) -> None:
    writer.write(_STATUS_LINE)
    await _repeat(writer, b"X-Drip: 1\r\n", pause=_DRIP_SECONDS, most=None)


async def _drip_body(writer: asyncio.StreamWriter) -> None:
    writer.write(_STATUS_LINE + b"Content-Length: 1000000\r\n\r\n")
    await _repeat(writer, b".", pause=_DRIP_SECONDS, most=None)


async def _stream_endlessly(writer: asyncio.StreamWriter) -> None:
    writer.write(_STATUS_LINE + b"Connection: close\r\n\r\n")
    await _repeat(writer, b"." * 65_536, pause=0, most=None)


async def _stream_interim(writer: asyncio.StreamWriter) -> None:
    await _repeat(writer, b"HTTP/1.1 100 Continue\r\n\r\n", pause=_DRIP_SECONDS, most=None)


async def _header_flood(writer: asyncio.StreamWriter) -> None:
    writer.write(_STATUS_LINE)
    await _repeat(writer, b"X-Flood: 1\r\n" * 100, pause=0, most=1_000)


async def _long_header(writer: asyncio.StreamWriter) -> None:
    writer.write(_STATUS_LINE + b"X-Long: ")
    await _repeat(writer, b"1" * 1_000, pause=0, most=1_000)


async def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    connection.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _close(_writer: asyncio.StreamWriter) -> None:
    """Send nothing; the connection is closed afterwards."""


async def _body_after_204(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 204 No Content\r\nContent-Type: text/plain\r\n\r\nbut yes\r\n\r\n")
    await writer.drain()


async def _no_http(writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 mail.example.org ESMTP\r\n")
    await writer.drain()


async def _repeat(
    writer: asyncio.StreamWriter, piece: bytes, *, pause: float, most: int | None
) -> None:
    """Write a piece repeatedly, ``most`` times at most, until the other side has gone."""
    written = 0
    while most is None or written < most:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(pause)
        written += 1


_MISBEHAVIOURS: Mapping[Misbehaviour, Callable[[asyncio.StreamWriter], Awaitable[None]]] = {
    "silent": _stay_silent,
    "dripping-headers": _drip_headers,
    "dripping-body": _drip_body,
    "endless-body": _stream_endlessly,
    "endless-interim": _stream_interim,
    "header-flood": _header_flood,
    "long-header": _long_header,
    "reset": _reset,
    "closed": _close,
    "body-after-204": _body_after_204,
    "no-http": _no_http,
}
