"""What a server releases: sockets, timers, and the count of its connections."""

from __future__ import annotations

import asyncio
import socket

import pytest
from tornado.iostream import IOStream
from tornado.netutil import bind_sockets

from fhirpub.http.connections import ConnectionLimits
from fhirpub.http.exchange import Peer
from fhirpub.http.server import Bounds, Connection, Server
from tests.unit.http.test_server import GET, LAST, Delegate, Seen, serving, statuses, talk
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
