from __future__ import annotations

import asyncio
from contextlib import suppress
from types import SimpleNamespace

from tornado.httputil import HTTPHeaders, RequestStartLine

from fhirpub.web.body_watch import BodyWatch
from fhirpub.web.request import Request


class Stream:
    """The end of a connection, of which only the closing matters."""

    def __init__(self, *, broken: bool = False) -> None:
        self._broken = broken
        self._closed = asyncio.Event()

    def close(self) -> None:
        if self._broken:
            raise OSError("cannot be closed")
        self._closed.set()

    async def wait_closed(self) -> None:
        await self._closed.wait()


def arriving(stream: Stream) -> Request:
    line = RequestStartLine("POST", "/", "HTTP/1.1")
    return Request(line, HTTPHeaders(), SimpleNamespace(stream=stream))


async def test_a_connection_that_cannot_be_closed_does_not_end_the_watching() -> None:
    watch, good = BodyWatch(0.02), Stream()
    watch.begin(arriving(Stream(broken=True)))
    watch.begin(arriving(good))

    watching = asyncio.create_task(watch.run())
    async with asyncio.timeout(5):
        await good.wait_closed()
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
