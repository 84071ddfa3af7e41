"""What the options of the listener mean, of one that runs within its test."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
import signal
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click
import pytest

from fhirpub.testing.certificate import Certificate
from fhirpub.testing.receiver import Receiver, Reply
from fhirpub_hl7v2.frames import END, START
from fhirpub_hl7v2.listening import _listen, _tls
from tests.hl7v2.answering import CREATED, granting, requests_of, service_at
from tests.hl7v2.messages import SETTINGS, message

USUAL: dict[str, Any] = {
    "host": "127.0.0.1",
    "port": 0,
    "allowed": (),
    "message_bytes": 10**6,
    "connections": 4,
    "idle_seconds": 600.0,
    "arrival_seconds": 600.0,
    "deadline_seconds": 600.0,
}
NOWHERE = "http://127.0.0.1:1"


@asynccontextmanager
async def listening(
    capsys: pytest.CaptureFixture[str], base: str = NOWHERE, **options: Any
) -> AsyncIterator[int]:
    """Run a listener until the end; the value is its port."""
    running = asyncio.create_task(_listen(service_at(base), SETTINGS, None, {**USUAL, **options}))
    printed = ""
    async with asyncio.timeout(30):
        while not (found := re.search(r":(\d+)\n", printed)) and not running.done():
            await asyncio.sleep(0.001)
            printed += capsys.readouterr().out
    assert found, printed
    try:
        yield int(found[1])
    finally:
        if not running.done():
            os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(30):
            await running


async def sent(port: int, raw: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(raw)
    return reader, writer


async def answer(port: int, raw: bytes) -> bytes:
    """Return what a connection gets until it is closed, after some bytes."""
    reader, writer = await sent(port, raw)
    async with asyncio.timeout(30):
        found = await reader.read()
    writer.close()
    return found


async def test_a_connection_without_a_message_is_closed_after_its_idle_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with listening(capsys, idle_seconds=0.02) as port:
        assert await answer(port, b"") == b""


async def test_a_message_that_does_not_arrive_in_its_time_ends_the_connection(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with listening(capsys, arrival_seconds=0.02) as port:
        assert await answer(port, START + b"MSH|") == b""


async def test_a_message_that_is_not_published_in_its_time_is_to_be_sent_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Receiver() as receiver:
        receiver.answer_by(granting(Reply(misbehaviour="silent")))
        base = receiver.url.removesuffix("/webhook")
        async with listening(capsys, base, deadline_seconds=0.05) as port:
            reader, writer = await sent(port, START + message() + END)
            async with asyncio.timeout(30):
                found = await reader.readuntil(END)
            writer.close()

    assert b"send the message again" in found


async def test_an_address_that_is_not_allowed_is_closed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with listening(capsys, allowed=(ipaddress.ip_network("10.0.0.0/8"),)) as port:
        assert await answer(port, b"") == b""


async def test_a_connection_beyond_the_limit_is_closed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with listening(capsys, connections=1) as port:
        _, first = await sent(port, b"")

        assert await answer(port, b"") == b""
        first.close()


async def test_a_message_is_at_most_as_large_as_it_may_be(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with listening(capsys, message_bytes=2_000) as port:
        assert b"is larger than 2000 bytes" in await answer(port, START + b"x" * 2_100)


async def test_eight_of_the_largest_messages_may_arrive_at_a_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    raw = START + b"x" * 10**6
    async with listening(capsys, connections=8) as port:
        opened = [await sent(port, raw) for _ in range(8)]
        for _, writer in opened:
            await writer.drain()
        for _, writer in opened:
            writer.write(END)
        answers = [await reader.readuntil(END) for reader, _ in opened]
        for _, writer in opened:
            writer.close()

    assert [b"too many" in found for found in answers] == 8 * [False]


async def test_messages_of_several_connections_are_published_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Receiver() as receiver:
        receiver.answer_by(granting(Reply(misbehaviour="silent"), CREATED))
        base = receiver.url.removesuffix("/webhook")
        async with listening(capsys, base) as port:
            _, first = await sent(port, START + message() + END)
            await asyncio.to_thread(receiver.wait, 2)

            reader, second = await sent(port, START + message(msh={10: "M2"}) + END)
            async with asyncio.timeout(30):
                found = await reader.readuntil(END)

            first.close()
            second.close()
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0.01)  # the next signal ends what is in work

    assert b"MSA|AA|M2" in found


async def test_a_message_is_published_again_while_the_service_defers_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Receiver() as receiver:
        receiver.answer_by(granting(Reply(status=503), CREATED))
        base = receiver.url.removesuffix("/webhook")
        async with listening(capsys, base) as port:
            reader, writer = await sent(port, START + message() + END)
            async with asyncio.timeout(30):
                assert b"MSA|AA|M1" in await reader.readuntil(END)
            writer.close()

    assert len(requests_of(receiver.received)) == 2


def tls_of(cert: Path | None, key: Path | None, client_ca: Path | None) -> ssl.SSLContext | None:
    return _tls({"tls_cert": cert, "tls_key": key, "tls_client_ca": client_ca})


def test_with_an_authority_clients_need_a_certificate(tmp_path: Path) -> None:
    file = Certificate.create(tmp_path, name="127.0.0.1").file

    found = [tls_of(file, None, authority) for authority in (None, file)]

    assert [context and context.verify_mode for context in found] == [
        ssl.CERT_NONE,
        ssl.CERT_REQUIRED,
    ]


@pytest.mark.parametrize("given", [(True, False), (False, True), (True, True)])
def test_a_key_or_an_authority_without_a_certificate_is_wrong_usage(
    tmp_path: Path, given: tuple[bool, bool]
) -> None:
    key, authority = (tmp_path if is_given else None for is_given in given)

    with pytest.raises(click.UsageError, match="--tls-key and --tls-client-ca need --tls-cert"):
        tls_of(None, key, authority)


def test_without_a_certificate_there_is_no_tls() -> None:
    assert tls_of(None, None, None) is None
