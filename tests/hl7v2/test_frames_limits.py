"""What frames of MLLP may hold, and what is none."""

from __future__ import annotations

import asyncio

import pytest

from fhirpub_hl7v2.frames import END, START, Frames, Memory, NotMllp, TooLarge

MESSAGE = b"MSH|^~\\&|LAB"
FRAME = START + MESSAGE + END
CHUNK = 65_536


def frames_of(
    data: bytes, *, memory: int = 10**6, limit: int = 1_000, ends: bool = True
) -> Frames:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    if ends:
        reader.feed_eof()
    return Frames(reader, Memory(memory), limit=limit)


@pytest.mark.parametrize(("size", "taken"), [(9, True), (10, True), (11, False)])
def test_memory_is_given_as_long_as_there_is_enough(size: int, *, taken: bool) -> None:
    memory = Memory(10)

    assert memory.take(size) is taken
    assert memory.free == (10 - size if taken else 10)


def test_memory_that_is_given_back_is_free() -> None:
    memory = Memory(10)
    memory.take(10)

    memory.give_back(4)

    assert memory.free == 4


@pytest.mark.parametrize("data", [b"", b"\r\n", b"\n\r\n"])
async def test_a_connection_that_ends_between_messages_has_no_other(data: bytes) -> None:
    assert not await frames_of(data).begins()


@pytest.mark.parametrize("data", [b"MSH|", b" " + FRAME, b"\x1c\r"])
async def test_another_first_byte_is_not_mllp(data: bytes) -> None:
    with pytest.raises(NotMllp):
        await frames_of(data).begins()


async def test_line_ends_before_a_message_are_skipped() -> None:
    frames = frames_of(b"\r\n" + FRAME)

    assert await frames.begins()
    assert await frames.message() == MESSAGE


async def test_messages_that_arrive_at_once_are_read_one_after_another() -> None:
    frames = frames_of(FRAME + b"\r\n" + START + b"two" + END)

    assert await frames.begins()
    assert await frames.message() == MESSAGE
    assert await frames.begins()
    assert await frames.message() == b"two"
    assert not await frames.begins()


async def test_what_follows_a_message_must_be_one() -> None:
    frames = frames_of(FRAME + b"x")
    await frames.begins()
    await frames.message()

    with pytest.raises(NotMllp):
        await frames.begins()


@pytest.mark.parametrize("part", [START, START + MESSAGE, START + MESSAGE + b"\x1c"])
async def test_a_connection_that_ends_within_a_message_is_not_mllp(part: bytes) -> None:
    frames = frames_of(part)
    await frames.begins()

    with pytest.raises(NotMllp):
        await frames.message()


async def test_a_message_may_have_the_end_block_without_the_return() -> None:
    frames = frames_of(START + b"a\x1cb\x0bc" + END)
    await frames.begins()

    assert await frames.message() == b"a\x1cb\x0bc"


@pytest.mark.parametrize("ends", [True, False])
async def test_a_message_of_the_limit_is_read_and_one_byte_more_is_refused(*, ends: bool) -> None:
    most = frames_of(FRAME, limit=len(MESSAGE), ends=ends)
    await most.begins()
    assert await most.message() == MESSAGE

    more = frames_of(FRAME, limit=len(MESSAGE) - 1, ends=ends)
    await more.begins()
    with pytest.raises(TooLarge, match="is larger than 11 bytes"):
        await more.message()


async def test_a_message_is_refused_before_it_has_ended() -> None:
    frames = frames_of(START + b"x" * 12, limit=10, ends=False)
    await frames.begins()

    with pytest.raises(TooLarge) as refused:
        await frames.message()

    assert refused.value.begin == b"x" * 12


async def test_of_a_message_that_is_too_large_its_begin_is_kept() -> None:
    frames = frames_of(START + b"x" * 3 * CHUNK + END, limit=100_000)
    await frames.begins()

    with pytest.raises(TooLarge) as refused:
        await frames.message()

    assert refused.value.begin == b"x" * (CHUNK - 1)


@pytest.mark.parametrize("ends", [True, False], ids=["whole", "not yet whole"])
async def test_a_message_without_memory_is_refused_as_one_too_many(*, ends: bool) -> None:
    text = MESSAGE + b"x" * CHUNK
    end = END if ends else b"xx"
    frames = frames_of(START + text + end, memory=len(MESSAGE) - 1, limit=10**6)
    await frames.begins()

    with pytest.raises(TooLarge, match="too many large messages at a time") as refused:
        await frames.message()

    assert refused.value.begin == text[: CHUNK - 1]
    assert frames.memory.free == len(MESSAGE) - 1


async def test_a_message_that_is_too_large_is_none_too_many() -> None:
    frames = frames_of(START + b"x" * 3 * CHUNK, memory=0, limit=100)
    await frames.begins()

    with pytest.raises(TooLarge, match="is larger than 100 bytes"):
        await frames.message()


async def in_parts(frames: Frames, data: bytes, size: int) -> bytes:
    """Return a message whose parts arrive one by one, each once the one before has been read."""
    frames.reader.feed_data(data[:size])
    assert await frames.begins()
    reading = asyncio.create_task(frames.message())
    for at in range(size, len(data), size):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        frames.reader.feed_data(data[at : at + size])
    return await reading


@pytest.mark.parametrize("size", [500, CHUNK - 1, CHUNK, CHUNK + 1, 10**6])
async def test_a_message_takes_memory_for_what_it_holds_beyond_one_read(size: int) -> None:
    text = b"x" * (3 * CHUNK + 7)
    frames = Frames(asyncio.StreamReader(), Memory(2 * CHUNK + 7), limit=10**6)

    assert await in_parts(frames, START + text + END, size) == text

    assert frames.memory.free == 0
    frames.release()
    frames.release()
    assert frames.memory.free == 2 * CHUNK + 7


@pytest.mark.parametrize("size", [1, 5, len(FRAME)])
async def test_a_small_message_takes_no_memory_of_large_ones(size: int) -> None:
    frames = Frames(asyncio.StreamReader(), Memory(0), limit=len(MESSAGE))

    assert await in_parts(frames, FRAME, size) == MESSAGE


async def test_the_memory_of_one_message_is_not_that_of_the_next() -> None:
    frames = Frames(asyncio.StreamReader(), Memory(10), limit=10**6)
    frame = START + b"x" * (CHUNK + 10) + END

    for _ in range(2):
        await in_parts(frames, frame, CHUNK)
        assert frames.memory.free == 0
        frames.release()

    assert frames.memory.free == 10
