"""Abuses by connections, heads and framing, and by tokens."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import secrets
import uuid
from collections.abc import Iterator
from urllib.parse import urlencode

from bench.abuses import bodies
from bench.abuses.attack import ADDRESS as ABUSERS_ADDRESS
from bench.abuses.attack import (
    FHIR_JSON,
    NEIGHBOURS_ADDRESS,
    REGISTER,
    Attack,
    Phases,
    abuse,
    cancelled,
)
from bench.wire import Chunks, Disconnected

_MIB = 1024 * 1024
_MANY = 64
_IDLE = 1_024
_IDLE_CHECK_SECONDS = 0.5
_BYTE_SECONDS = 1.0
_PIPELINED = 1_000
_OPENERS = 32
_HEAD_LINES = 4_000
_FORM = "application/x-www-form-urlencoded"


@abuse("held", 408)
async def announced_32mb(attack: Attack) -> Phases:
    """Announces bodies of 32 MiB over 64 connections and sends one byte of each."""
    head = attack.head(f"POST {REGISTER}", length=32 * _MIB)
    yield
    await attack.repeat(lambda: hold(attack, head, b"{", more=b""), _MANY)


@abuse("held", 408, 503)
async def almost_sent_8mb(attack: Attack) -> Phases:
    """Sends 8 MB but for the last bytes over 16 connections, then one byte a second."""
    head = attack.head(f"POST {REGISTER}", length=8 * _MIB)
    body = b" " * (8 * _MIB - 1_000)
    yield
    await attack.repeat(lambda: hold(attack, head, body), 16)


@abuse("held", 408)
async def slow_bodies(attack: Attack) -> Phases:
    """Sends bodies over 64 connections, one byte a second."""
    head = attack.head(f"POST {REGISTER}", length=10_000)
    yield
    await attack.repeat(lambda: hold(attack, head, b"{"), _MANY)


@abuse("held", 408)
async def slow_heads(attack: Attack) -> Phases:
    """Sends heads over 64 connections, one byte a second."""
    yield
    await attack.repeat(
        lambda: hold(attack, b"GET /health/live HTTP/1.1\r\nX-Slow: ", b"x"), _MANY
    )


async def hold(attack: Attack, head: bytes, start: bytes, *, more: bytes = b"x") -> None:
    """Send the start of a request, then ``more`` each second until there is a response."""
    with await attack.connect() as wire:
        await wire.send(head, start)
        attack.requests += 1
        attack.count("held")
        answer = asyncio.ensure_future(wire.answer())
        try:
            while not answer.done():
                await asyncio.wait([answer], timeout=_BYTE_SECONDS)
                if not answer.done():
                    await wire.send(more)
            attack.count(answer.result()[0])
        finally:
            await cancelled(answer)


@abuse(201)
async def chunks_of_one_byte(attack: Attack) -> Phases:
    """Registers bodies of 60 KB in chunks of one byte."""
    body = bodies.registration(**bodies.extensions(bodies.SMALL - 2_500))
    head = attack.head(
        f"POST {REGISTER}", f"Content-Type: {FHIR_JSON}", "Transfer-Encoding: chunked"
    )

    def in_chunks(part: bytes) -> bytes:
        return b"".join(b"1\r\n%c\r\n" % byte for byte in part)

    before, after = in_chunks(body.before), in_chunks(body.after)

    def requests() -> Iterator[Chunks]:
        for serial in itertools.count():
            value = in_chunks(body.numbered(serial)[1])
            yield head, before, value, after, b"0\r\n\r\n"

    yield
    await attack.flood(requests())


@abuse(400)
async def long_chunked_of_one_byte(attack: Attack) -> Phases:
    """Sends bodies of 100 KB in chunks of one byte, all blanks."""
    head = attack.head(
        f"POST {REGISTER}", f"Content-Type: {FHIR_JSON}", "Transfer-Encoding: chunked"
    )
    body = b"1\r\n \r\n" * 100_000 + b"0\r\n\r\n"
    yield
    await attack.flood(itertools.repeat((head, body)))


@abuse(431, "ConnectionResetError", "Disconnected")
async def heads_of_4000_lines(attack: Attack) -> Phases:
    """Sends heads of 4,000 lines of four bytes."""
    lines = b"a:\r\n" * _HEAD_LINES
    head = b"GET /health/live HTTP/1.1\r\nHost: abuser\r\n" + lines + b"\r\n"
    yield
    await attack.flood(itertools.repeat((head,)))


@abuse("opened", "Disconnected", "ConnectionResetError")
async def idle_connections(attack: Attack) -> Phases:
    """Keeps 1,024 connections open from its own address and sends nothing."""
    yield
    await attack.repeat(lambda: _idle(attack, ABUSERS_ADDRESS), _IDLE)


@abuse("opened", "Disconnected", "ConnectionResetError")
async def idle_connections_of_one_address(attack: Attack) -> Phases:
    """Keeps 1,024 connections open from the address that the neighbour has as well."""
    yield
    await attack.repeat(lambda: _idle(attack, NEIGHBOURS_ADDRESS), _IDLE)


async def _idle(attack: Attack, source: str) -> None:
    with await attack.connect(source=source) as wire:
        attack.count("opened")
        await wire.receive()
    await asyncio.sleep(_IDLE_CHECK_SECONDS)
    raise Disconnected


@abuse("opened")
async def opened_and_closed(attack: Attack) -> Phases:
    """Opens and closes connections as fast as possible."""

    async def opened() -> None:
        with await attack.connect() as wire:
            attack.requests += 1
            attack.count("opened")
            wire.reset()

    yield
    await attack.repeat(opened, _OPENERS)


@abuse(200)
async def one_request_a_connection(attack: Attack) -> Phases:
    """Opens a new connection for each GET /health/live."""
    head = b"GET /health/live HTTP/1.1\r\nHost: abuser\r\n\r\n"

    async def asked() -> None:
        with await attack.connect() as wire:
            attack.count(await attack.ask(wire, (head,)))
            wire.reset()

    yield
    await attack.repeat(asked, _OPENERS)


@abuse(200)
async def pipelined_1000(attack: Attack) -> Phases:
    """Sends 1,000 reads at once on each connection before it reads a response."""
    (path,) = await attack.register(bodies.registration())
    requests = attack.head(f"GET {path}") * _PIPELINED

    async def asked() -> None:
        with await attack.connect() as wire:
            while not attack.is_over:
                sending = asyncio.ensure_future(wire.send(requests))
                try:
                    for _ in range(_PIPELINED):
                        status, _head = await wire.answer()
                        attack.requests += 1
                        attack.count(status)
                finally:
                    await cancelled(sending)

    yield
    await attack.repeat(asked, 8)


def _segment(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


@abuse(401)
async def wrong_tokens(attack: Attack) -> Phases:
    """Sends tokens of the right form, with a signature that the service has to verify."""
    header, claims, signature = attack.token.split(".")
    known = json.loads(base64.urlsafe_b64decode(claims + "=="))
    size = len(base64.urlsafe_b64decode(signature + "=="))

    def requests() -> Iterator[Chunks]:
        while True:
            changed = _segment(json.dumps({**known, "jti": secrets.token_hex(8)}).encode())
            token = f"{header}.{changed}.{_segment(secrets.token_bytes(size))}"
            lines = ["GET /fhir/r4/metadata HTTP/1.1", "Host: abuser"]
            lines += [f"Authorization: Bearer {token}", "", ""]
            yield ("\r\n".join(lines).encode(),)

    yield
    await attack.flood(requests())


@abuse(401, 429)
async def wrong_secrets(attack: Attack) -> Phases:
    """Requests tokens with wrong secrets, for its own client and for unknown ones in turns."""

    def requests() -> Iterator[Chunks]:
        for number in itertools.count():
            fields = {
                "grant_type": "client_credentials",
                "audience": attack.audience,
                "client_id": str(uuid.uuid4()) if number % 2 else attack.client_id,
                "client_secret": secrets.token_urlsafe(32),
            }
            form = urlencode(fields).encode()
            lines = ["POST /oauth/token HTTP/1.1", "Host: abuser", f"Content-Type: {_FORM}"]
            head = "\r\n".join([*lines, f"Content-Length: {len(form)}", "", ""]).encode()
            yield head, form

    yield
    await attack.flood(requests())
