"""A server holds a limited number of connections and closes waiting ones for new ones."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
from tornado.netutil import bind_sockets

from fhirpub.http.connections import (
    ConnectionLimits,
    ConnectionTable,
    accept_some,
    turn_away,
)
from fhirpub.http.server import Bounds, Server
from tests.unit.http.test_server import Delegate
from tests.waiting import until

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LOCAL = "127.0.0.1"


class FakeConnection:
    """A connection that has waited for a request since a moment, or does not wait."""

    def __init__(self, since: float | None, *, served: bool = True, unread: bool = False) -> None:
        self.since = since
        self.served = served
        self.unread = unread
        self.looks = 0
        self.is_closed = False

    def waiting_since(self) -> float | None:
        self.looks += 1
        return self.since

    def has_served(self) -> bool:
        return self.served

    def has_unread(self) -> bool:
        return self.unread

    def close(self) -> None:
        self.is_closed = True


def table(
    *,
    total: int = 0,
    per_address: int = 0,
    proxies: tuple[str, ...] = (),
    clock: Callable[[], float] | None = None,
) -> ConnectionTable:
    limits = ConnectionLimits(total=total, per_address=per_address, proxies=proxies)
    return ConnectionTable(limits, clock or (lambda: 100.0))


def fill(full: ConnectionTable, address: str, *since: float | None) -> list[FakeConnection]:
    connections = [FakeConnection(moment) for moment in since]
    for connection in connections:
        full.add(address, connection)
    return connections


def test_an_address_below_its_limit_is_admitted_and_nothing_is_closed() -> None:
    full = table(per_address=3)
    waiting = fill(full, LOCAL, 1.0, 2.0)

    assert full.admits(LOCAL)
    assert not any(connection.is_closed for connection in waiting)


def test_the_connection_that_has_waited_longest_makes_room_for_the_next_of_its_address() -> None:
    full = table(per_address=3)
    busy, newer, oldest = fill(full, LOCAL, None, 50.0, 10.0)
    (other,) = fill(full, "10.0.0.1", 1.0)

    assert full.admits(LOCAL)
    assert [oldest.is_closed, newer.is_closed, busy.is_closed] == [True, False, False]
    assert not other.is_closed


def test_a_connection_that_has_waited_less_than_a_second_is_not_closed() -> None:
    full = table(per_address=1)
    fill(full, LOCAL, 99.5)

    assert not full.admits(LOCAL)


def test_a_connection_without_any_request_makes_room_before_one_that_has_had_some() -> None:
    full = table(per_address=2)
    (used,) = fill(full, LOCAL, 10.0)
    unused = FakeConnection(99.8, served=False)
    full.add(LOCAL, unused)

    assert full.admits(LOCAL)
    assert [used.is_closed, unused.is_closed] == [False, True]


def test_a_connection_may_take_a_tenth_of_a_second_to_send_its_first_request() -> None:
    full = table(per_address=1)
    full.add(LOCAL, FakeConnection(99.95, served=False))

    assert not full.admits(LOCAL)


def test_a_connection_whose_request_has_arrived_is_not_closed_before_it_is_read() -> None:
    full = table(per_address=2)
    arrived = FakeConnection(99.0, served=False, unread=True)
    (waiting,) = fill(full, LOCAL, 99.5)
    full.add(LOCAL, arrived)

    assert not full.admits(LOCAL)
    waiting.since = 98.0
    arrived.served = True

    assert full.admits(LOCAL)
    assert [arrived.is_closed, waiting.is_closed] == [False, True]


def test_connections_are_not_looked_at_again_before_one_of_them_can_be_closed() -> None:
    now = 100.0
    full = table(per_address=2, clock=lambda: now)
    first, _second = fill(full, LOCAL, 99.25, 99.5)

    assert [full.admits(LOCAL) for _ in range(9)] == [False] * 9
    assert first.looks == 1
    now = 100.05
    assert not full.admits(LOCAL)
    assert first.looks == 1
    now = 100.3
    assert full.admits(LOCAL)
    assert first.is_closed


def test_an_address_whose_connections_are_all_busy_gets_no_more() -> None:
    full = table(per_address=2)
    fill(full, LOCAL, None, None)

    assert not full.admits(LOCAL)
    assert full.admits("10.0.0.1")


@pytest.mark.parametrize("proxy", ["127.0.0.1", "127.0.0.0/8"])
def test_a_proxy_is_limited_in_total_alone(proxy: str) -> None:
    full = table(per_address=1, total=3, proxies=(proxy,))
    fill(full, LOCAL, None, None)

    assert full.admits(LOCAL)
    fill(full, LOCAL, None)
    assert not full.admits(LOCAL)


def test_in_total_the_address_with_most_connections_makes_room() -> None:
    full = table(total=5)
    greedy = fill(full, "10.0.0.1", 20.0, 30.0, 40.0, 50.0)
    (modest,) = fill(full, "10.0.0.2", 1.0)

    assert full.admits("10.0.0.3")
    assert [connection.is_closed for connection in greedy] == [True, False, False, False]
    assert not modest.is_closed


def test_what_was_removed_is_not_counted() -> None:
    full = table(per_address=1, total=1)
    (connection,) = fill(full, LOCAL, None)

    full.remove(LOCAL, connection)
    full.remove(LOCAL, connection)

    assert full.admits(LOCAL)


@asynccontextmanager
async def serving(delegate: Delegate, bounds: Bounds) -> AsyncGenerator[int]:
    server = Server(delegate, bounds)
    (listening,) = bind_sockets(0, address=LOCAL)
    server.add_sockets([listening])
    try:
        yield listening.getsockname()[1]
    finally:
        server.stop()
        await server.close_all_connections()


def bounds(limits: ConnectionLimits | None = None, *, head_seconds: float = 15.0) -> Bounds:
    return Bounds(
        head_bytes=16_384,
        body_bytes=1_000,
        idle_seconds=60.0,
        head_seconds=head_seconds,
        connections=limits or ConnectionLimits(),
    )


async def first_line(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(LOCAL, port)
    writer.write(data)
    try:
        return await asyncio.wait_for(reader.readline(), 20)
    finally:
        writer.close()


async def test_a_client_that_holds_all_connections_idle_keeps_no_other_out() -> None:
    limits = ConnectionLimits(total=20)
    async with serving(Delegate(), bounds(limits)) as port:
        held = [await asyncio.open_connection(LOCAL, port) for _ in range(20)]
        await asyncio.sleep(1.1)  # from then on they count as waiting

        answers = [await first_line(port, GET) for _ in range(30)]

        assert {line[:12] for line in answers} == {b"HTTP/1.1 200"}
        for _reader, writer in held:
            writer.close()


async def test_the_loop_serves_others_between_a_few_connections_and_the_next() -> None:
    async with serving(Delegate(), bounds()) as port:
        clients = [socket.create_connection((LOCAL, port)) for _ in range(12)]
        iterations, accepted = 0, len(asyncio.all_tasks())
        while len(asyncio.all_tasks()) < accepted + len(clients):
            iterations += 1
            await asyncio.sleep(0)

        for client in clients:
            client.close()

    assert iterations >= 3


async def test_connections_that_were_reset_do_not_hold_up_one_that_follows_them() -> None:
    async with serving(Delegate(), bounds()) as port:
        before = len(asyncio.all_tasks())
        for _ in range(40):
            gone = socket.create_connection((LOCAL, port))
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            gone.close()
        with socket.create_connection((LOCAL, port)) as client:
            for _ in range(
                2
            ):  # one in which the socket is found ready, one in which it is accepted
                await asyncio.sleep(0)
            accepted = len(asyncio.all_tasks()) - before
            client.sendall(GET)

    assert accepted == 1


async def test_a_connection_that_is_one_too_many_gets_503_while_all_others_are_busy() -> None:
    release = asyncio.Event()

    async def answer(seen: object) -> None:
        await release.wait()
        seen.answer()  # type: ignore[attr-defined]

    delegate = Delegate(answer)
    async with serving(delegate, bounds(ConnectionLimits(per_address=2))) as port:
        busy = [asyncio.create_task(first_line(port, GET)) for _ in range(2)]
        await until(lambda: len(delegate.seen) == 2)

        refused = await first_line(port, b"")
        release.set()

        assert refused.startswith(b"HTTP/1.1 503 ")
        assert {(await one)[:12] for one in busy} == {b"HTTP/1.1 200"}


async def test_a_head_that_does_not_end_in_time_is_refused() -> None:
    delegate = Delegate()
    async with serving(delegate, bounds(head_seconds=0.2)) as port:
        line = await first_line(port, b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: a")

    assert line.startswith(b"HTTP/1.1 400 ")  # the delegate of a service makes it a 408
    assert delegate.seen == []


async def test_a_connection_may_be_idle_for_longer_than_a_head_may_take() -> None:
    async with serving(Delegate(), bounds(head_seconds=0.1)) as port:
        reader, writer = await asyncio.open_connection(LOCAL, port)
        await asyncio.sleep(0.4)
        writer.write(GET)

        assert (await reader.readline())[:12] == b"HTTP/1.1 200"
        writer.close()


@pytest.mark.parametrize(("fields", "status"), [(99, b"200"), (100, b"400")])
async def test_a_head_has_at_most_a_hundred_fields(fields: int, status: bytes) -> None:
    head = b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * fields + b"\r\n"
    async with serving(Delegate(), bounds()) as port:
        line = await first_line(port, head)

    assert line.split()[1] == status  # the delegate of a service makes it a 431


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    (made,) = bind_sockets(0, address=LOCAL)
    yield made
    made.close()


def test_of_many_connections_four_are_taken_at_a_time(listening: socket.socket) -> None:
    clients = [socket.create_connection(listening.getsockname()) for _ in range(5)]

    taken = [[one for one, _address in accept_some(listening)] for _ in range(2)]

    assert [len(few) for few in taken] == [4, 1]
    for one in [*clients, *taken[0], *taken[1]]:
        one.close()


def test_a_client_that_is_turned_away_can_read_why_though_it_has_sent_much(
    listening: socket.socket,
) -> None:
    with socket.create_connection(listening.getsockname(), timeout=10) as client:
        client.sendall(GET * 100)
        ((accepted, address),) = accept_some(listening)

        turn_away(accepted, b"HTTP/1.1 503 Busy\r\n\r\n")

        assert (address, client.recv(100)) == (LOCAL, b"HTTP/1.1 503 Busy\r\n\r\n")
        assert client.recv(100) == b""
