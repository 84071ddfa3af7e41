"""Which URLs an endpoint may have: of receivers, of sinks, and of those that are read."""

from __future__ import annotations

import socket
import threading
from collections.abc import AsyncIterator, Sequence

import pytest

from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.errors import InvalidContent
from fhirpub.plugin_api.sinks import EventSink, SinkEvent
from fhirpub.testing.clock import HandClock
from fhirpub.webhooks.transport.message import Message
from fhirpub.webhooks.transport.name_lookup import AddressInfo
from fhirpub.webhooks.transport.sender import Sender

CLOCK = HandClock(1_795_000_000_999)
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
ADDRESSES = {"public.example": "8.8.8.8", "inside.example": "10.0.0.1"}


class Kept(EventSink):
    name = "queue"

    def __init__(self) -> None:
        self.events: list[SinkEvent] = []

    async def send(self, event: SinkEvent) -> None:
        self.events.append(event)


def look_up(host: str, port: int, *_: object) -> Sequence[AddressInfo]:
    if host not in ADDRESSES:
        raise socket.gaierror
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ADDRESSES[host], port))]


SINK, BLOCKED = Kept(), list[int]()


@pytest.fixture
async def sender() -> AsyncIterator[Sender]:
    SINK.events.clear()
    BLOCKED.clear()
    async with Sender(
        WebhooksConfig(),
        clock=CLOCK,
        look_up=look_up,
        sinks=[SINK],
        blocked=lambda: BLOCKED.append(1),
    ) as opened:
        yield opened


async def address(sender: Sender, url: str, *, trusted: bool = False) -> str:
    return await sender.address(url, tenant="t", trusted=trusted)


async def test_the_url_of_a_receiver_is_in_its_canonical_form(sender: Sender) -> None:
    found = await address(sender, "https://PUBLIC.example:443/a")

    assert found == "https://public.example/a"


@pytest.mark.parametrize("trusted", [True, False])
async def test_an_endpoint_that_is_read_needs_no_address(sender: Sender, *, trusted: bool) -> None:
    assert await address(sender, "pull:lab", trusted=trusted) == "pull:lab"


async def test_a_sink_is_for_endpoints_of_the_operator_alone(sender: Sender) -> None:
    assert await address(sender, "sink:queue/a", trusted=True) == "sink:queue/a"
    with pytest.raises(InvalidContent):
        await address(sender, "sink:queue/a")


async def test_one_good_address_of_a_host_suffices() -> None:
    def both(host: str, port: int, *more: object) -> Sequence[AddressInfo]:
        return [*look_up("inside.example", port, *more), *look_up("public.example", port, *more)]

    async with Sender(WebhooksConfig(), clock=CLOCK, look_up=both) as sender:
        assert await address(sender, "https://both.example/a") == "https://both.example/a"


async def test_a_name_server_that_does_not_answer_is_waited_for_as_for_a_connection() -> None:
    may = threading.Event()

    def hang(*_name: object) -> Sequence[AddressInfo]:
        assert may.wait(30)
        return []

    settings = WebhooksConfig(connect_seconds=0.01)
    async with Sender(settings, clock=CLOCK, look_up=hang) as sender:
        with pytest.raises(InvalidContent, match="leads to no address"):
            await address(sender, "https://slow.example/a")
        may.set()


@pytest.mark.parametrize(("host", "blocked"), [("inside.example", 1), ("none.example", 0)])
async def test_a_host_without_a_good_address_is_refused_in_the_same_words(
    sender: Sender, host: str, blocked: int
) -> None:
    with pytest.raises(InvalidContent) as refused:
        await address(sender, f"https://{host}/a")

    assert "has a host that leads to no address to which webhooks are sent" in str(
        refused.value.issues
    )
    assert len(BLOCKED) == blocked


async def test_a_sink_gets_the_headers_that_describe_and_sign_an_event(sender: Sender) -> None:
    message = Message(
        tenant="t",
        url="sink:queue",
        token="token",
        secrets=(SECRET,),
        event_id="evt_1",
        event_type="patient.created",
        body=b"{}",
        number=3,
        sequence=7,
        traceparent="00-a",
    )

    await sender.attempt(message)

    headers = SINK.events[0].headers
    assert headers["X-Webhook-Event"] == "patient.created"
    assert (headers["X-Webhook-Attempt"], headers["X-Webhook-Sequence"]) == ("3", "7")
    assert headers["traceparent"] == "00-a"
    assert headers["webhook-timestamp"] == "1795000000"
    assert "Authorization" not in headers
