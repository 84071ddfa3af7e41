"""Which connections are kept and which are closed, and what comes over them in pieces."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest
from yarl import URL

from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.testing.clock import HandClock
from fhirpub.testing.receiver import Misbehaviour, Receiver, Reply
from fhirpub.webhooks.transport.http_client import HttpClient, _Exchange, _Line
from fhirpub.webhooks.transport.message import Message
from fhirpub.webhooks.transport.name_lookup import AddressInfo
from fhirpub.webhooks.transport.sender import Sender
from fhirpub.webhooks.transport.signing import new_secret
from fhirpub.webhooks.transport.url_policy import TargetRules
from tests.waiting import until

TENANT = "11111111-1111-4111-8111-111111111111"
BODY = b'{"event_id":"evt_1"}'
MESSAGE = Message(
    tenant=TENANT,
    url="",
    token="the-token",
    secrets=(new_secret(),),
    event_id="evt_1",
    event_type="diagnostic_report.created",
    body=BODY,
    number=1,
    sequence=1,
    endpoint="a",
)
LONG_AGO = float("-inf")
SETTINGS = WebhooksConfig(
    allow_networks=["127.0.0.1/32"], connect_seconds=15.0, timeout_seconds=30.0
)


@pytest.fixture
async def sender() -> AsyncIterator[Sender]:
    async with Sender(SETTINGS, clock=HandClock()) as sender:
        yield sender


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        receiver.answer(Reply(keep_open=True))
        yield receiver


def client_of(sender: Sender) -> HttpClient:
    assert sender._client is not None
    return sender._client


@asynccontextmanager
async def answering(*pieces: bytes, may: asyncio.Event | None = None) -> AsyncGenerator[str]:
    """Serve an answer in pieces, once it may be given; yield the URL."""

    ended = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if may is not None:
            await may.wait()
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.02)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        ended.set()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        async with asyncio.timeout(30):
            await ended.wait()


# Answers


async def test_an_answer_that_comes_in_pieces_is_kept_as_a_whole(sender: Sender) -> None:
    head = b"HTTP/1.1 500 Oh\r\nContent-Length: 6\r\nConnection: close\r\n\r\nab"
    async with answering(head, b"cd", b"ef") as url:
        outcome = await sender.attempt(replace(MESSAGE, url=url))

    assert (outcome.status, outcome.answer) == (500, b"abcdef")


async def test_a_document_has_all_that_is_said_about_how_long_it_may_be_kept(
    sender: Sender,
) -> None:
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n"
        b"Cache-Control: max-age=600\r\nCache-Control: no-store\r\n\r\n"
    )
    async with answering(head, b"{", b"}") as url:
        found = await sender.retrieve(url, TENANT)

    assert (found.problem, found.body) == ("", b"{}")
    assert found.cache_control == "max-age=600, no-store"


async def test_all_addresses_that_were_dialled_are_in_the_outcome() -> None:
    addresses = ["127.0.0.1", "127.0.0.2"]

    def look_up(_host: object, port: int, *_more: object) -> Sequence[AddressInfo]:
        kind = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
        return [(*kind, (address, port)) for address in addresses]

    settings = replace(SETTINGS, allow_networks=["127.0.0.0/8"])
    async with Sender(settings, clock=HandClock(), look_up=look_up) as sender:
        with socket.socket() as silent:  # no other program gets its port, and it takes no calls
            silent.bind(("", 0))
            url = f"http://hooks.test:{silent.getsockname()[1]}/"
            outcome = await sender.attempt(replace(MESSAGE, url=url))

    assert outcome.reason == "E_CONNECT"
    assert [*dict.fromkeys(outcome.dialled)] == addresses  # the client may dial one again


async def test_a_url_is_called_as_it_was_registered_character_by_character(
    sender: Sender, receiver: Receiver
) -> None:
    path = "/a%41;b//%7E?c=%2f&d"
    url = f"http://127.0.0.1:{receiver.port}{path}"

    await sender.attempt(replace(MESSAGE, url=url))
    await sender.retrieve(url, TENANT)

    assert [received.path for received in receiver.received] == [path, path]


async def test_a_document_is_not_read_where_a_redirect_leads(
    sender: Sender, receiver: Receiver
) -> None:
    receiver.answer(Reply(status=307, headers={"Location": "/other"}))

    found = await sender.retrieve(f"http://127.0.0.1:{receiver.port}/", TENANT)

    assert (found.problem, len(receiver.received)) == ("status 307", 1)


def at_home(port: int, looked_up: list[object]) -> Callable[..., Sequence[AddressInfo]]:
    """Lead each name to the receiver, and note it."""

    def look_up(host: object, *_more: object) -> Sequence[AddressInfo]:
        looked_up.append(host)
        kind = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
        return [(*kind, ("127.0.0.1", port))]

    return look_up


async def test_a_cookie_of_a_host_with_a_name_is_not_sent_back(receiver: Receiver) -> None:
    receiver.answer(Reply(headers={"Set-Cookie": "a=b; Path=/"}))
    look_up = at_home(receiver.port, [])
    async with Sender(SETTINGS, clock=HandClock(), look_up=look_up) as sender:
        message = replace(MESSAGE, url=f"http://hooks.test:{receiver.port}/")
        for _again in range(2):
            await sender.attempt(message)

    assert [received.headers.get("cookie") for received in receiver.received] == [None, None]


async def test_a_name_is_looked_up_for_each_connection(receiver: Receiver) -> None:
    receiver.answer(Reply(keep_open=False))
    looked_up: list[object] = []
    look_up = at_home(receiver.port, looked_up)
    async with Sender(SETTINGS, clock=HandClock(), look_up=look_up) as sender:
        message = replace(MESSAGE, url=f"http://hooks.test:{receiver.port}/")
        for _again in range(2):
            await sender.attempt(message)

    assert looked_up == ["hooks.test", "hooks.test"]


# Connections that rest


async def test_connections_of_an_endpoint_that_rests_are_closed(
    sender: Sender, receiver: Receiver
) -> None:
    for endpoint in "aba":
        for line in client_of(sender)._lines.values() if sender._client else ():
            line.used = LONG_AGO
        await sender.attempt(replace(MESSAGE, url=receiver.url, endpoint=endpoint))

    ports = [received.port for received in receiver.received]
    assert ports[0] != ports[2]
    assert [endpoint for endpoint, _url in client_of(sender)._lines] == ["a"]


async def test_connections_of_the_last_half_minute_are_kept(
    sender: Sender, receiver: Receiver
) -> None:
    for endpoint in "ab":
        await sender.attempt(replace(MESSAGE, url=receiver.url, endpoint=endpoint))

    assert [endpoint for endpoint, _url in client_of(sender)._lines] == ["a", "b"]


async def test_a_connection_in_use_is_not_closed_for_others(
    sender: Sender, receiver: Receiver
) -> None:
    may = asyncio.Event()
    answer = b"HTTP/1.1 204 Done\r\nConnection: close\r\n\r\n"
    async with answering(answer, may=may) as url:
        first = asyncio.create_task(sender.attempt(replace(MESSAGE, url=url)))
        await until(lambda: sender._client and client_of(sender)._lines)
        (line,) = client_of(sender)._lines.values()
        await until(lambda: line.under_way)
        line.used = LONG_AGO
        await sender.attempt(replace(MESSAGE, url=receiver.url, endpoint="b"))
        may.set()

        assert (await first).status == 204
    assert line.under_way == 0


async def test_connections_in_use_are_closed_at_the_end(
    sender: Sender, receiver: Receiver
) -> None:
    for endpoint in "ab":
        await sender.attempt(replace(MESSAGE, url=receiver.url, endpoint=endpoint))
    lines = [*client_of(sender)._lines.values()]
    lines[0].under_way = 1

    await client_of(sender).close()

    assert [line.session.closed for line in lines] == [True, True]


async def test_the_time_to_connect_does_not_limit_an_answer(
    sender: Sender, receiver: Receiver
) -> None:
    await sender.attempt(replace(MESSAGE, url=receiver.url))

    (line,) = client_of(sender)._lines.values()
    assert (line.session.timeout.total, line.session.timeout.connect) == (None, 15.0)


async def test_an_endpoint_rests_since_its_last_message(
    sender: Sender, receiver: Receiver
) -> None:
    await sender.attempt(replace(MESSAGE, url=receiver.url))
    (line,) = client_of(sender)._lines.values()
    line.used = LONG_AGO

    await sender.attempt(replace(MESSAGE, url=receiver.url))

    assert line.used > LONG_AGO


@pytest.mark.parametrize("misbehaviour", [None, "reset"])
async def test_what_is_sent_to_no_endpoint_leaves_no_connection(
    sender: Sender,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    misbehaviour: Misbehaviour | None,
) -> None:
    opened: list[bool] = []
    session = HttpClient._session

    def noted(client: HttpClient, endpoint: str) -> object:
        made = session(client, endpoint)
        closing = made.close

        async def close() -> None:
            opened.append(False)
            await closing()

        made.close = close  # type: ignore[method-assign]
        opened.append(True)
        return made

    monkeypatch.setattr(HttpClient, "_session", noted)
    receiver.answer(Reply(misbehaviour=misbehaviour))
    await sender.attempt(replace(MESSAGE, url=receiver.url, endpoint=""))

    assert opened == [True, False]
    assert client_of(sender)._lines == {}


def test_a_line_with_a_connection_to_a_private_address_stays_private() -> None:
    rules = TargetRules(allow_networks=["127.0.0.0/8"])
    target = rules.target("https://hooks.test/", tenant=TENANT)
    line = _Line(target, URL(target.url), session=None)  # type: ignore[arg-type]

    exchanges = [_Exchange(rules) for _ in range(3)]
    for exchange in exchanges:
        exchange.line = line

    for exchange, address in zip(exchanges, ("127.0.0.1", "192.88.98.1"), strict=False):
        (found,) = socket.getaddrinfo(address, 443, type=socket.SOCK_STREAM)
        exchange.open_socket(found).close()

    assert [exchange.private for exchange in exchanges] == [True, False, True]
