"""How many requests of one client are taken in one turn of the loop."""

from __future__ import annotations

import asyncio
import socket
from itertools import pairwise

from tornado.iostream import IOStream

from fhirpub.http.exchange import Peer
from fhirpub.http.server import Bounds, Connection
from tests.unit.http.test_server import GET, Delegate


async def taken_in_turns(count: int) -> list[int]:
    """Return how many of the requests that are here at once are taken in each turn of the loop."""
    ours, theirs = socket.socketpair()
    bounds = Bounds(head_bytes=16_384, body_bytes=1_000, idle_seconds=30)
    connection, delegate = Connection(IOStream(ours), Peer(""), bounds), Delegate()
    theirs.sendall(GET % 1 * count)
    theirs.shutdown(socket.SHUT_WR)
    serving, taken = asyncio.create_task(connection.serve(delegate)), [0]
    while not serving.done():
        await asyncio.sleep(0)
        taken.append(len(delegate.seen))
    theirs.close()
    return [after - before for before, after in pairwise(taken) if after > before]


async def test_requests_that_are_here_together_are_taken_together_turn_after_turn() -> None:
    assert await taken_in_turns(64) == [16, 16, 16, 16]


async def test_a_few_requests_are_taken_in_one_turn() -> None:
    assert await taken_in_turns(5) == [5]
