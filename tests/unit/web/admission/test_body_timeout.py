from __future__ import annotations

import asyncio
from contextlib import suppress
from types import SimpleNamespace

from tornado.httputil import HTTPHeaders, RequestStartLine

from fhirpub.web.admission.body_timeout import BodyReadTimeout
from fhirpub.web.message.request import Request


def arriving() -> Request:
    line = RequestStartLine("POST", "/", "HTTP/1.1")
    return Request(line, HTTPHeaders(), SimpleNamespace())


async def test_a_body_that_cannot_be_refused_does_not_end_the_watching() -> None:
    watch, refused = BodyReadTimeout(0.02), asyncio.Event()

    def fail() -> None:
        raise OSError("cannot be refused")

    watch.begin(arriving(), fail)
    watch.begin(arriving(), refused.set)

    watching = asyncio.create_task(watch.run())
    async with asyncio.timeout(20):
        await refused.wait()
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
