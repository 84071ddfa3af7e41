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


async def test_a_message_without_memory_is_refused_as_one_too_many() -> None:
    frames = frames_of(START + MESSAGE, memory=CHUNK - 1)
    await frames.begins()

    with pytest.raises(TooLarge, match="too many large messages at a time") as refused:
        await frames.message()

    assert refused.value.begin == MESSAGE
    assert frames.memory.free == CHUNK - 1


async def test_memory_is_taken_for_each_part_and_given_back_once() -> None:
    reader = asyncio.StreamReader()
    frames = Frames(reader, Memory(3 * CHUNK), limit=10**6)
    reader.feed_data(START + b"a")
    await frames.begins()
    reading = asyncio.create_task(frames.message())
    await asyncio.sleep(0)
    reader.feed_data(b"b")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    reader.feed_data(END)

    assert await reading == b"ab"
    assert frames.memory.free == CHUNK
    frames.release()
    frames.release()
    assert frames.memory.free == 3 * CHUNK


async def test_a_message_that_is_at_hand_takes_no_memory() -> None:
    frames = frames_of(FRAME, memory=0)
    await frames.begins()

    assert await frames.message() == MESSAGE
