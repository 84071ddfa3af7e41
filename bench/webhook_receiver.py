"""A cheap receiver of webhooks: it responds 204 and records the times.

``python -m bench.webhook_receiver FILE`` prints its port. Below ``/dead`` it never responds, below
``/drip`` byte by byte. On SIGTERM it writes a line for each request to the file: the event's id,
the path, and the time of the response on the machine's monotonic clock.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from pathlib import Path

_ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"
_DRIP = b"HTTP/1.1 200 OK\r\nX-Drip: "
_DRIP_SECONDS = 0.5

_noted: list[tuple[str, str, int]] = []


class Connection(asyncio.Protocol):
    """One connection, kept open between requests."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._got = b""
        self._dripping: asyncio.Task[None] | None = None

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        if self._dripping is not None:
            self._dripping.cancel()

    def data_received(self, data: bytes) -> None:
        self._got += data
        while (end := self._got.find(b"\r\n\r\n")) >= 0:
            head = self._got[:end].lower()
            length = int(_header(head, b"content-length") or b"0")
            if len(self._got) < end + 4 + length:
                return
            self._got = self._got[end + 4 + length :]
            self._answer(head)

    def _answer(self, head: bytes) -> None:
        path = head.split(b" ", 2)[1].decode()
        if path.startswith("/drip"):
            self._dripping = asyncio.create_task(self._drip())
        elif not path.startswith("/dead"):
            self._transport.write(_ANSWER)  # type: ignore[attr-defined]
            noted = (_header(head, b"webhook-id").decode(), path, time.monotonic_ns())
            _noted.append(noted)

    async def _drip(self) -> None:
        for byte in _DRIP + b"1" * 1000:
            self._transport.write(bytes([byte]))  # type: ignore[attr-defined]
            await asyncio.sleep(_DRIP_SECONDS)


def _header(head: bytes, name: bytes) -> bytes:
    return head.partition(b"\r\n" + name + b": ")[2].partition(b"\r\n")[0]


async def receive() -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await stopped.wait()


if __name__ == "__main__":
    asyncio.run(receive())
    Path(sys.argv[1]).write_text("".join(f"{name} {path} {at}\n" for name, path, at in _noted))
