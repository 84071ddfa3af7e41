from __future__ import annotations

import asyncio
from contextlib import suppress
from types import SimpleNamespace

from structlog.testing import capture_logs
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


async def test_a_body_is_refused_after_its_time_and_once() -> None:
    watch, refused = BodyReadTimeout(30.0), list[str]()
    began = asyncio.get_running_loop().time()
    watch.begin(arriving(), lambda: refused.append("a"))

    watch._look(began + 29.0)
    before = [*refused]
    watch._look(began + 31.0)
    watch._look(began + 32.0)

    assert (before, refused) == ([], ["a"])


async def test_a_body_that_is_complete_is_not_refused() -> None:
    watch, refused, request = BodyReadTimeout(30.0), list[str](), arriving()
    watch.begin(request, lambda: refused.append("a"))

    watch.end(request)
    watch.end(request)
    watch._look(asyncio.get_running_loop().time() + 31.0)

    assert refused == []


async def test_a_failure_of_the_watching_is_logged_without_its_text() -> None:
    watch, failed = BodyReadTimeout(0.02), asyncio.Event()

    def fail() -> None:
        failed.set()
        raise OSError("a secret")

    watch.begin(arriving(), fail)
    with capture_logs() as logs:
        watching = asyncio.create_task(watch.run())
        async with asyncio.timeout(20):
            await failed.wait()
        await asyncio.sleep(0)
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching

    (entry,) = logs
    assert (entry["event"], entry["log_level"]) == ("bodies not watched", "error")
    assert "a secret" not in str(entry)
