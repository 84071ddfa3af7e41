from __future__ import annotations

import asyncio
import gc
import re
import resource
import socket
import time
import tracemalloc
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest
import structlog
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from tornado.httpserver import HTTPServer
from tornado.httputil import (
    HTTPHeaders,
    HTTPOutputError,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.iostream import IOStream
from tornado.netutil import bind_sockets

from fhirpub.http import server as http1
from fhirpub.http.exchange import Peer
from fhirpub.http.server import Bounds, Connection, Server
from tests.waiting import until, wait_until

GET = b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = b"GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
IN_CHUNKS = b"".join(
    [
        b"POST / HTTP/1.1\r\nHost: x\r\n",
        b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
    ]
)

PATIENCE_SECONDS = 30.0
_TURNS = 100
BODY_BYTES = 200_000

Answering = Callable[["Seen"], Awaitable[None] | None]


@dataclass
class Seen:
    """A request passed to a delegate, and the connection for its response."""

    connection: Any
    line: RequestStartLine | None = None
    headers: list[tuple[str, str]] = field(default_factory=list)
    pieces: list[bytes] = field(default_factory=list)
    end: str = ""

    @property
    def received(self) -> tuple[object, ...]:
        """The received parts of the request, for comparisons."""
        return (self.line, self.headers, b"".join(self.pieces), self.end)

    def answer(self, body: bytes = b"ok", *, status: int = 200, **headers: str) -> None:
        """Send the response immediately."""
        fields = HTTPHeaders({"Content-Length": str(len(body)), **headers})
        self.connection.write_headers(ResponseStartLine("", status, "Said"), fields, body)
        self.connection.finish()


def after(go_on: asyncio.Event) -> Answering:
    """Send the response when the event is set."""

    async def answer(seen: Seen) -> None:
        await go_on.wait()
        seen.answer()

    return answer


class Delegate(http1.Delegate):
    """Records requests and sends responses."""

    def __init__(self, answering: Answering = Seen.answer) -> None:
        self.seen: list[Seen] = []
        self.tasks: list[asyncio.Task[None]] = []
        self._answering = answering

    def start_request(self, server_conn: object, request_conn: Any) -> http1.Message:
        return Message(self, Seen(request_conn))

    def answer(self, seen: Seen) -> None:
        later = self._answering(seen)
        if later is not None:

            async def answer() -> None:
                await later

            self.tasks.append(asyncio.create_task(answer()))


class Message(http1.Message):
    """One incoming request."""

    def __init__(self, delegate: Delegate, seen: Seen) -> None:
        self._delegate = delegate
        self._seen = seen

    def headers_received(self, start_line: Any, headers: HTTPHeaders) -> None:
        self._seen.line, self._seen.headers = start_line, list(headers.get_all())
        self._delegate.seen.append(self._seen)

    def data_received(self, chunk: bytes) -> None:
        self._seen.pieces.append(chunk)

    def finish(self) -> None:
        self._seen.end += "whole"
        self._delegate.answer(self._seen)

    def on_connection_close(self) -> None:
        self._seen.end += "broken off"


@asynccontextmanager
async def serving(
    delegate: Delegate, *, idle_seconds: float = 30.0
) -> AsyncGenerator[tuple[Server, int]]:
    """Serve a delegate; yield the server and its port."""
    bounds = Bounds(head_bytes=16_384, body_bytes=BODY_BYTES, idle_seconds=idle_seconds)
    server = Server(delegate, bounds)
    (listening,) = bind_sockets(0, address="127.0.0.1")
    server.add_sockets([listening])
    try:
        yield server, listening.getsockname()[1]
    finally:
        server.stop()
        await server.close_all_connections()


async def talk(port: int, *pieces: bytes, seconds: float = PATIENCE_SECONDS) -> bytes:
    """Send pieces one by one, and return the output until the connection ends or is silent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    output = b""
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        while chunk := await next_output(reader, seconds):
            output += chunk
    except TimeoutError:
        output += b"(silence)"
    except ConnectionError:
        pass
    finally:
        writer.close()
    return output


async def next_output(reader: asyncio.StreamReader, seconds: float) -> bytes:
    """Return what comes next. Raises TimeoutError if it is not on its way after some seconds."""
    reading = asyncio.create_task(reader.read(65_536))
    await asyncio.wait([reading], timeout=seconds)
    for _ in range(_TURNS):  # this process may have rested all the time, and the server with it
        if reading.done():
            return reading.result()
        await asyncio.sleep(0)
    reading.cancel()
    raise TimeoutError


def make_hasty(server: Server, idle_seconds: float) -> None:
    """Give the one connection of a server less time, once what it is not about has passed."""
    (connection,) = server._connections
    connection._bounds = replace(connection._bounds, idle_seconds=idle_seconds)
    connection._timer.cancel()
    connection._look()


def statuses(output: bytes) -> list[int]:
    return [int(item) for item in re.findall(rb"HTTP/1\.1 ([0-9]{3}) ", output)]


async def answers(*pieces: bytes, answering: Answering = Seen.answer) -> tuple[bytes, list[Seen]]:
    """Return a new server's output for these bytes, and the requests that it received."""
    delegate = Delegate(answering)
    async with serving(delegate) as (_server, port):
        return await talk(port, *pieces), delegate.seen


# Request parsing: accepts nothing that Tornado's own server refuses, and splits requests in the
# same places.

LINES = [
    b"Host: x",
    b"Content-Length: 3",
    b"Content-Length: 0",
    b"Content-Length: 3, 3",
    b"Content-Length: +3",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: Chunked",
    b"Transfer-Encoding: gzip, chunked",
    b"Connection: close",
    b"Connection: keep-alive",
    b"X-Note: a\r\n b",
    b"X-Note : a",
    b"X-Note: a\rb",
    b"Content-Length : 3",
    b"Expect: 100-continue",
]
STARTS = [
    b"GET /a HTTP/1.1\r\nHost: x",
    b"GET /a HTTP/1.1",
    b"POST /a HTTP/1.1\r\nHost: x",
    b"GET /a HTTP/1.0",
    b"POST /a HTTP/1.0\r\nContent-Length: 3",
    b"get /a HTTP/1.1\r\nHost: x",
    b"GET /a",
    b"GET  /a HTTP/1.1",
    b"\r\nGET /a HTTP/1.1\r\nHost: x",
]
BODIES = [
    b"",
    b"abc",
    b"3\r\nabc\r\n0\r\n\r\n",
    b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n",
    b"3\nabc\n0\n\n",
    b"GET /b HTTP/1.1\r\nHost: x\r\n\r\n",
]
NEWLINES = [b"\r\n", b"\r\n", b"\r\n", b"\n"]


@st.composite
def conversations(draw: st.DrawFn) -> bytes:
    """Draw requests that are valid, nearly valid, and broken somewhere."""
    sent = b""
    for _ in range(draw(st.integers(1, 3))):
        newline = draw(st.sampled_from(NEWLINES))
        lines = [
            draw(st.sampled_from(STARTS)),
            *draw(st.lists(st.sampled_from(LINES), max_size=4, unique=True)),
        ]
        sent += newline.join([*lines, b"", b""]) + draw(st.sampled_from(BODIES))
    if draw(st.booleans()):
        at = draw(st.integers(0, len(sent)))
        gone = draw(st.integers(0, 2))
        sent = sent[:at] + draw(st.binary(max_size=2)) + sent[at + gone :]
    return sent


@example(b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + BODIES[2], 7)
@example(b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" + LAST, 7)
@given(conversations(), st.integers(1, 400))
@settings(max_examples=200, deadline=None)
def test_requests_are_cut_where_tornado_cuts_them(sent: bytes, size: int) -> None:
    assume(not re.search(rb"[0-9A-Fa-f][ \t]*;", sent))  # Tornado refuses these
    pieces = [sent[at : at + size] for at in range(0, len(sent), size)]

    ours, theirs = asyncio.run(compared([*pieces, LAST]))

    assert whole(ours) == whole(theirs)[: len(whole(ours))]


async def test_a_client_that_sends_on_can_read_the_refusal() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2, 3\r\n\r\n"

    output, _ = await answers(head, *[bytes(100_000)] * 20)

    assert statuses(output) == [400]


async def test_a_client_that_never_stops_sending_is_not_listened_to_for_ever() -> None:
    async with serving(Delegate()) as (_server, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"this is not HTTP\r\n\r\n")
        output = await asyncio.wait_for(reader.read(), PATIENCE_SECONDS)

        async def send_on() -> None:
            while True:
                writer.write(bytes(10_000))
                await writer.drain()
                await asyncio.sleep(0.01)

        with pytest.raises(ConnectionError):
            await asyncio.wait_for(send_on(), PATIENCE_SECONDS)

    assert statuses(output) == [400]


def whole(seen: list[Seen]) -> list[tuple[object, ...]]:
    return [item.received for item in seen if item.end == "whole"]


async def compared(pieces: list[bytes]) -> tuple[list[Seen], list[Seen]]:
    """Return the requests that our server and Tornado's find in the same bytes."""
    ours, theirs = Delegate(), Delegate()
    other = HTTPServer(theirs, max_header_size=16_384, max_body_size=BODY_BYTES)
    (listening,) = bind_sockets(0, address="127.0.0.1")
    other.add_sockets([listening])
    async with serving(ours) as (_server, port):
        output = await talk(port, *pieces, seconds=0.3)
        their_output = await talk(listening.getsockname()[1], *pieces, seconds=0.3)
    other.stop()
    await other.close_all_connections()
    if len(whole(ours.seen)) < len(whole(theirs.seen)):  # Tornado goes on parsing its buffer
        assert b"Connection: close" in output.rpartition(b"HTTP/1.1 ")[2], (output, their_output)
    return ours.seen, theirs.seen


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=6), st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_a_body_in_chunks_is_put_together(chunks: list[bytes], size: int) -> None:
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    sent = (
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        + body
    )

    _, (seen,) = asyncio.run(answers(*(sent[at : at + size] for at in range(0, len(sent), size))))

    assert (b"".join(seen.pieces), seen.end) == (b"".join(chunks), "whole")


@pytest.mark.parametrize(
    "body",
    [
        b"3;x\r\nabc\r\n0\r\n\r\n",
        b"3;x=y\r\nabc\r\n0;x\r\n\r\n",
        b'3; x="y z"; a=b\r\nabc\r\n0\r\n\r\n',
        b"3;chunk-signature=" + b"0" * 64 + b"\r\nabc\r\n0\r\n\r\n",
        b"3\r\nabc\r\n0\r\nX-Sum: y\r\n\r\n",
        b"3\r\nabc\r\n0\r\nX: y\r\nContent-Length: 9\r\nZ:\r\n\r\n",
    ],
)
async def test_chunk_extensions_and_trailers_are_ignored(body: bytes) -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

    output, (seen, _last) = await answers(head + body + LAST)

    assert (b"".join(seen.pieces), seen.end) == (b"abc", "whole")
    assert statuses(output) == [200, 200]


@pytest.mark.parametrize(
    "body",
    [
        b"3;\r\nabc\r\n0\r\n\r\n",
        b"3 ;x\r\nabc\r\n0\r\n\r\n",
        b"3;=y\r\nabc\r\n0\r\n\r\n",
        b"3 x\r\nabc\r\n0\r\n\r\n",
        b"3;x\nabc\r\n0\r\n\r\n",
        b"3;x\ry\r\nabc\r\n0\r\n\r\n",
        b"3\r\nabc\r\n0\r\nX\r\n\r\n",
        b"3\r\nabc\r\n0\r\n: y\r\n\r\n",
        b"3\r\nabc\r\n0\r\nX : y\r\n\r\n",
        b"3\r\nabc\r\n0\r\nX: y\r\n z\r\n\r\n",
        b"3\r\nabc\r\n0\r\nX: y\n\nGET / HTTP/1.1\r\n\r\n",
        b"3\r\nabc\r\n0\r\nX: y\rZ: y\r\n\r\n",
        b"3\r\nabc\r\n0\r\n" + b"X: y\r\n" * 3_000 + b"\r\n",
    ],
)
async def test_chunk_extensions_and_trailers_must_be_well_formed(body: bytes) -> None:
    output, (seen,) = await answers(IN_CHUNKS + body + LAST)

    assert (statuses(output), seen.end) == ([400], "broken off")


@pytest.mark.parametrize("lines", [b"", b"Connection: keep-alive\r\n"])
async def test_chunks_before_http_1_1_are_refused(lines: bytes) -> None:
    head = b"POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n" + lines

    output, seen = await answers(head + b"\r\n3\r\nabc\r\n0\r\n\r\n" + LAST)

    assert (statuses(output), seen) == ([400], [])


async def test_many_small_chunks_are_handed_on_together() -> None:
    _, (seen,) = await answers(IN_CHUNKS + b"1\r\nx\r\n" * 100_000 + b"0\r\n\r\n")

    assert [len(piece) for piece in seen.pieces] == [65_536, 34_464]


@pytest.mark.parametrize(("size", "expected"), [(BODY_BYTES, [200]), (BODY_BYTES + 1, [400])])
@pytest.mark.parametrize("in_chunks", [True, False])
async def test_the_size_of_a_body_is_limited(
    size: int, expected: list[int], *, in_chunks: bool
) -> None:
    framing = b"Transfer-Encoding: chunked" if in_chunks else b"Content-Length: %d" % size
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (size, bytes(size)) if in_chunks else bytes(size)

    output, _ = await answers(
        b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + framing + b"\r\n\r\n", body
    )

    assert statuses(output) == expected


# Connections.


@pytest.mark.parametrize(
    ("version", "lines", "goes_on"),
    [
        (b"1.1", b"", True),
        (b"1.1", b"Connection: close\r\n", False),
        (b"1.1", b"Connection: TE, Close\r\n", False),
        (b"1.1", b"Connection: TE\r\nConnection: close\r\n", False),
        (b"1.0", b"", False),
        (b"1.0", b"Connection: close\r\n", False),
        (b"1.0", b"Connection: Keep-Alive\r\n", True),
        (b"1.0", b"Connection: keep-alive, close\r\n", False),
    ],
)
async def test_a_connection_goes_on_if_the_client_says_so(
    version: bytes, lines: bytes, *, goes_on: bool
) -> None:
    output, _ = await answers(
        b"GET /a HTTP/" + version + b"\r\nHost: x\r\n" + lines + b"\r\n" + LAST
    )

    assert statuses(output) == ([200, 200] if goes_on else [200])
    first = output.partition(b"\r\n\r\n")[0]
    assert (b"Connection: close" in first) == (not goes_on)
    assert (b"Connection: keep-alive" in first) == (goes_on and version == b"1.0")


@pytest.mark.parametrize(
    ("line", "count", "most"), [(b"", 2_000, 16), (b"X%%d: %b\r\n" % (b"a" * 150), 40, 3)]
)
async def test_a_client_that_pipelines_many_requests_does_not_delay_the_others(
    line: bytes, count: int, most: int
) -> None:
    lines = b"".join(line % number if line else b"" for number in range(90))
    turns: list[int] = []
    delegate = Delegate()

    async def note_turns() -> None:
        while True:
            turns.append(len(delegate.seen))
            await asyncio.sleep(0)

    async with serving(delegate) as (_server, port):
        noting = asyncio.create_task(note_turns())
        requests = [(GET % number)[:-2] + lines + b"\r\n" for number in range(count)]
        output = await talk(port, b"".join(requests) + LAST)
        noting.cancel()

    assert len(statuses(output)) == count + 1
    assert max(later - before for before, later in pairwise(turns)) <= most


async def test_heads_of_many_fields_are_not_held_in_memory() -> None:
    heads = [
        b"GET / HTTP/1.1\r\nHost: x\r\n%b\r\n"
        % b"".join(b"%x-%x: %b\r\n" % (number, field, b"a" * 100) for field in range(98))
        for number in range(20)
    ]
    delegate = Delegate()
    async with serving(delegate) as (_server, port):
        await talk(port, heads[0] + LAST)
        tracemalloc.start()
        output = await talk(port, b"".join(heads[1:]) + LAST)
        delegate.seen.clear()
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert len(statuses(output)) == 20
    assert held < 1_000_000


@pytest.mark.parametrize(
    ("framing", "body", "least", "most"),
    [
        (b"Transfer-Encoding: chunked", b"1\r\nx\r\n" * 20_000 + b"0\r\n\r\n", 70, 1_000),
        (b"Content-Length: 600000", bytes(600_000), 4, 6),
        (b"Transfer-Encoding: chunked", b"249f0\r\n%b\r\n0\r\n\r\n" % bytes(150_000), 2, 8),
    ],
)
async def test_a_body_that_is_all_here_is_read_in_turn_with_the_others_and_in_few_turns(
    framing: bytes, body: bytes, least: int, most: int
) -> None:
    delegate, (ours, theirs) = Delegate(), socket.socketpair()
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1_000_000)
    theirs.setblocking(False)  # noqa: FBT003
    data = b"POST / HTTP/1.1\r\nHost: x\r\n" + framing + b"\r\n\r\n" + body
    assert theirs.send(data) == len(data)
    bounds = Bounds(head_bytes=16_384, body_bytes=1_000_000, idle_seconds=30)
    connection = Connection(IOStream(ours), Peer(""), bounds)

    serving = asyncio.create_task(connection.serve(delegate))
    turns = 0
    while not (delegate.seen and delegate.seen[0].end):
        turns += 1
        await asyncio.sleep(0)
    theirs.close()
    await serving

    assert least <= turns <= most


async def test_a_connection_without_a_free_file_descriptor_is_accepted_later_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop, (soft, hard) = asyncio.get_running_loop(), resource.getrlimit(resource.RLIMIT_NOFILE)
    clients = [socket.socket() for _ in range(6)]
    async with serving(Delegate()) as (_server, port):
        resource.setrlimit(resource.RLIMIT_NOFILE, (clients[-1].fileno() + 4, hard))
        with structlog.testing.capture_logs() as logged:
            try:
                for client in clients:
                    client.setblocking(False)  # noqa: FBT003
                    await loop.sock_connect(client, ("127.0.0.1", port))
                await until(lambda: any("connection" in one["event"] for one in logged))
                for _ in range(_TURNS):
                    await asyncio.sleep(0)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            output = await asyncio.gather(*(one_answer(client) for client in clients))

    # A service that other tests share in this process may miss descriptors, too.
    events = [record["event"] for record in logged if "connection" in record["event"]]
    assert events == ["no connection taken"]
    assert not caplog.records
    assert [statuses(chunk) for chunk in output] == [[200]] * len(clients)


async def one_answer(client: socket.socket) -> bytes:
    loop = asyncio.get_running_loop()
    with client:
        await loop.sock_sendall(client, GET % 1)
        return await asyncio.wait_for(loop.sock_recv(client, 65_536), PATIENCE_SECONDS)


@pytest.mark.parametrize("sent", [b"", b"GET / HTT", GET % 1, (GET % 1) + b"GET / HT"])
async def test_a_connection_that_waits_for_too_long_ends(sent: bytes) -> None:
    async with serving(Delegate(), idle_seconds=1) as (_server, port):
        output = await talk(port, sent)

    assert b"(silence)" not in output
    assert len(statuses(output)) == sent.count(b"\r\n\r\n")


async def test_a_request_that_comes_in_time_to_a_busy_process_is_answered() -> None:
    async with serving(Delegate()) as (server, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET % 1)
        await reader.readuntil(b"ok")
        make_hasty(server, 0.4)
        writer.write(GET % 2)
        time.sleep(0.5)  # noqa: ASYNC251 - the loop has other things to do, until it is too late
        output = await asyncio.wait_for(reader.read(), PATIENCE_SECONDS)
        writer.close()

    assert statuses(output) == [200]


async def test_an_answer_that_is_never_read_ends_the_connection() -> None:
    delegate = Delegate(lambda seen: seen.answer(bytes(20_000_000)))
    async with serving(delegate) as (server, port):
        _reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        writer.write(GET % 1)
        await until(lambda: bool(delegate.seen))
        make_hasty(server, 0.3)

        await until(delegate.seen[0].connection.stream.closed)
        writer.close()


async def test_the_time_that_an_answer_takes_does_not_count_as_waiting() -> None:
    async def slowly(seen: Seen) -> None:
        make_hasty(server, 0.1)
        await asyncio.sleep(0.5)
        seen.answer()

    async with serving(Delegate(slowly)) as (server, port):
        output = await talk(port, GET % 1)

    assert statuses(output) == [200]


async def test_a_server_that_stops_answers_what_is_in_flight_and_no_more() -> None:
    go_on = asyncio.Event()
    delegate = Delegate(after(go_on))
    async with serving(delegate) as (server, port):
        talking = asyncio.create_task(talk(port, (GET % 1) + (GET % 2)))
        await until(lambda: bool(delegate.seen))
        server.stop()
        go_on.set()
        output = await talking

    assert statuses(output) == [200]
    assert b"Connection: close" in output


async def test_an_idle_connection_has_one_more_request_after_the_stop() -> None:
    delegate = Delegate()
    async with serving(delegate) as (server, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET % 1)
        await reader.readuntil(b"ok")
        server.stop()
        writer.write((GET % 2) + (GET % 3))
        output = await asyncio.wait_for(reader.read(), PATIENCE_SECONDS)
        writer.close()

    assert statuses(output) == [200]


async def test_a_request_that_has_come_to_a_stopping_server_is_answered() -> None:
    async with serving(Delegate()) as (server, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET % 1)
        await reader.readuntil(b"ok")
        await asyncio.sleep(0.2)
        server.stop()
        writer.write(GET % 2)
        (connection,) = server._connections
        assert wait_until(connection.has_unread)  # while the loop reads nothing

        assert server.close_idle()
        assert statuses(await asyncio.wait_for(reader.read(), PATIENCE_SECONDS)) == [200]
        writer.close()


async def test_a_stopping_server_closes_idle_connections_but_not_one_just_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http1, "_QUIET_SECONDS", PATIENCE_SECONDS)
    async with serving(Delegate()) as (server, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET % 1)
        await reader.readuntil(b"ok")
        server.stop()

        assert server.close_idle()
        assert not reader.at_eof()
        monkeypatch.undo()
        await asyncio.sleep(0.2)
        assert not server.close_idle()
        assert await asyncio.wait_for(reader.read(), PATIENCE_SECONDS) == b""
        writer.close()


async def test_a_stopping_server_closes_idle_connections_and_waits_for_the_others() -> None:
    go_on = asyncio.Event()
    delegate = Delegate(after(go_on))
    async with serving(delegate) as (server, port):
        idle, idle_writer = await asyncio.open_connection("127.0.0.1", port)
        talking = asyncio.create_task(talk(port, GET % 1))
        await until(lambda: bool(delegate.seen))
        server.stop()
        closing = asyncio.create_task(until(lambda: not server.close_idle()))
        nothing = await asyncio.wait_for(idle.read(), PATIENCE_SECONDS)
        has_waited = not closing.done()
        go_on.set()
        output = await talking
        await closing
        idle_writer.close()

    assert (nothing, has_waited, statuses(output)) == (b"", True, [200])


async def test_a_client_just_answered_may_ask_once_more_of_a_stopping_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http1, "_QUIET_SECONDS", PATIENCE_SECONDS)
    async with serving(Delegate()) as (server, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET % 1)
        await reader.readuntil(b"ok")
        server.stop()
        is_left = server.close_idle()
        writer.write(GET % 2)
        output = await asyncio.wait_for(reader.read(), PATIENCE_SECONDS)
        writer.close()

    assert (is_left, statuses(output)) == (True, [200])


async def test_bare_line_feeds_are_no_ends_of_lines() -> None:
    output, seen = await answers(b"GET / HTTP/1.1\r\nHost: x\nX-Note: a\r\n\r\n" + LAST)

    assert (statuses(output), seen) == ([400], [])


async def test_a_fault_of_the_delegate_ends_its_own_connection_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def answer(seen: Seen) -> None:
        assert seen.line is not None
        if seen.line.path == "/1":
            raise RuntimeError("on purpose")
        seen.answer()

    async with serving(Delegate(answer)) as (_server, port):
        broken = await talk(port, (GET % 1) + (GET % 2))
        other = await talk(port, (GET % 2) + LAST)

    assert (statuses(broken), statuses(other)) == ([], [200, 200])
    assert not caplog.records  # other servers would log a stack trace


@pytest.mark.parametrize("framing", [b"Content-Length: 9", b"Transfer-Encoding: chunked"])
async def test_a_request_that_is_broken_off_is_reported_once(framing: bytes) -> None:
    delegate = Delegate()
    async with serving(delegate) as (_server, port):
        _reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\n" + framing + b"\r\n\r\n1\r\n")
        await until(lambda: bool(delegate.seen))
        writer.close()
        await until(lambda: bool(delegate.seen[0].end))

    assert delegate.seen[0].end == "broken off"


async def test_a_request_that_is_being_answered_is_read_no_further() -> None:
    class Early(Message):
        """Starts the response before the body has arrived, and ends it later."""

        def headers_received(self, start_line: Any, headers: HTTPHeaders) -> None:
            super().headers_received(start_line, headers)
            line, fields = ResponseStartLine("", 200, "OK"), HTTPHeaders({"Content-Length": "2"})
            seen.append(self._seen)
            self._seen.connection.write_headers(line, fields)

    class Eager(Delegate):
        def start_request(self, server_conn: object, request_conn: Any) -> http1.Message:
            return Early(self, Seen(request_conn))

    seen: list[Seen] = []
    async with serving(Eager()) as (_server, port):
        talking = asyncio.create_task(talk(port, IN_CHUNKS + b"zz\r\n"))
        await until(lambda: bool(seen))
        await asyncio.sleep(0.05)
        seen[0].connection.write(b"ok")
        seen[0].connection.finish()
        output = await talking

    assert statuses(output) == [200]
    assert output.endswith(b"ok")


async def test_a_request_whose_framing_breaks_is_reported_as_broken_off() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

    output, (seen,) = await answers(head + b"3\r\nabcd\r\n0\r\n\r\n")

    assert (statuses(output), seen.end) == ([400], "broken off")


@pytest.mark.parametrize(("version", "expected"), [(b"1.1", [100, 200]), (b"1.0", [200])])
async def test_only_http_1_1_clients_get_a_100(version: bytes, expected: list[int]) -> None:
    head = b"POST / HTTP/%b\r\nHost: x\r\nExpect: 100-Continue\r\nConnection: close\r\n" % version

    output, _ = await answers(head + b"Content-Length: 1\r\n\r\n", b"x")

    assert statuses(output) == expected


# Responses.


@pytest.mark.parametrize(
    ("method", "status", "body"), [(b"HEAD", 200, b""), (b"GET", 304, b""), (b"GET", 204, b"")]
)
async def test_an_answer_that_can_have_no_body_may_say_how_long_it_would_be(
    method: bytes, status: int, body: bytes
) -> None:
    def answer(seen: Seen) -> None:
        headers = HTTPHeaders({"Content-Length": "1000"})
        seen.connection.write_headers(ResponseStartLine("", status, "Said"), headers)
        seen.connection.finish()

    output, _ = await answers(
        method + b" / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", answering=answer
    )

    assert statuses(output) == [status]
    assert output.partition(b"\r\n\r\n")[2] == body


def shorter(seen: Seen) -> None:
    line, headers = ResponseStartLine("", 200, "OK"), HTTPHeaders({"Content-Length": "3"})
    seen.connection.write_headers(line, headers, b"ab")
    seen.connection.finish()


def longer(seen: Seen) -> None:
    line, headers = ResponseStartLine("", 200, "OK"), HTTPHeaders({"Content-Length": "3"})
    seen.connection.write_headers(line, headers, b"ab")
    seen.connection.write(b"cd")


def empty(seen: Seen) -> None:
    seen.connection.finish()


class TwoLines:
    """Headers that must never be sent."""

    def get_all(self) -> list[tuple[str, str]]:
        return [("Content-Length", "0"), ("Location", "/\nSet-Cookie: x")]

    def __getitem__(self, name: str) -> str:
        return "0"


def split(seen: Seen) -> None:
    seen.connection.write_headers(ResponseStartLine("", 200, "OK"), TwoLines())


@pytest.mark.parametrize("answer", [shorter, longer, empty, split])
async def test_an_answer_that_would_mislead_ends_the_connection(answer: Answering) -> None:
    raised: list[BaseException] = []

    def answering(seen: Seen) -> None:
        try:
            answer(seen)
        except HTTPOutputError as problem:
            raised.append(problem)
            raise

    output, seen = await answers((GET % 1) + LAST, answering=answering)

    assert len(raised) == 1
    assert len(seen) == 1
    assert b"Set-Cookie" not in output


async def test_an_answer_to_a_client_that_has_gone_is_no_fault() -> None:
    go_on = asyncio.Event()
    delegate = Delegate(after(go_on))
    async with serving(delegate) as (_server, port):
        _reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET % 1)
        await until(lambda: bool(delegate.tasks))
        writer.transport.abort()
        await until(delegate.seen[0].connection.stream.closed)
        go_on.set()
        await asyncio.wait_for(delegate.tasks[0], PATIENCE_SECONDS)


async def test_a_client_that_is_always_ahead_has_one_request_in_each_turn_of_the_loop() -> None:
    turn, turns = 0, []
    client = socket.socket()

    def answer(seen: Seen) -> None:
        turns.append(turn)
        client.sendall(GET % len(turns))  # is there before the next request is read
        seen.answer()

    async with serving(Delegate(answer)) as (_server, port):
        client.connect(("127.0.0.1", port))
        with client:
            client.sendall(GET % 0)
            async with asyncio.timeout(PATIENCE_SECONDS):
                while len(turns) < 50:
                    turn += 1
                    await asyncio.sleep(0)

    assert len(set(turns)) >= 49
