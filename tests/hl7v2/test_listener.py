"""A listener within its process: which peers it accepts, what it acknowledges, how it ends."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from fhirpub_hl7v2.acknowledgement import Acknowledgement
from fhirpub_hl7v2.frames import END, START, Memory
from fhirpub_hl7v2.listener import Limits, Listener, Network
from fhirpub_hl7v2.problems import Code, Problem
from fhirpub_hl7v2.receiver import Receiver
from tests.canned import Canned
from tests.hl7v2.messages import SETTINGS, message
from tests.waiting import until

MOMENT = 1_772_448_300_000
"""2 March 2026, 10:45 UTC."""
LARGE = message() + b"x" * (65_736 - len(message()))
"""A message of 200 bytes more than one read."""


@dataclass(frozen=True, slots=True)
class Held(Receiver):
    """Acknowledges what it is set to, once it may."""

    answer: Acknowledgement = field(default_factory=lambda: Acknowledgement("AA"))
    may: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def receive(self, _raw: bytes) -> Acknowledgement:
        self.begun.set()
        await self.may.wait()
        return self.answer


def held(answer: Acknowledgement | None = None, *, may: bool = True) -> Held:
    made = Held(Canned().publisher, SETTINGS, 5.0, answer or Acknowledgement("AA"))
    if may:
        made.may.set()
    return made


@asynccontextmanager
async def listening(
    receiver: Receiver,
    *,
    connections: int = 4,
    idle: float = 600.0,
    arrival: float = 600.0,
    allowed: tuple[str, ...] = (),
    memory: int = 10**6,
) -> AsyncIterator[tuple[Listener, int]]:
    networks: list[Network] = [ipaddress.ip_network(each) for each in allowed]
    limits = Limits(
        message_bytes=100_000,
        connections=connections,
        idle=idle,
        arrival=arrival,
        allowed=networks,
    )
    listener = Listener(receiver, limits, lambda: MOMENT, Memory(memory))
    async with listener.listen("127.0.0.1", 0, None) as port:
        yield listener, port


async def exchanged(port: int, raw: bytes) -> bytes:
    """Send one message and return its acknowledgement."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(START + raw + END)
    try:
        return (await reader.readuntil(END)).removeprefix(START).removesuffix(END)
    finally:
        writer.close()


async def is_closed(port: int) -> bool:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(30):
            return await reader.read(1) == b""
    finally:
        writer.close()


async def test_an_acknowledgement_has_a_time_in_utc_and_a_number_of_its_own() -> None:
    async with listening(held()) as (_, port):
        first, second = [await exchanged(port, message()) for _ in range(2)]

    fields = [each.split(b"\r")[0].split(b"|") for each in (first, second)]
    assert fields[0][6] == b"20260302104500+0000"
    assert fields[0][9] != fields[1][9]
    assert len(fields[0][9]) == 20


async def test_a_network_that_is_not_allowed_is_closed() -> None:
    with capture_logs() as logs:
        async with listening(held(), allowed=("10.0.0.0/8", "127.0.0.2/32")) as (_, port):
            assert await is_closed(port)

    assert [(each["reason"], each["peer"]) for each in logs] == [
        ("address not allowed", "127.0.0.1")
    ]


async def test_one_of_several_networks_is_enough() -> None:
    async with listening(held(), allowed=("10.0.0.0/8", "127.0.0.1/32")) as (_, port):
        assert b"MSA|AA|M1" in await exchanged(port, message())


@pytest.mark.parametrize(
    ("peer", "allowed"),
    [("::ffff:10.1.2.3", True), ("10.255.0.1", True), ("11.0.0.1", False), ("", False)],
)
def test_an_address_is_compared_as_the_one_that_it_is(peer: str, *, allowed: bool) -> None:
    networks = [ipaddress.ip_network("10.0.0.0/8")]
    limits = Limits(message_bytes=1, connections=1, idle=1, arrival=1, allowed=networks)

    listener = Listener(held(), limits, lambda: MOMENT, Memory(1))

    assert listener._is_allowed(peer) is allowed


async def test_the_last_connection_is_served_and_the_next_one_closed() -> None:
    with capture_logs() as logs:
        async with listening(held(), connections=2) as (_, port):
            opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(1)]
            assert b"MSA|AA" in await exchanged(port, message())
            opened.append(await asyncio.open_connection("127.0.0.1", port))
            await asyncio.sleep(0)

            assert await is_closed(port)
            for _, writer in opened:
                writer.close()

    refused = [line for line in logs if line["event"] == "connection refused"]
    assert [(line["reason"], line["peer"]) for line in refused] == [
        ("too many connections", "127.0.0.1")
    ]


async def test_after_a_stop_no_connection_is_accepted() -> None:
    async with listening(held()) as (_, port):
        pass

    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


async def test_what_is_no_message_is_logged_and_the_next_one_accepted() -> None:
    with capture_logs() as logs:
        async with listening(held()) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1")
            assert await reader.read() == b""
            writer.close()
            assert b"MSA|AA" in await exchanged(port, message())

    assert (logs[0]["reason"], logs[0]["peer"]) == ("not a whole message in MLLP", "127.0.0.1")


async def test_a_message_without_memory_is_refused_and_the_connection_closed() -> None:
    async with listening(held(), memory=10) as (listener, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(START + LARGE)

        answer = await reader.read()

        assert b"MSA|AE|M1|too many large messages at a time" in answer
        assert b"|207^" in answer
        writer.close()
    assert listener.memory.free == 10


async def test_memory_is_taken_until_a_message_is_answered_and_free_again_after_it() -> None:
    receiver = held(may=False)
    async with listening(receiver) as (listener, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(START + LARGE + END)
        await receiver.begun.wait()
        in_work = listener.memory.free
        receiver.may.set()
        await reader.readuntil(END)
        writer.write(START + LARGE + END)
        await reader.readuntil(END)

        writer.write(START + message() + END)
        await reader.readuntil(END)

        assert (in_work, listener.memory.free) == (10**6 - 200, 10**6)
        writer.close()


async def test_a_connection_that_waits_for_a_message_holds_no_memory() -> None:
    async with listening(held(), idle=60) as (listener, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(START + LARGE + END)
        await reader.readuntil(END)

        async with asyncio.timeout(30):
            while listener.memory.free < 10**6:
                await asyncio.sleep(0)  # it is free soon after the answer

        writer.close()


async def test_the_memory_of_a_message_is_free_again_when_its_sender_has_gone() -> None:
    async with listening(held()) as (listener, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(START + LARGE)
        await until(lambda: listener.memory.free < 10**6)

        writer.write_eof()
        assert await reader.read() == b""

        assert listener.memory.free == 10**6
        writer.close()


@pytest.mark.parametrize(("idle", "arrival"), [(0.02, 600.0), (600.0, 0.02)])
async def test_a_silent_or_slow_sender_is_disconnected(idle: float, arrival: float) -> None:
    async with listening(held(), idle=idle, arrival=arrival) as (listener, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        if idle > arrival:
            writer.write(START + b"MSH|")

        async with asyncio.timeout(30):
            assert await reader.read() == b""
        assert listener.memory.free == 10**6
        writer.close()


async def test_the_time_of_a_message_is_not_that_of_its_arrival() -> None:
    receiver = held(may=False)
    async with listening(receiver, arrival=0.02) as (_, port):
        exchange = asyncio.create_task(exchanged(port, message()))
        await receiver.begun.wait()
        await asyncio.sleep(0.04)
        receiver.may.set()

        assert b"MSA|AA|M1" in await exchange


async def test_a_stop_ends_waits_at_once_and_answers_what_is_in_work() -> None:
    receiver = held(may=False)
    async with asyncio.timeout(30), listening(receiver, idle=600.0) as (_, port):
        silent, writer = await asyncio.open_connection("127.0.0.1", port)
        other, other_writer = await asyncio.open_connection("127.0.0.1", port)
        exchange = asyncio.create_task(exchanged(port, message()))
        await receiver.begun.wait()
        asyncio.get_running_loop().call_later(0.01, receiver.may.set)

    assert b"MSA|AA|M1" in await exchange
    assert [await silent.read(), await other.read()] == [b"", b""]
    writer.close()
    other_writer.close()


async def test_a_stop_waits_for_no_further_message_of_a_connection() -> None:
    receiver = held(may=False)
    async with listening(receiver) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(2 * (START + message() + END))
        writer.write_eof()
        await receiver.begun.wait()
        asyncio.get_running_loop().call_later(0.01, receiver.may.set)

    assert (await reader.read()).count(b"MSA|AA") == 1
    writer.close()


async def test_messages_that_arrive_at_once_are_answered_one_after_another() -> None:
    async with listening(held()) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(START + message() + END + START + message(msh={10: "M2"}) + END)
        writer.write_eof()

        answers = (await reader.read()).split(END)

        assert [b"MSA|AA|M1" in answers[0], b"MSA|AA|M2" in answers[1]] == [True, True]
        writer.close()


def logged(answer: Acknowledgement, raw: bytes) -> list[dict[str, object]]:
    async def run() -> None:
        async with listening(held(answer)) as (_, port):
            await exchanged(port, raw)

    with capture_logs() as logs:
        asyncio.run(run())
    return [dict(each) for each in logs]


def test_a_published_message_is_logged_by_its_number() -> None:
    raw = message()

    (line,) = logged(Acknowledgement("AA"), raw)

    assert (line["event"], line["message"], line["peer"]) == (
        "message published",
        "M1",
        "127.0.0.1",
    )
    assert line["size"] == len(raw)


@pytest.mark.parametrize(
    ("number", "shown"),
    [("a-B.1_2", "a-B.1_2"), ("x" * 50, "x" * 50), ("x" * 51, "?"), ("Ashdown Juniper", "?")],
)
def test_a_number_that_may_be_a_name_is_not_logged(number: str, shown: str) -> None:
    (line,) = logged(Acknowledgement("AA"), message(msh={10: number}))

    assert line["message"] == shown


def test_a_refused_message_is_logged_with_its_places() -> None:
    problems = [
        Problem("a", "OBX", 2, 5),
        Problem("b", code=Code.INTERNAL),
        Problem("c", "OBR", 1),
    ]

    (line,) = logged(Acknowledgement("AR", "a text", problems), message())

    assert line["event"] == "message refused"
    assert (line["code"], line["places"], line["reason"]) == (
        "AR",
        ["OBX[2]-5", "OBR[1]"],
        "a text",
    )


def test_what_stays_as_registered_is_logged_as_a_warning() -> None:
    answer = Acknowledgement("AA", warnings=[Problem("kept"), Problem("and this")])

    published, *warnings = logged(answer, message())

    assert published["log_level"] == "info"
    assert [(each["log_level"], each["reason"]) for each in warnings] == [
        ("warning", "kept"),
        ("warning", "and this"),
    ]
    assert {each["message"] for each in warnings} == {"M1"}
