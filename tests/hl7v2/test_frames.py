"""Frames of MLLP, in whatever parts they arrive."""

from __future__ import annotations

import asyncio

import pytest

from fhirpub_hl7v2.frames import END, START, Frames, Memory, TooLarge

MESSAGE = b"MSH|^~\\&|LAB"
FRAME = START + MESSAGE + END


@pytest.mark.parametrize("cut", range(1, len(FRAME)))
async def test_a_message_that_arrives_in_two_parts_is_whole(cut: int) -> None:
    reader = asyncio.StreamReader()
    frames = Frames(reader, Memory(10**6), limit=len(MESSAGE))
    reader.feed_data(FRAME[:cut])
    assert await frames.begins()
    reading = asyncio.create_task(frames.message())
    await asyncio.sleep(0)  # it has read the first part

    reader.feed_data(FRAME[cut:])
    reader.feed_eof()

    assert await reading == MESSAGE


async def test_a_message_that_is_too_large_is_refused_though_it_arrives_at_once() -> None:
    reader = asyncio.StreamReader()
    frames = Frames(reader, Memory(10**6), limit=len(MESSAGE) - 1)
    reader.feed_data(FRAME)
    assert await frames.begins()

    with pytest.raises(TooLarge):
        await frames.message()
