"""What a sender loads, and when, and the documents it gets; attempts are those of the client."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.plugin_api.sinks import EventSink, SinkEvent
from fhirpub.testing.clock import HandClock
from fhirpub.testing.receiver import Misbehaviour, Receiver, Reply
from fhirpub.webhooks.transport.message import Message
from fhirpub.webhooks.transport.response import Retrieved
from fhirpub.webhooks.transport.sender import Sender

TENANT = "11111111-1111-4111-8111-111111111111"
SETTINGS = WebhooksConfig(
    allow_networks=["127.0.0.1/32"],
    connect_seconds=15.0,
    timeout_seconds=30.0,
    service_name="lab",
)
HASTY = replace(SETTINGS, connect_seconds=0.5, timeout_seconds=1.0)
MESSAGE = Message(
    tenant=TENANT,
    url="",
    token="the token",
    secrets=("whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0",),
    event_id="evt_1",
    event_type="patient.created",
    body=b'{"a":1}',
    number=1,
    sequence=7,
)


def test_a_process_that_sends_nothing_loads_no_http_client() -> None:
    script = "import sys, fhirpub.app.services; sys.exit('aiohttp' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", script], check=False)

    assert done.returncode == 0


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
async def sender() -> AsyncIterator[Sender]:
    async with Sender(SETTINGS, clock=HandClock()) as sender:
        yield sender


@pytest.fixture
async def hasty() -> AsyncIterator[Sender]:
    """A sender whose time is soon up."""
    async with Sender(HASTY, clock=HandClock()) as sender:
        yield sender


async def test_an_event_is_sent_with_its_token_and_in_no_coding(
    sender: Sender, receiver: Receiver
) -> None:
    message = replace(MESSAGE, url=receiver.url)

    outcomes = await asyncio.gather(*(sender.attempt(message) for _ in range(2)))

    assert [outcome.delivered for outcome in outcomes] == [True, True]
    assert len(receiver.received) == 2
    got = receiver.received[0]
    assert (got.method, got.body) == ("POST", b'{"a":1}')
    assert got.headers["authorization"] == "Bearer the token"
    assert got.headers["content-type"] == "application/json"
    assert got.headers["accept-encoding"] == "identity"
    assert got.headers["x-webhook-event"] == "patient.created"


async def test_an_endpoint_with_another_url_gets_nothing_at_the_former_one(
    sender: Sender, receiver: Receiver
) -> None:
    message = replace(MESSAGE, url=receiver.url, endpoint="a")
    receiver.answer(Reply(keep_open=True))
    await sender.attempt(message)

    with Receiver() as other:
        await sender.attempt(replace(message, url=other.url))

    assert (len(receiver.received), len(other.received)) == (1, 1)


async def test_a_document_is_retrieved_with_how_long_it_may_be_kept(
    sender: Sender, receiver: Receiver
) -> None:
    receiver.answer(Reply(status=200, body=b"{}", headers={"Cache-Control": "max-age=5"}))

    assert await sender.retrieve(receiver.url, TENANT) == Retrieved(
        body=b"{}", cache_control="max-age=5"
    )
    (received,) = receiver.received
    assert (received.method, received.headers["accept"]) == ("GET", "application/json")
    assert received.headers["user-agent"] == "lab-Webhooks/1.0"
    assert "authorization" not in received.headers


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (Reply(status=404, body=b"{}"), "status 404"),
        (Reply(status=204), "status 204"),
        (Reply(status=200, body=b" " * 65_536), "too long"),
        (Reply(misbehaviour="endless-body"), "too long"),
        (Reply(misbehaviour="header-flood"), "E_MALFORMED"),
        (Reply(misbehaviour="reset"), "E_RESET"),
        (Reply(misbehaviour="closed"), "E_RESET"),
    ],
)
async def test_a_site_that_gives_no_document_is_a_failure_with_its_reason(
    sender: Sender, receiver: Receiver, reply: Reply, problem: str
) -> None:
    receiver.answer(reply)

    found = await sender.retrieve(receiver.url, TENANT)

    assert (found.problem, found.body) == (problem, b"")


@pytest.mark.parametrize("misbehaviour", ["silent", "dripping-body", "dripping-headers"])
async def test_a_site_that_gives_no_document_takes_no_more_than_its_time(
    hasty: Sender, receiver: Receiver, misbehaviour: Misbehaviour
) -> None:
    receiver.answer(Reply(misbehaviour=misbehaviour))
    began = time.monotonic()

    found = await hasty.retrieve(receiver.url, TENANT)

    assert (found.problem, found.body) == ("E_TIMEOUT", b"")
    assert time.monotonic() - began < 25


async def test_a_redirect_is_not_followed(sender: Sender, receiver: Receiver) -> None:
    with Receiver() as elsewhere:
        receiver.answer(Reply(status=302, headers={"Location": elsewhere.url}))

        assert (await sender.retrieve(receiver.url, TENANT)).problem == "status 302"
        assert elsewhere.received == []


async def test_two_first_messages_open_one_client(receiver: Receiver) -> None:
    opened: list[Any] = []
    async with Sender(SETTINGS, clock=HandClock()) as sender:
        open_client = sender._open_client

        def noted() -> Any:
            opened.append(open_client())
            return opened[-1]

        sender._open_client = noted  # type: ignore[assignment]
        message = replace(MESSAGE, url=receiver.url)
        await asyncio.gather(*(sender.attempt(message) for _ in range(3)))

    assert len(opened) == 1


@pytest.mark.parametrize("is_open", [False, True])
async def test_at_the_end_sinks_are_closed_too(*, is_open: bool) -> None:
    class Closing(EventSink):
        name = "queue"
        closed = 0

        async def send(self, event: SinkEvent) -> None:
            """Take it."""

        async def close(self) -> None:
            self.closed += 1

    sink = Closing()

    async with Sender(SETTINGS, clock=HandClock(), sinks=[sink]) as sender:
        if is_open:
            await sender._open()
        assert sink.closed == 0

    assert sink.closed == 1


def _resolving_to(address: str) -> Any:
    def look_up(host: str, port: int, *_more: Any) -> Any:
        kind, protocol = socket.SOCK_STREAM, socket.IPPROTO_TCP
        return [(socket.AF_INET, kind, protocol, "", (address, port))]

    return look_up


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{}/jwks",
        "https://127.0.0.1:{}/jwks",
        "https://localhost:8443/jwks",
        "https://rebound.example.org/jwks",
        "http://ward.example.org/jwks",
        "https://169.254.169.254/latest",
        "file:///etc/passwd",
    ],
)
async def test_no_private_address_is_called_and_the_operator_sees_it(
    receiver: Receiver, url: str
) -> None:
    blocked: list[str] = []
    closed = replace(SETTINGS, allow_networks=[])
    async with Sender(
        closed,
        clock=HandClock(),
        look_up=_resolving_to("127.0.0.1"),
        blocked=lambda: blocked.append("blocked"),
    ) as sender:
        found = await sender.retrieve(url.format(receiver.port), TENANT)

    assert found.problem == "E_BLOCKED_ADDRESS"
    assert receiver.received == []


async def test_an_address_that_is_open_to_one_tenant_is_open_to_no_other(
    receiver: Receiver,
) -> None:
    receiver.answer(Reply(status=200, body=b"{}"))
    only = replace(SETTINGS, allow_networks=[f"127.0.0.1 tenant={TENANT}"])
    async with Sender(only, clock=HandClock()) as sender:
        assert (await sender.retrieve(receiver.url, TENANT)).problem == ""
        other = TENANT.replace("1", "2")
        assert (await sender.retrieve(receiver.url, other)).problem == "E_BLOCKED_ADDRESS"


@pytest.mark.parametrize("address", ["127.0.0.1", "unknown"])
async def test_the_operator_sees_that_a_name_led_to_refused_addresses_alone(address: str) -> None:
    blocked: list[str] = []

    def look_up(*name: Any) -> Any:
        if address == "unknown":
            raise socket.gaierror
        return _resolving_to(address)(*name)

    async with Sender(
        replace(SETTINGS, allow_networks=[]),
        clock=HandClock(),
        look_up=look_up,
        blocked=lambda: blocked.append("blocked"),
    ) as sender:
        url = "https://rebound.example.org/"
        document = await sender.retrieve(url, TENANT)
        outcome = await sender.attempt(replace(MESSAGE, url=url))

    expected = "E_DNS" if address == "unknown" else "E_BLOCKED_ADDRESS"
    assert (document.problem, outcome.reason) == (expected, expected)
    assert len(blocked) == (0 if address == "unknown" else 2)
