"""Heads, bodies and chunks as they are read: at their limits, in whatever pieces they come."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest
from tornado.httputil import HTTPInputError
from tornado.iostream import IOStream, StreamClosedError

from fhirpub.http.head import HeadTooLong, HeadTooSlow
from fhirpub.http.reader import RequestReader, TooLong


class Line:
    """A connection with both of its ends."""

    def __init__(self) -> None:
        ours, self.client = socket.socketpair()
        self.stream = IOStream(ours)
        self.reader = RequestReader(self.stream)
        self.taken: list[bytes] = []

    def send(self, data: bytes) -> None:
        self.client.sendall(data)

    def take(self, piece: bytes) -> None:
        self.taken.append(piece)

    async def chunks(self, data: bytes, most: int = 100) -> bytes:
        self.send(data)
        await self.reader.chunks(most, self.take)
        return b"".join(self.taken)


@pytest.fixture
def lines() -> Iterator[list[Line]]:
    made: list[Line] = []
    yield made
    for line in made:
        line.stream.close()
        line.client.close()


@pytest.fixture
async def line(lines: list[Line]) -> Line:
    lines.append(Line())
    return lines[-1]


# Heads.


@pytest.mark.parametrize("end", [b"\r\n\r\n", b"\n\n", b"\n\r\n"])
async def test_a_head_ends_with_an_empty_line(line: Line, end: bytes) -> None:
    line.send(b"GET / HTTP/1.1" + end + b"rest")

    assert await line.reader.head(100, 1) == b"GET / HTTP/1.1" + end
    assert line.reader.is_ahead()


async def test_a_head_of_exactly_the_limit_is_read(line: Line) -> None:
    line.send(b"0123456\n\r\n")

    assert len(await line.reader.head(10, 1)) == 10


async def test_a_head_one_byte_beyond_the_limit_is_too_long(line: Line) -> None:
    line.send(b"01234567\n\r\n")

    with pytest.raises(HeadTooLong):
        await line.reader.head(10, 1)


@pytest.mark.parametrize(("data", "in_line"), [(b"x" * 20, True), (b"xx\n" + b"y" * 20, False)])
async def test_a_head_that_is_too_long_says_whether_its_line_is(
    line: Line, data: bytes, *, in_line: bool
) -> None:
    line.send(data)

    with pytest.raises(HeadTooLong) as refused:
        await line.reader.head(20, 1)

    assert refused.value.in_line is in_line


@pytest.mark.parametrize(("data", "in_line"), [(b"x" * 20, True), (b"xx\n" + b"y" * 20, False)])
async def test_whether_the_line_is_too_long_is_seen_in_this_head_and_not_in_the_one_before(
    line: Line, data: bytes, *, in_line: bool
) -> None:
    line.send(b"one\n\n" + data)
    await line.reader.head(20, 1)

    with pytest.raises(HeadTooLong) as refused:
        await line.reader.head(20, 1)

    assert refused.value.in_line is in_line


async def test_a_head_that_does_not_end_in_time_is_too_slow(line: Line) -> None:
    line.send(b"GET")

    with pytest.raises(HeadTooSlow):
        await line.reader.head(100, 0.001)


async def test_the_next_head_begins_where_the_last_request_ended(line: Line) -> None:
    line.send(b"one\n\nBODYtwo\n\n")

    await line.reader.head(100, 1)
    await line.reader.body(4, line.take)

    assert (line.taken, await line.reader.head(100, 1)) == ([b"BODY"], b"two\n\n")
    assert not line.reader.is_ahead()


async def test_the_last_byte_of_what_is_here_is_read_as_well(line: Line) -> None:
    line.send(b"one\n\nBtwo\n\n1")

    await line.reader.head(100, 1)
    await line.reader.body(1, line.take)
    await line.reader.head(100, 1)
    await asyncio.wait_for(line.reader.body(1, line.take), 30)

    assert line.taken == [b"B", b"1"]


# Bodies.


async def test_a_body_takes_its_length_and_no_more(line: Line) -> None:
    line.send(b"0123456789")

    await line.reader.body(4, line.take)

    assert b"".join(line.taken) == b"0123"


async def test_a_body_without_bytes_reads_nothing(line: Line) -> None:
    await line.reader.body(0, line.take)

    assert line.taken == []


async def test_the_next_piece_waits_for_the_one_before(line: Line) -> None:
    line.send(b"one\n\nab")
    await line.reader.head(100, 1)
    order: list[str] = []

    async def slowly(piece: bytes) -> None:
        order.append(f"{piece.decode()} came")
        if len(order) == 1:
            line.send(b"cd")
        order.append(f"{piece.decode()} done")

    await line.reader.body(4, slowly)

    assert order == ["ab came", "ab done", "cd came", "cd done"]


async def test_a_body_that_ends_early_is_a_closed_connection(line: Line) -> None:
    line.send(b"abc")
    line.client.close()

    with pytest.raises(StreamClosedError):
        await line.reader.body(4, line.take)


# Chunks.


@pytest.mark.parametrize(
    ("data", "body"),
    [
        (b"3\r\nabc\r\n0\r\n\r\n", b"abc"),
        (b"A\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
        (b"1\r\na\r\n0002\r\nbc\r\n000\r\n\r\n", b"abc"),
        (b"1;name=value\r\na\r\n0;x\r\n\r\n", b"a"),
        (b"1\r\na\r\n0\r\nField: value\r\nOther:\r\n\r\n", b"a"),
        (b"0\r\n\r\n", b""),
    ],
)
async def test_chunks_are_one_body(line: Line, data: bytes, body: bytes) -> None:
    assert await line.chunks(data) == body


async def test_small_chunks_are_handed_on_together(line: Line) -> None:
    await line.chunks(b"1\r\na\r\n" * 70 + b"0\r\n\r\n")

    assert line.taken == [b"a" * 70]


async def test_large_chunks_are_handed_on_in_pieces_each_byte_once(line: Line) -> None:
    body = bytes(range(256)) * 800
    half = len(body) // 2
    chunks = [b"%x\r\n%b\r\n" % (len(one), one) for one in (body[:half], body[half:])]
    sending = asyncio.to_thread(line.send, b"".join([*chunks, b"0\r\n\r\n"]))

    await asyncio.gather(sending, line.reader.chunks(len(body), line.take))

    assert b"".join(line.taken) == body
    assert len(line.taken) >= 3


async def test_a_connection_on_which_a_head_is_awaited_has_no_more(line: Line) -> None:
    reading = asyncio.create_task(line.reader.head(100, 30))
    await asyncio.sleep(0)

    assert not line.reader.has_more()

    line.send(b"GET / HTTP/1.1\r\n\r\n")
    assert line.reader.has_more()
    await reading


async def test_chunks_of_exactly_the_limit_are_read(line: Line) -> None:
    assert await line.chunks(b"2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n", most=4) == b"abcd"


async def test_chunks_beyond_the_limit_are_too_long_before_they_are_read(line: Line) -> None:
    with pytest.raises(TooLong):
        await line.chunks(b"2\r\nab\r\n3\r\n", most=4)


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n",
        b"g\r\n",
        b"-1\r\n",
        b"0x1\r\n",
        b" 1\r\n",
        b"1 \r\na",
        b"1 ;a\r\na",
        b"1;\r\na",
        b"1\n" + b"a" * 300,
        b"1" * 13 + b"\r\n",
        b"2\r\nabc\r\n0\r\n\r\n",
        b"1\r\na\n\n0\r\n\r\n",
        b"0\r\nno field\r\n\r\n",
        b"0\r\n: value\r\n\r\n",
        b"0\r\na: \x00\r\n\r\n",
    ],
)
async def test_what_are_no_chunks_is_refused(line: Line, data: bytes) -> None:
    with pytest.raises(HTTPInputError):
        await line.chunks(data)


@pytest.mark.parametrize(("size", "is_read"), [(256, True), (257, False)])
async def test_the_line_of_a_chunk_has_at_most_256_bytes(
    line: Line, size: int, *, is_read: bool
) -> None:
    beginning = b"1;" + b"x" * (size - 4) + b"\r\n"

    if is_read:
        assert await line.chunks(beginning + b"a\r\n0\r\n\r\n") == b"a"
    else:
        with pytest.raises(HTTPInputError):
            await line.chunks(beginning + b"a\r\n0\r\n\r\n")


async def test_fields_behind_the_chunks_have_a_limit_together(line: Line) -> None:
    field = b"a:" + b"x" * 8_000 + b"\r\n"

    with pytest.raises(HTTPInputError, match="not too many"):
        await line.chunks(b"0\r\n" + field * 3 + b"\r\n")


# What has come.


async def test_nothing_more_is_there_of_a_silent_or_a_closed_connection(line: Line) -> None:
    silent = line.reader.has_more()
    line.send(b"a")
    arrived = line.reader.has_more()
    line.stream.close()

    assert (silent, arrived, line.reader.has_more()) == (False, True, False)


async def test_what_is_discarded_is_not_ahead(line: Line) -> None:
    line.send(b"one\n\nmore")
    await line.reader.head(100, 1)
    line.client.close()

    with pytest.raises(StreamClosedError):
        await line.reader.discard()

    assert not line.reader.is_ahead()
