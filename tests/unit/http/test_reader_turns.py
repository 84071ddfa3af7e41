"""How much of what is here is read before other connections have their turns."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest
from tornado.iostream import IOStream, StreamClosedError

from fhirpub.http.reader import RequestReader
from tests.unit.http.test_reader import Line, line, lines

__all__ = ["line", "lines"]


async def test_a_long_body_that_is_here_leaves_turns_to_others() -> None:
    def read_bytes(most: int, *, partial: bool) -> asyncio.Future[bytes]:
        assert partial
        read = asyncio.get_running_loop().create_future()
        read.set_result(bytes(most))
        return read

    taken: list[int] = []
    reader = RequestReader(cast("IOStream", SimpleNamespace(read_bytes=read_bytes)))
    reading = asyncio.create_task(reader.body(600_000, lambda piece: taken.append(len(piece))))
    turns = 0
    while not reading.done():
        turns += 1
        await asyncio.sleep(0)

    assert sum(taken) == 600_000
    assert turns >= 3


class Ready:
    """A connection on which pieces of a size are always there, until there is nothing more."""

    def __init__(self, size: int, count: int) -> None:
        self._size, self.left = size, count

    def read_bytes(self, most: int, *, partial: bool) -> asyncio.Future[bytes]:
        assert partial
        read = asyncio.get_running_loop().create_future()
        if self.left:
            self.left -= 1
            read.set_result(bytes(min(most, self._size)))
        else:
            read.set_exception(StreamClosedError())
        return read


async def turns_of(reading: asyncio.Task[None]) -> int:
    turns = 0
    while not reading.done():
        turns += 1
        await asyncio.sleep(0)
    return turns


async def test_a_long_body_in_pieces_needs_one_turn_for_several_of_them() -> None:
    reader = RequestReader(cast("IOStream", Ready(65_536, 32)))

    turns = await turns_of(asyncio.create_task(reader.body(32 * 65_536, lambda _piece: None)))

    assert 8 <= turns <= 10  # four pieces each


async def test_many_small_chunks_that_are_here_leave_turns_to_others(line: Line) -> None:
    line.send(b"1\r\na\r\n" * 640 + b"0\r\n\r\n")

    assert await turns_of(asyncio.create_task(line.reader.chunks(1_000, line.take))) >= 10


async def test_what_is_discarded_leaves_turns_to_others() -> None:
    reader = RequestReader(cast("IOStream", Ready(10, 50)))

    discarding = asyncio.create_task(reader.discard())

    assert await turns_of(discarding) >= 50
    with pytest.raises(StreamClosedError):
        await discarding
