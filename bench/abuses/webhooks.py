"""Abuses by webhook endpoints whose receivers respond slowly or never."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

from bench.abuses import bodies
from bench.abuses.attack import REGISTER, Attack, NotPrepared, Phases, abuse
from bench.baseline import LOOPBACK
from bench.payloads import SMALL_DOCUMENT, Caller, RegisterRequests
from bench.wire import Chunks
from fhirpub.fhir.strict_json import dumps

_ENDPOINTS = "/webhooks/v1/endpoints"
_MOST = 100
_PUBLISHERS = 16
_DRIP_SECONDS = 0.2
_JSON = "application/json"
_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)
_LOCATION = re.compile(rb"\r\nlocation: *https?://[^/]+([^\r]+)", re.IGNORECASE)
_HANGING, _DRIPPING = "hang", "drip"


@asynccontextmanager
async def _receiver(manner: str) -> AsyncGenerator[str]:
    """Run a receiver that passes the verification; yield its URL."""

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _respond(reader, writer, manner)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the service has disconnected
        finally:
            writer.close()

    server = await asyncio.start_server(receive, LOOPBACK, 0, backlog=1024)
    try:
        yield f"http://{LOOPBACK}:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()


async def _respond(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, manner: str
) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    length = _LENGTH.search(head)
    body = await reader.readexactly(int(length[1]) if length else 0)
    if b'"challenge"' in body:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
        writer.write(head + body)
        await writer.drain()
        return
    if manner == _HANGING:
        await reader.read()  # until the service gives up
        return
    for byte in itertools.chain(b"HTTP/1.1 200 OK\r\nX-Slow: ", itertools.repeat(ord("x"))):
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(_DRIP_SECONDS)


async def _added(attack: Attack, url: str) -> str:
    """Add an endpoint and return its path."""
    status, head = await attack.send_once("POST", _ENDPOINTS, {"url": url}, media_type=_JSON)
    found = _LOCATION.search(head)
    if status != 201 or found is None:
        raise NotPrepared(f"endpoint: status {status}")
    return found[1].decode()


async def _verified(attack: Attack, url: str) -> str:
    path = await _added(attack, url)
    status, _head = await attack.send_once("POST", f"{path}/verify")
    if status != 200:
        raise NotPrepared(f"verification: status {status}")
    return path


def _reports(attack: Attack) -> Iterator[Chunks]:
    requests = RegisterRequests(Caller("abuser", attack.token), SMALL_DOCUMENT)
    return map(requests.request, range(10**6))


@abuse(201)
async def webhooks_of_one_hanging_receiver(attack: Attack) -> Phases:
    """Registers reports over 16 connections, with one endpoint that never responds."""
    async with _receiver(_HANGING) as url:
        await _verified(attack, url)
        yield
        await attack.flood(_reports(attack), connections=_PUBLISHERS)


@abuse(201)
async def webhooks_of_100_dripping_receivers(attack: Attack) -> Phases:
    """Registers reports over 16 connections, with 100 endpoints that respond byte by byte."""
    async with _receiver(_DRIPPING) as url:
        for number in range(_MOST):
            await _verified(attack, f"{url}{number}")
        yield
        await attack.flood(_reports(attack), connections=_PUBLISHERS)


@abuse(200, 429)
async def endpoints_tested(attack: Attack) -> Phases:
    """Tests 100 endpoints whose receivers never respond, over 64 connections."""
    async with _receiver(_HANGING) as url:
        paths = [await _added(attack, f"{url}{number}") for number in range(_MOST)]
        heads = itertools.cycle([(attack.head(f"POST {path}/test", length=0),) for path in paths])
        yield
        await attack.flood(heads, connections=64)


@abuse(201, 204)
async def endpoints_added_and_removed(attack: Attack) -> Phases:
    """Adds webhook endpoints and removes them at once."""
    body = dumps({"url": f"http://{LOOPBACK}:1/"})
    add = attack.head(f"POST {_ENDPOINTS}", length=len(body), media_type=_JSON)

    async def changed() -> None:
        with await attack.connect() as wire:
            while not attack.is_over:
                await wire.send(add, body)
                status, head = await wire.answer()
                attack.requests += 1
                attack.count(status)
                if found := _LOCATION.search(head):
                    path = found[1].decode()
                    attack.count(await attack.ask(wire, (attack.head(f"DELETE {path}"),)))

    yield
    await attack.repeat(changed, 8)


@abuse(422, 201)
async def endpoints_at_the_limit(attack: Attack) -> Phases:
    """Adds endpoints beyond the limit of 100, each with a report that has 100 deliveries."""
    async with _receiver(_HANGING) as url:
        for number in range(_MOST):
            await _added(attack, f"{url}{number}")
        body = dumps({"url": url})
        adding = attack.post(_ENDPOINTS, body, media_type=_JSON)
        reports = attack.post_new(REGISTER, bodies.registration())
        yield
        await attack.flood(one for pair in zip(adding, reports, strict=False) for one in pair)
