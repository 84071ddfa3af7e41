"""The bytes of an answer, and what happens to one that does not keep to its length."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest
from tornado.httputil import HTTPOutputError, RequestStartLine, ResponseStartLine
from tornado.iostream import IOStream, StreamClosedError

from fhirpub.http.exchange import Exchange, Headers, Peer

OK = ResponseStartLine("HTTP/1.1", 200, "OK")


class Line:
    """An exchange, and the other end of its connection."""

    def __init__(self) -> None:
        self._ours, self.client = socket.socketpair()
        self.stream = IOStream(self._ours)

    def exchange(
        self, method: str = "GET", version: str = "HTTP/1.1", *, is_last: bool = False
    ) -> Exchange:
        line = RequestStartLine(method, "/", version)
        made = Exchange(self.stream, Peer("192.0.2.1"), line, is_last=is_last)
        made.is_read = True
        return made

    def received(self) -> bytes:
        self.client.settimeout(0)
        try:
            return self.client.recv(10_000)
        except BlockingIOError:
            return b"nothing"


@pytest.fixture
async def line() -> Line:
    return Line()


@pytest.fixture(autouse=True)
def closing(line: Line) -> Iterator[None]:
    yield
    line.stream.close()
    line.client.close()


def length(size: int, **others: str) -> Headers:
    return Headers({"Content-Length": str(size), **others})


async def test_an_answer_has_its_line_its_headers_and_its_body(line: Line) -> None:
    exchange = line.exchange()

    exchange.write_headers(OK, length(4, ETag='"1"'), b"ab")
    exchange.write(memoryview(b"cd"))
    exchange.finish()

    assert line.received() == (b'HTTP/1.1 200 OK\r\nContent-Length: 4\r\nETag: "1"\r\n\r\nabcd')


@pytest.mark.parametrize(
    ("version", "is_last", "is_read", "said"),
    [
        ("HTTP/1.1", False, True, None),
        ("HTTP/1.1", True, True, b"close"),
        ("HTTP/1.1", False, False, b"close"),
        ("HTTP/1.0", False, True, b"keep-alive"),
        ("HTTP/1.0", True, True, b"close"),
    ],
)
async def test_an_answer_says_whether_the_connection_goes_on(
    line: Line, version: str, *, is_last: bool, is_read: bool, said: bytes | None
) -> None:
    exchange = line.exchange(version=version, is_last=is_last)
    exchange.is_read = is_read

    exchange.write_headers(OK, length(0))

    _rest, found, value = line.received().partition(b"Connection: ")
    assert (value.partition(b"\r\n")[0] if found else None) == said


@pytest.mark.parametrize("method", ["POST", "HEAD", "PATCH"])
async def test_a_client_of_http_1_0_is_told_that_the_connection_stays(
    line: Line, method: str
) -> None:
    exchange = line.exchange(method, version="HTTP/1.0")
    exchange.is_read = True

    exchange.write_headers(OK, length(0))

    assert b"\r\nConnection: keep-alive\r\n" in line.received()


@pytest.mark.parametrize("value", ["a\r\nSet-Cookie: b", "a\nb", "a\rb"])
async def test_a_header_of_several_lines_is_not_sent(line: Line, value: str) -> None:
    with pytest.raises(HTTPOutputError):
        line.exchange().write_headers(OK, length(0, ETag=value))

    assert line.received() == b"nothing"


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
async def test_an_answer_without_a_body_is_complete_with_its_headers(
    line: Line, method: str, status: int
) -> None:
    exchange = line.exchange(method)

    exchange.write_headers(ResponseStartLine("HTTP/1.1", status, "-"), length(9))
    exchange.finish()

    assert exchange.is_finished
    assert line.received().endswith(b"\r\n\r\n")


async def test_more_than_the_length_closes_the_connection(line: Line) -> None:
    exchange = line.exchange()
    exchange.write_headers(OK, length(3), b"ab")

    with pytest.raises(HTTPOutputError):
        exchange.write(b"cd")

    assert (line.stream.closed(), exchange.is_finished) == (True, True)


async def test_a_body_before_its_headers_closes_the_connection(line: Line) -> None:
    with pytest.raises(HTTPOutputError):
        line.exchange().write(b"")

    assert line.stream.closed()


@pytest.mark.parametrize("sent", [b"", b"a"])
async def test_less_than_the_length_closes_the_connection(line: Line, sent: bytes) -> None:
    exchange = line.exchange()
    exchange.write_headers(OK, length(2), sent)

    with pytest.raises(HTTPOutputError):
        exchange.finish()

    assert line.stream.closed()


async def test_an_answer_without_a_reader_does_not_leave(line: Line) -> None:
    line.stream.close()

    leaving = line.exchange().write_headers(OK, length(0))

    assert isinstance(leaving.exception(), StreamClosedError)


async def test_an_answer_without_a_reader_ends_all_the_same(line: Line) -> None:
    line.stream.close()
    exchange = line.exchange()
    exchange.write_headers(OK, length(0))
    exchange.finish()

    await exchange.wait_ended()

    assert exchange.is_finished


async def test_a_malformed_request_is_refused_once(line: Line) -> None:
    exchange = line.exchange()

    exchange.refuse()

    assert line.received().startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert exchange.is_finished


async def test_a_refusal_is_not_written_into_an_answer(line: Line) -> None:
    exchange = line.exchange()
    exchange.write_headers(OK, length(9), b"abc")
    line.received()

    exchange.refuse()

    assert (line.received(), exchange.is_finished) == (b"nothing", True)


async def test_an_answer_ends_at_its_first_end(line: Line) -> None:
    exchange = line.exchange()
    exchange.write_headers(OK, length(0))
    states = [(exchange.is_begun, exchange.is_finished)]
    exchange.finish()
    first = exchange.finished_at

    exchange.close()

    assert (states, exchange.finished_at) == ([(True, False)], first)


async def is_over(waiting: asyncio.Task[None]) -> bool:
    for _ in range(3):
        await asyncio.sleep(0)
    return waiting.done()


async def test_an_answer_has_not_ended_before_it_is_finished(line: Line) -> None:
    exchange = line.exchange()
    exchange.write_headers(OK, length(2), b"a")
    await asyncio.sleep(0)
    waiting = asyncio.create_task(exchange.wait_ended())
    before = await is_over(waiting)

    exchange.write(b"b")
    exchange.finish()
    await waiting

    assert not before


async def test_an_answer_has_not_ended_before_its_last_byte_has_left(line: Line) -> None:
    exchange = line.exchange()
    size = 4_000_000
    exchange.write_headers(OK, length(size), bytes(size))
    exchange.finish()
    waiting = asyncio.create_task(exchange.wait_ended())
    before = await is_over(waiting)

    line.client.settimeout(0)
    left = size
    while not waiting.done():
        with suppress(BlockingIOError):
            left -= len(line.client.recv(1_000_000))
        await asyncio.sleep(0)

    assert not before
    assert left < size


async def test_a_request_that_was_dropped_before_an_answer_has_ended(line: Line) -> None:
    exchange = line.exchange()
    exchange.close()

    await exchange.wait_ended()

    assert exchange.is_finished


async def test_an_exchange_names_the_peer(line: Line) -> None:
    assert line.exchange().context.remote_ip == "192.0.2.1"


async def test_an_answer_is_certain_once_that_was_said_or_it_has_begun(line: Line) -> None:
    said, begun = line.exchange(), line.exchange()
    before = (said.is_decided, begun.is_decided)

    said.decide()
    begun.write_headers(OK, length(1))

    assert before == (False, False)
    assert (said.is_decided, said.is_begun, said.is_finished) == (True, False, False)
    assert begun.is_decided
