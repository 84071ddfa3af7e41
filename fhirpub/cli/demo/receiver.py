"""The webhook receiver of the demo, on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import orjson
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPHeaders, HTTPServerRequest, ResponseStartLine
from tornado.netutil import bind_sockets

_HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ReceivedDelivery:
    """A webhook as received."""

    headers: Mapping[str, str]
    body: bytes


class DemoReceiver:
    """Accepts every webhook, and repeats challenges to prove that it wants webhooks."""

    def __init__(self) -> None:
        self.url = ""
        self._letters: asyncio.Queue[ReceivedDelivery] = asyncio.Queue()

    @asynccontextmanager
    async def receiving(self) -> AsyncIterator[None]:
        """Receive until the block ends."""
        sockets = bind_sockets(0, address=_HOST)
        self.url = f"http://{_HOST}:{sockets[0].getsockname()[1]}/webhook"
        server = HTTPServer(self._take)
        server.add_sockets(sockets)
        try:
            yield
        finally:
            server.stop()
            await server.close_all_connections()

    async def wait_for(self, event_type: str, *, seconds: float) -> ReceivedDelivery:
        """Return the next webhook of this event type. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while True:
                letter = await self._letters.get()
                if letter.headers["X-Webhook-Event"] == event_type:
                    return letter

    def _take(self, request: HTTPServerRequest) -> None:
        self._letters.put_nowait(ReceivedDelivery(request.headers, request.body))
        challenge = orjson.loads(request.body)["data"].get("challenge", "").encode()
        headers = HTTPHeaders({"Content-Length": str(len(challenge))})
        connection = request.connection
        if connection is not None:
            connection.write_headers(ResponseStartLine("HTTP/1.1", 200, "OK"), headers, challenge)
            connection.finish()
