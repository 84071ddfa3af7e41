"""What a server releases: sockets, timers, and the count of its connections."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from tornado.httputil import HTTPHeaders, HTTPInputError, ResponseStartLine
from tornado.iostream import IOStream
from tornado.netutil import bind_sockets

from fhirpub.http.connections import ConnectionLimits
from fhirpub.http.exchange import Peer
from fhirpub.http.reader import TooLong
from fhirpub.http.server import Bounds, Connection, Server
from tests.unit.http.test_server import (
    GET,
    LAST,
    Delegate,
    Message,
    Seen,
    answers,
    serving,
    statuses,
    talk,
)
from tests.waiting import until


async def test_a_connection_that_has_ended_leaves_room_for_another() -> None:
    limits = ConnectionLimits(total=1)
    server = Server(
        Delegate(),
        Bounds(head_bytes=16_384, body_bytes=1_000, idle_seconds=30, connections=limits),
    )
    (listening,) = bind_sockets(0, address="127.0.0.1")
    server.add_sockets([listening])
    port = listening.getsockname()[1]
    found = []
    for _ in range(3):
        found += statuses(await talk(port, LAST))
        await until(lambda: not server._connections)
    server.stop()

    assert found == [200, 200, 200]


async def test_a_stopped_server_takes_no_connection() -> None:
    async with serving(Delegate()) as (server, port):
        server.stop()

        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=30)


async def test_a_server_that_stops_while_it_rests_does_not_listen_again() -> None:
    server = Server(Delegate(), Bounds(head_bytes=16_384, body_bytes=1_000, idle_seconds=30))
    (listening,) = bind_sockets(0, address="127.0.0.1")
    server.add_sockets([listening])

    server.stop()
    server._listen(listening)  # the rest is over

    assert listening.fileno() == -1


async def test_a_connection_that_has_ended_has_no_timer_any_more() -> None:
    ours, theirs = socket.socketpair()
    connection = Connection(
        IOStream(ours), Peer(""), Bounds(head_bytes=16_384, body_bytes=1_000, idle_seconds=30)
    )
    theirs.sendall(GET % 1)
    theirs.shutdown(socket.SHUT_WR)

    await connection.serve(Delegate())

    theirs.close()
    assert connection._timer.cancelled()


async def test_a_connection_with_an_answer_that_is_not_its_last_is_not_idle_while_it_reads() -> (
    None
):
    ours, theirs = socket.socketpair()
    connection = Connection(
        IOStream(ours), Peer(""), Bounds(head_bytes=16_384, body_bytes=1_000, idle_seconds=30)
    )
    idle: list[bool] = []

    def answer(seen: Seen) -> None:
        seen.answer()
        idle.append(connection.is_idle())

    delegate = Delegate(answer)
    theirs.sendall((GET % 1) + LAST)
    theirs.shutdown(socket.SHUT_WR)

    await asyncio.wait_for(connection.serve(delegate), 60)

    theirs.close()
    assert idle == [False, True]


async def test_a_connection_ends_with_the_answer_in_which_the_server_stops() -> None:
    begun: list[Seen] = []

    def begin(seen: Seen) -> None:
        line, headers = ResponseStartLine("", 200, "OK"), HTTPHeaders({"Content-Length": "2"})
        seen.connection.write_headers(line, headers)
        begun.append(seen)

    async with serving(Delegate(begin)) as (server, port):
        talking = asyncio.create_task(talk(port, GET % 1))
        await until(lambda: bool(begun))

        server.stop()
        begun[0].connection.write(b"ok")
        begun[0].connection.finish()
        output = await talking

    assert output.endswith(b"\r\n\r\nok")  # and no silence


async def test_a_body_in_chunks_is_asked_for_if_the_client_waits_for_that() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"

    output, (seen,) = await answers(
        head + b"Expect: 100-continue\r\nConnection: close\r\n\r\n", b"1\r\nx\r\n0\r\n\r\n"
    )

    assert (statuses(output), b"".join(seen.pieces)) == ([100, 200], b"x")


async def test_what_is_refused_amid_a_body_is_answered_by_its_message() -> None:
    refused: list[HTTPInputError] = []

    class Refusing(Message):
        def refuse_body(self, problem: HTTPInputError) -> None:
            refused.append(problem)
            self._seen.answer(status=400)

    class Delegating(Delegate):
        def start_request(self, server_conn: object, request_conn: Any) -> Message:
            return Refusing(self, Seen(request_conn))

    delegate = Delegating()
    async with serving(delegate) as (_server, port):
        head = b"POST / HTTP/1.1\r\nHost: x\r\n"
        wrong = await talk(port, head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")
        long = await talk(port, head + b"Content-Length: 999999\r\n\r\n")

    assert (statuses(wrong), statuses(long)) == ([400], [400])
    assert [isinstance(problem, TooLong) for problem in refused] == [False, True]
    assert [seen.end for seen in delegate.seen] == ["", ""]


async def test_nothing_more_of_a_request_counts_once_its_answer_is_certain() -> None:
    decided: list[Seen] = []

    class Deciding(Message):
        def headers_received(self, start_line: Any, headers: HTTPHeaders) -> None:
            super().headers_received(start_line, headers)
            self._seen.connection.decide()
            decided.append(self._seen)

    class Delegating(Delegate):
        def start_request(self, server_conn: object, request_conn: Any) -> Message:
            return Deciding(self, Seen(request_conn))

    async with serving(Delegating()) as (_server, port):
        head = b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
        talking = asyncio.create_task(talk(port, head + b"Content-Length: 2\r\n\r\nab" + LAST))
        await until(lambda: bool(decided))
        await asyncio.sleep(0)
        decided[0].answer(status=403)
        output = await talking

    assert statuses(output) == [403]
    assert b"\r\nConnection: close\r\n" in output
    assert [(seen.end, seen.pieces) for seen in decided] == [("", [])]


async def test_a_head_has_a_time_of_its_own_which_is_shorter_than_that_of_an_idle_client() -> None:
    bounds = Bounds(head_bytes=16_384, body_bytes=1_000, idle_seconds=60, head_seconds=0.05)
    server = Server(Delegate(), bounds)
    (listening,) = bind_sockets(0, address="127.0.0.1")
    server.add_sockets([listening])
    try:
        output = await talk(listening.getsockname()[1], b"GET / HTTP/1.1\r\nHost:")
    finally:
        server.stop()
        await server.close_all_connections()

    assert statuses(output) == [400]  # and no silence


async def test_all_connections_have_ended_once_they_are_closed() -> None:
    delegate = Delegate(lambda _seen: None)  # it never answers
    async with serving(delegate) as (server, port):
        _reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET % 1)
        await until(lambda: bool(delegate.seen))
        tasks = [*server._connections.values()]

        await server.close_all_connections()

        assert [task.done() for task in tasks] == [True]
        writer.close()
