"""A client connection that sends exactly the given bytes, for requests of any shape."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Sequence
from typing import Self

from bench.baseline import LOOPBACK

_STATUS = re.compile(rb"HTTP/1\.1 ([0-9]{3}) ")
_CONTENT_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)
_CONTENTLESS = {204, 304}
_PIECE = 262_144
_BIND_WITHOUT_PORT = 24
"""IP_BIND_ADDRESS_NO_PORT of Linux: one source address may then use every port."""

Chunks = Sequence[bytes | memoryview]


class Disconnected(Exception):
    """The service has closed the connection before the end of a response."""


class Wire:
    """A TCP connection to the service; use it as a context manager."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._loop = asyncio.get_running_loop()
        self._received = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._socket.close()

    @classmethod
    async def open(cls, port: int, *, source: str, receive_buffer: int = 0) -> Self:
        """Connect from the address ``source``; ``receive_buffer`` 0 keeps the system's size."""
        connection = socket.socket()
        try:
            connection.settimeout(0)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.IPPROTO_IP, _BIND_WITHOUT_PORT, 1)
            if receive_buffer:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            connection.bind((source, 0))
            await asyncio.get_running_loop().sock_connect(connection, (LOOPBACK, port))
        except BaseException:
            connection.close()
            raise
        return cls(connection)

    async def send(self, *chunks: bytes | memoryview) -> None:
        """Send all of the chunks."""
        for chunk in chunks:
            await self._loop.sock_sendall(self._socket, chunk)

    async def receive(self, most: int = _PIECE) -> bytes:
        """Return the bytes that arrive next; nothing if the service has closed its side."""
        return await self._loop.sock_recv(self._socket, most)

    async def answer(self) -> tuple[int, bytes]:
        """Read one response to its end; return its status and its head.

        Raises Disconnected.
        """
        while (end := self._received.find(b"\r\n\r\n")) < 0:
            self._received += await self._more()
        head, body = self._received[: end + 2], self._received[end + 4 :]
        found = _STATUS.match(head)
        if found is None:
            raise Disconnected
        status = int(found[1])
        length = _CONTENT_LENGTH.search(head)
        missing = 0 if status in _CONTENTLESS or length is None else int(length[1])
        self._received = body[missing:]
        missing -= min(missing, len(body))
        while missing:
            missing -= len(await self._more(min(missing, _PIECE)))
        return status, head

    def reset(self) -> None:
        """Close the connection with a TCP reset, which leaves no port waiting."""
        linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._socket.close()

    async def _more(self, most: int = _PIECE) -> bytes:
        data = await self.receive(most)
        if not data:
            raise Disconnected
        return data
