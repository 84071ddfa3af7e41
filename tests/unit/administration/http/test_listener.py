"""The listener of administration: what it hands on, and the bodies that it does not take."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from fhirpub.administration.http import listener
from fhirpub.administration.http.interface import Interface
from fhirpub.administration.http.listener import MAX_CONNECTIONS, serve_admin
from fhirpub.administration.http.responses import Asked, Response
from fhirpub.config.settings import Config
from fhirpub.errors import FhirpubError
from fhirpub.http.own_ports import bind_own_port
from fhirpub.web.admission.body_timeout import BodyReadTimeout
from fhirpub.web.error_mapping import TooSlow
from tests.waiting import until

CONFIG = Config()
MIB = 1024 * 1024


@dataclass
class Noting:
    """Answers each request, and keeps what was asked."""

    asked: list[Asked] = field(default_factory=list)
    refused: list[FhirpubError] = field(default_factory=list)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def respond(self, asked: Asked) -> Response:
        self.asked.append(asked)
        await self.go_on.wait()
        return Response(201, b"done", {"X-Own": "1", "Cache-Control": "private"})

    def refuse(self, problem: FhirpubError, asked: Asked) -> Response:
        self.refused.append(problem)
        self.asked.append(asked)
        return Response(400, b"refused")


@dataclass
class Listening:
    """A listener and its port."""

    port: int
    interface: Noting
    timeout: BodyReadTimeout

    async def send(self, data: bytes) -> tuple[list[str], bytes]:
        """Return the lines of the head of an answer, and its body, once the connection ends."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        received = b""
        with suppress(ConnectionError):  # what is not read is refused, then cut off
            async with asyncio.timeout(30):
                while piece := await reader.read(65_536):
                    received += piece
        head, _, body = received.partition(b"\r\n\r\n")
        writer.close()
        return head.decode().split("\r\n"), body


@asynccontextmanager
async def listening(**server: Any) -> AsyncGenerator[Listening]:
    config = replace(CONFIG, server=replace(CONFIG.server, **server))
    sockets = bind_own_port("admin", replace(CONFIG.admin, port=0))
    interface, timeout = Noting(), BodyReadTimeout(10)
    async with serve_admin(cast("Interface", interface), sockets, config, timeout):
        interface.go_on.set()
        yield Listening(sockets[0].getsockname()[1], interface, timeout)


def message(start: str, *lines: str, body: bytes = b"") -> bytes:
    given = [f"{start} HTTP/1.1", "Host: a", "Connection: close", *lines]
    given += [f"Content-Length: {len(body)}"] * bool(body)
    return "\r\n".join([*given, "", ""]).encode() + body


async def test_a_request_is_handed_on_as_a_whole() -> None:
    async with listening() as one:
        await one.send(message("POST /admin/v1/tenants?a=1", "X-A: 1", "X-A: 2", body=b"abc"))

    (asked,) = one.interface.asked
    assert (asked.method, asked.path, asked.query) == ("POST", "/admin/v1/tenants", "a=1")
    assert (asked.headers["x-a"], asked.body, asked.address) == (["1", "2"], b"abc", "127.0.0.1")
    assert asked.request_id.startswith("admin-")
    assert len(asked.request_id) == len("admin-") + 16


async def test_an_answer_has_the_usual_headers_and_its_own() -> None:
    async with listening() as one:
        (line, *headers), body = await one.send(message("GET /"))

    assert (line, body) == ("HTTP/1.1 201 Created", b"done")
    assert {
        "Server: fhirpub",
        f"X-Request-Id: {one.interface.asked[0].request_id}",
        "X-Content-Type-Options: nosniff",
        "Cache-Control: private",
        "X-Own: 1",
        "Content-Length: 4",
    } <= {*headers}


async def test_an_answer_is_not_kept_unless_it_may_be() -> None:
    async with listening() as one:
        (_, *headers), _ = await one.send(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")

    assert "Cache-Control: no-store" in headers


async def test_requests_that_were_answered_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    original = listener._Delegate

    def noted(*given: Any) -> Any:
        made.append(original(*given))
        return made[-1]

    monkeypatch.setattr(listener, "_Delegate", noted)
    async with listening() as one:
        one.interface.go_on.clear()
        sending = [asyncio.create_task(one.send(message("GET /"))) for _ in range(3)]
        await until(lambda: len(made[0].running) == 3)
        one.interface.go_on.set()
        await asyncio.gather(*sending)

        await until(lambda: not made[0].running)


async def test_head_has_no_body() -> None:
    async with listening() as one:
        (_, *headers), body = await one.send(message("HEAD /"))

    assert (body, "Content-Length: 4" in headers) == (b"", True)


async def test_requests_of_one_connection_have_ids_of_their_own() -> None:
    async with listening() as one:
        first = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
        await one.send(first + message("GET /b"))

    assert [asked.path for asked in one.interface.asked] == ["/a", "/b"]
    assert len({asked.request_id for asked in one.interface.asked}) == 2


@pytest.mark.parametrize(("trusted", "address"), [(["127.0.0.1"], "192.0.2.7"), ([], "127.0.0.1")])
async def test_the_address_is_that_before_a_trusted_proxy(
    trusted: list[str], address: str
) -> None:
    async with listening(trusted_proxies=trusted) as one:
        await one.send(message("GET /", "X-Forwarded-For: 192.0.2.7"))

    assert one.interface.asked[0].address == address


@pytest.mark.parametrize(("size", "refused"), [(MIB, 0), (MIB + 1, 1)])
async def test_a_body_may_have_one_mebibyte(size: int, refused: int) -> None:
    async with listening() as one:
        await one.send(message("POST /", body=b" " * size))

    assert len(one.interface.refused) == refused
    if refused:
        assert str(one.interface.refused[0]) == f"the body has more than {MIB} bytes"


async def test_broken_http_is_refused_by_the_interface() -> None:
    async with listening() as one:
        lines, body = await one.send(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")

    assert (lines[0], body) == ("HTTP/1.1 400 Bad Request", b"refused")
    assert len(one.interface.refused) == 1


async def test_a_body_that_does_not_come_is_refused_and_its_connection_ends() -> None:
    async with listening() as one:
        sending = asyncio.create_task(
            one.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc")
        )
        await until(lambda: one.timeout._since)
        one.timeout._look(asyncio.get_running_loop().time() + 11)
        lines, _ = await sending

    (problem,) = one.interface.refused
    assert isinstance(problem, TooSlow)
    seconds = f"{CONFIG.limits.body_seconds:g}"
    assert str(problem) == f"the body was not here after {seconds} seconds"
    assert (lines[0], one.timeout._since) == ("HTTP/1.1 400 Bad Request", {})


@pytest.mark.parametrize("start", ["GET /", "POST /"])
async def test_the_time_of_a_request_ends_with_it(start: str) -> None:
    async with listening() as one:
        await one.send(message(start, body=b"a" if start == "POST /" else b""))

        assert one.timeout._since == {}


async def test_a_client_that_leaves_amid_its_body_is_not_waited_for() -> None:
    async with listening() as one:
        _, writer = await asyncio.open_connection("127.0.0.1", one.port)
        writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc")
        await until(lambda: one.timeout._since)
        writer.close()
        await until(lambda: not one.timeout._since)

    assert one.interface.asked == []


async def test_what_has_begun_is_completed_before_the_end() -> None:
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(listening())
        one.interface.go_on.clear()
        sending = asyncio.create_task(one.send(message("GET /")))
        await until(lambda: one.interface.asked)

        leaving = asyncio.create_task(stack.aclose())
        ended, _ = await asyncio.wait([sending, leaving], timeout=0.05)
        one.interface.go_on.set()
        await leaving
        lines, _ = await sending

    assert (ended, lines[0]) == (set(), "HTTP/1.1 201 Created")


async def test_of_sixty_five_requests_in_progress_one_is_turned_away() -> None:
    assert MAX_CONNECTIONS == 64
    async with listening() as one:
        one.interface.go_on.clear()
        sending = [asyncio.create_task(one.send(message("GET /"))) for _ in range(64)]
        await until(lambda: len(one.interface.asked) == 64)
        last = asyncio.create_task(one.send(message("GET /")))
        await asyncio.wait([last], timeout=30)
        one.interface.go_on.set()
        (line, *_), _ = await last
        answers = await asyncio.gather(*sending)

    assert line == "HTTP/1.1 503 Service Unavailable"
    assert [lines[0] for lines, _ in answers] == ["HTTP/1.1 201 Created"] * 64
