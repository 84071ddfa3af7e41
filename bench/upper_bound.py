"""A server on a bare asyncio protocol, far faster than any framework.

The load generator's rate against it is the generator's own ceiling: a lower bound, because both
share the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import re

from bench.baseline import LOOPBACK, Constant

_CONTENT_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


def _answer(status: bytes, body: bytes) -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


class Answerer(asyncio.Protocol):
    """One connection: counts the bytes of a request and responds when all have arrived."""

    read_answer = _answer(b"200 OK", Constant.read_answer)
    register_answer = _answer(b"201 Created", Constant.register_answer)

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._head = b""
        self._missing = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._missing > 0:
            self._missing -= len(data)
        else:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return
            length = _CONTENT_LENGTH.search(self._head, 0, end + 2)
            body = int(length[1]) if length else 0
            self._missing = end + 4 + body - len(self._head)
        if self._missing <= 0:
            self._reply()

    def _reply(self) -> None:
        assert self._transport is not None
        reading = self._head.startswith(b"GET")
        self._head = b""
        self._missing = 0
        self._transport.write(self.read_answer if reading else self.register_answer)


async def serve(port: int) -> None:
    """Respond on the loopback address until the process is ended."""
    server = await asyncio.get_running_loop().create_server(Answerer, LOOPBACK, port)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    asyncio.run(serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
