"""Requests whose body is still on its way, and an end to those that take too long.

Tornado can do this, at the cost of a timer for each request.
"""

from __future__ import annotations

import asyncio
from typing import Any

from tornado.httputil import HTTPServerRequest


class BodyWatch:
    """Closes the connection of a body that has not arrived after some seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: dict[HTTPServerRequest, float] = {}

    def begin(self, request: HTTPServerRequest) -> None:
        """Expect the body of a request, if it has one."""
        headers = request.headers
        if headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in headers:
            self._since[request] = asyncio.get_running_loop().time()

    def end(self, request: HTTPServerRequest) -> None:
        """Expect it no more: it is here, or will never be."""
        self._since.pop(request, None)

    async def run(self) -> None:
        """Look after them until cancelled."""
        while True:
            await asyncio.sleep(min(1.0, self._seconds / 4))
            limit = asyncio.get_running_loop().time() - self._seconds
            for request, since in list(self._since.items()):
                if since < limit:
                    self.end(request)
                    connection: Any = request.connection
                    connection.close()
