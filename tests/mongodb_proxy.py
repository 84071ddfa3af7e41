"""A proxy before one mongod that breaks connections at chosen requests and replies."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import sys
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Self, TypeVar

from fhirpub.testing.receiver import close_server

_HOST = "127.0.0.1"
_PATIENCE_SECONDS = 10.0
_HEADER = struct.Struct("<iiii")
"""Length of the message with this header, its number, the number of its request, its kind."""
_OP_MSG = 2013
_COMMAND_AT = _HEADER.size + 4 + 1 + 4 + 1
"""After flags, kind of section, length of the document, and type of its first member."""
_RESET_AT_CLOSE = struct.pack("ii", 1, 0)
T = TypeVar("T")


class Fault(Enum):
    """The fault of a request, its reply or its connection."""

    REFUSE = auto()
    """Every connection is reset, open ones immediately."""
    STALL = auto()
    """Nothing passes until the proxy is healed, and then all of it, late."""
    CUT_REQUEST = auto()
    """The connection is reset, and the server never sees the request."""
    CUT_REPLY = auto()
    """The server has carried out the request; the connection is reset instead of its reply."""
    DROP_REPLY = auto()
    """The server has carried out the request; its reply never arrives."""


class Proxy:
    """Passes messages between clients and a server on this machine until a fault is injected.

    It runs in a thread of its own, and supports neither encrypted nor compressed messages; drivers
    send none by default.
    """

    def __init__(self, server_port: int) -> None:
        self.port = 0
        self._server_port = server_port
        self._order = _Order()
        self._connections: dict[asyncio.Task[None], _Connection] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def address(self) -> str:
        """Host and port; the port is known once it has started."""
        return f"{_HOST}:{self.port}"

    @property
    def hits(self) -> int:
        """The number of requests that the latest fault has affected."""
        return self._order.hits

    def start(self) -> None:
        """Accept connections."""
        self._thread.start()
        self._listener = self._run(self._listen())
        self.port = self._listener.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Close all connections and end the thread."""
        if self._thread.is_alive():
            self._run(self._end())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    def inject(self, fault: Fault, *commands: str, times: int = sys.maxsize) -> None:
        """Apply a fault to the next requests of these commands, and no other fault any more.

        Without commands it applies to all messages, in both directions, until ``heal`` is called.
        """
        self._run(self._set(_Order(fault, frozenset(commands), times)))

    def heal(self) -> None:
        """Pass all messages again."""
        self._run(self._set(_Order()))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE_SECONDS)

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, _HOST, 0)

    async def _set(self, order: _Order) -> None:
        self._order.over.set()
        self._order = order
        if order.fault is Fault.REFUSE:
            for connection in self._connections.values():
                connection.reset()

    async def _end(self) -> None:
        await close_server(self._listener)
        # This includes connections that are just being accepted: one that the loop leaves open
        # would be reported in an unrelated test.
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await self._set(_Order(Fault.REFUSE))
            await asyncio.wait(others)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _Stream(reader, writer)
        if self._order.fault is Fault.REFUSE:
            client.reset()
            return
        try:
            server = _Stream(*await asyncio.open_connection(_HOST, self._server_port))
        except OSError:
            client.reset()
            return
        connection = _Connection(client, server, lambda: self._order)
        task = asyncio.create_task(connection.run())
        self._connections[task] = connection
        task.add_done_callback(self._connections.pop)


@dataclass(slots=True)
class _Order:
    """A fault, if any, and the requests that it affects."""

    fault: Fault | None = None
    commands: frozenset[str] = frozenset()
    left: int = sys.maxsize
    hits: int = 0
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def befalling(self, request: _Message) -> Fault | None:
        """Return the fault for a request, and count it."""
        if self.fault is None or not self.left:
            return None
        if self.commands and request.command not in self.commands:
            return None
        self.left -= 1
        self.hits += 1
        return self.fault

    @property
    def befalling_all(self) -> Fault | None:
        """The fault for replies without a request, too."""
        return None if self.commands else self.fault


class _Connection:
    """A client's connection, and the matching one to the server."""

    def __init__(self, client: _Stream, server: _Stream, order: Callable[[], _Order]) -> None:
        self._client = client
        self._server = server
        self._order = order
        self._faulty: dict[int, Fault] = {}
        """The fault of each reply that is to come, by the number of its request."""

    async def run(self) -> None:
        passing = [
            asyncio.create_task(coroutine) for coroutine in (self._requests(), self._replies())
        ]
        try:
            await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in passing:
                task.cancel()
            await asyncio.gather(*passing, return_exceptions=True)
            self._client.close()
            self._server.close()

    def reset(self) -> None:
        self._client.reset()
        self._server.reset()

    async def _requests(self) -> None:
        while request := await self._client.read():
            order = self._order()
            match order.befalling(request):
                case Fault.CUT_REQUEST:
                    self.reset()
                    return
                case Fault.STALL:
                    await order.over.wait()
                case Fault.CUT_REPLY | Fault.DROP_REPLY as fault:
                    self._faulty[request.number] = fault
            await self._server.write(request)

    async def _replies(self) -> None:
        while reply := await self._server.read():
            order = self._order()
            match self._faulty.pop(reply.answers, order.befalling_all):
                case Fault.CUT_REPLY:
                    self.reset()
                    return
                case Fault.DROP_REPLY:
                    continue
                case Fault.STALL:
                    await order.over.wait()
            await self._client.write(reply)


@dataclass(frozen=True, slots=True)
class _Message:
    data: bytes
    number: int
    answers: int
    kind: int

    @property
    def command(self) -> str:
        """The name of the command; only the first ``hello`` has another form."""
        if self.kind != _OP_MSG:
            return "hello"
        return self.data[_COMMAND_AT : self.data.index(0, _COMMAND_AT)].decode()


@dataclass(frozen=True, slots=True)
class _Stream:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def read(self) -> _Message | None:
        """Return the next message, or nothing at the end."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            header = await self.reader.readexactly(_HEADER.size)
            length, number, answers, kind = _HEADER.unpack(header)
            rest = await self.reader.readexactly(length - _HEADER.size)
            return _Message(header + rest, number, answers, kind)
        return None

    async def write(self, message: _Message) -> None:
        self.writer.write(message.data)
        await self.writer.drain()

    def close(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        transport = self.writer.get_extra_info("socket")
        if transport.fileno() >= 0:
            transport.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
        self.writer.transport.abort()
