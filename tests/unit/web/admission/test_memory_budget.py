from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from types import SimpleNamespace

import pytest
from tornado.httputil import HTTPHeaders, RequestStartLine
from tornado.iostream import IOStream

from fhirpub.errors import Busy
from fhirpub.web.admission.memory_budget import Room
from fhirpub.web.message.request import Request

Arrive = Callable[[], tuple[Request, socket.socket]]


@pytest.fixture
def arrive() -> Iterator[Arrive]:
    """Make requests on connections of their own; also the client's end of each."""
    streams: list[IOStream] = []
    clients: list[socket.socket] = []

    def one() -> tuple[Request, socket.socket]:
        ours, theirs = socket.socketpair()
        streams.append(IOStream(ours))
        clients.append(theirs)
        line = RequestStartLine("POST", "/", "HTTP/1.1")
        return Request(line, HTTPHeaders(), SimpleNamespace(stream=streams[-1])), theirs

    yield one
    for stream in streams:
        stream.close()
    for client in clients:
        client.close()


def started(waiting: Awaitable[None] | None) -> asyncio.Task[None]:
    """Wait in a task of its own, as Tornado does."""
    assert waiting is not None, "there was room"

    async def wait() -> None:
        await waiting

    return asyncio.create_task(wait())


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_bodies_that_fit_together_do_not_wait(arrive: Arrive) -> None:
    room = Room(100, patience_seconds=5)

    waits = [room.take(arrive()[0], size) for size in (40, 60)]

    assert waits == [None, None]


async def test_one_too_many_waits_until_there_is_room(arrive: Arrive) -> None:
    room, (first, _), (second, _) = Room(100, patience_seconds=5), arrive(), arrive()
    room.take(first, 60)
    waiting = started(room.take(second, 60))
    await settled()
    waited = not waiting.done()

    room.leave(first)
    await asyncio.wait_for(waiting, 1)

    assert waited


async def test_nobody_overtakes_one_who_needs_more(arrive: Arrive) -> None:
    room, (first, _), (large, _), (small, _) = (
        Room(100, patience_seconds=5),
        arrive(),
        arrive(),
        arrive(),
    )
    room.take(first, 60)
    before = started(room.take(large, 90))
    behind = started(room.take(small, 10))
    await settled()

    assert not before.done()
    assert not behind.done()
    room.leave(first)
    await asyncio.wait_for(asyncio.gather(before, behind), 1)


async def test_who_has_its_share_waits_and_keeps_no_other_waiting(arrive: Arrive) -> None:
    room, (first, _), (second, _), (other, _) = (
        Room(100, patience_seconds=5, share=0.5),
        arrive(),
        arrive(),
        arrive(),
    )
    room.take(first, 30, owner="lab")
    waiting = started(room.take(second, 30, owner="lab"))
    of_another = room.take(other, 30, owner="clinic")
    await settled()
    waited = not waiting.done()

    room.leave(first)
    await asyncio.wait_for(waiting, 1)

    assert of_another is None
    assert waited


async def test_what_is_larger_than_a_share_needs_the_room_alone_of_its_owner(
    arrive: Arrive,
) -> None:
    room, (large, _), (other, _) = Room(100, patience_seconds=5, share=0.5), arrive(), arrive()

    waits = [room.take(large, 70, owner="lab"), room.take(other, 30, owner="clinic")]

    assert waits == [None, None]


async def test_one_larger_than_the_room_goes_alone(arrive: Arrive) -> None:
    room, (first, _), (huge, _), (small, _) = (
        Room(100, patience_seconds=5),
        arrive(),
        arrive(),
        arrive(),
    )
    room.take(first, 1)
    alone = started(room.take(huge, 1000))
    after = started(room.take(small, 1))
    await settled()
    waited = not alone.done()

    room.leave(first)
    await asyncio.wait_for(alone, 1)
    await settled()

    assert waited
    assert not after.done()
    room.leave(huge)
    await asyncio.wait_for(after, 1)


async def test_what_was_taken_too_much_is_given_back(arrive: Arrive) -> None:
    room, (first, _), (second, _) = Room(100, patience_seconds=5), arrive(), arrive()
    room.take(first, 100)
    waiting = started(room.take(second, 60))

    room.settle(first, 40)

    await asyncio.wait_for(waiting, 1)


async def test_who_leaves_twice_gives_back_once(arrive: Arrive) -> None:
    room, (first, _), (second, _) = Room(100, patience_seconds=5), arrive(), arrive()
    room.take(first, 60)
    room.take(second, 40)

    room.leave(first)
    room.leave(first)

    third = started(room.take(arrive()[0], 61))
    await settled()
    assert not third.done()
    room.leave(second)
    await asyncio.wait_for(third, 1)


async def test_who_waits_too_long_is_refused_and_those_behind_go_on(arrive: Arrive) -> None:
    room, (first, _), (large, _), (small, _) = (
        Room(100, patience_seconds=0.2),
        arrive(),
        arrive(),
        arrive(),
    )
    room.take(first, 60)
    refused = started(room.take(large, 90))
    await asyncio.sleep(0.1)
    behind = started(room.take(small, 40))

    with pytest.raises(Busy):
        await asyncio.wait_for(refused, 1)
    await asyncio.wait_for(behind, 1)


async def test_who_hangs_up_while_waiting_waits_no_longer(arrive: Arrive) -> None:
    room, (first, _), (gone, client) = Room(100, patience_seconds=60), arrive(), arrive()
    room.take(first, 60)
    waiting = started(room.take(gone, 90))
    behind = started(room.take(arrive()[0], 40))
    await settled()

    client.sendall(b"a part of the body")
    client.close()

    await asyncio.wait_for(asyncio.gather(waiting, behind), 3)
    assert gone.connection.stream.closed()
