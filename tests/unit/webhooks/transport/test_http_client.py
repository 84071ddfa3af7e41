"""One attempt against real receivers, well-behaved and hostile."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import AddrInfoType
from yarl import URL

from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.errors import InvalidContent
from fhirpub.testing.certificate import Certificate
from fhirpub.testing.clock import HandClock
from fhirpub.testing.receiver import Misbehaviour, Receiver, Reply
from fhirpub.webhooks.policy.outcome import Outcome, Reason
from fhirpub.webhooks.transport import http_client
from fhirpub.webhooks.transport.http_client import _Exchange, _Line
from fhirpub.webhooks.transport.message import Message
from fhirpub.webhooks.transport.name_lookup import LookUp, Name
from fhirpub.webhooks.transport.sender import Sender
from fhirpub.webhooks.transport.signing import BadSecret, NotVerified, new_secret, verify
from fhirpub.webhooks.transport.url_policy import TargetRules
from tests.waiting import until

TOTAL_SECONDS = 1.2
MAX_SECONDS = TOTAL_SECONDS + 20
ANOTHER = "22222222-2222-4222-8222-222222222222"
TENANT = "11111111-1111-4111-8111-111111111111"
BODY = b'{"event_id":"evt_1"}'
MESSAGE = Message(
    tenant=TENANT,
    url="",
    token="the-token",
    secrets=(new_secret(), new_secret()),
    event_id="evt_1",
    event_type="diagnostic_report.created",
    body=BODY,
    number=3,
    sequence=42,
)
SETTINGS = WebhooksConfig(
    allow_networks=["127.0.0.1/32"],
    connect_seconds=15.0,
    timeout_seconds=30.0,
    service_name="lab",
)
HASTY = replace(SETTINGS, timeout_seconds=TOTAL_SECONDS)
CALM = replace(SETTINGS, timeout_seconds=TOTAL_SECONDS + 3)
IMPATIENT = replace(SETTINGS, connect_seconds=0.2)
PATIENT_SECONDS = 20.0
"""Enough to connect on a slow machine, and less than lookups hang."""


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def sender(clock: HandClock) -> AsyncIterator[Sender]:
    async with Sender(SETTINGS, clock=clock) as sender:
        yield sender


@pytest.fixture
async def hasty(clock: HandClock) -> AsyncIterator[Sender]:
    """A sender whose time is soon up."""
    async with Sender(HASTY, clock=clock) as sender:
        yield sender


@pytest.fixture
async def calm(clock: HandClock) -> AsyncIterator[Sender]:
    """A sender whose time suffices to connect to a slow machine, and is up soon afterwards."""
    async with Sender(CALM, clock=clock) as sender:
        yield sender


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


async def sent(sender: Sender, receiver: Receiver, *replies: Reply) -> Outcome:
    if replies:
        receiver.answer(*replies)
    return await sender.attempt(replace(MESSAGE, url=receiver.url))


async def test_a_receiver_gets_the_body_and_what_proves_it(
    sender: Sender, receiver: Receiver, clock: HandClock
) -> None:
    outcome = await sent(sender, receiver)

    (received,) = receiver.received
    assert (received.method, received.path, received.body) == ("POST", "/webhook", BODY)
    assert {name: received.headers.get(name) for name in EXPECTED} == EXPECTED
    for secret in MESSAGE.secrets:
        verify(received.headers, received.body, secret, now=clock() / 1000)
    assert (outcome.delivered, outcome.status, outcome.reason) == (True, 204, None)
    assert (outcome.dialled, outcome.private) == (("127.0.0.1",), True)


EXPECTED = {
    "content-type": "application/json",
    "user-agent": "lab-Webhooks/1.0",
    "authorization": "Bearer the-token",
    "x-webhook-event": "diagnostic_report.created",
    "x-webhook-attempt": "3",
    "x-webhook-sequence": "42",
    "accept-encoding": "identity",
    "content-length": str(len(BODY)),
    "transfer-encoding": None,
    "cookie": None,
}


async def test_a_later_attempt_differs_only_in_number_time_and_signatures(
    sender: Sender, receiver: Receiver, clock: HandClock
) -> None:
    await sent(sender, receiver)
    clock.forward(seconds=400)
    await sender.attempt(replace(MESSAGE, url=receiver.url, number=4))

    first, second = receiver.received
    changed = {name for name in first.headers if first.headers[name] != second.headers[name]}
    assert first.body == second.body
    assert changed == {
        *("x-webhook-attempt", "webhook-timestamp", "webhook-signature", "x-webhook-signature")
    }
    verify(second.headers, second.body, MESSAGE.secrets, now=clock() / 1000)
    with pytest.raises(NotVerified):
        verify(first.headers, first.body, MESSAGE.secrets, now=clock() / 1000)


@pytest.mark.parametrize(
    ("misbehaviour", "reason"),
    [
        ("header-flood", "E_MALFORMED"),
        ("long-header", "E_MALFORMED"),
        ("body-after-204", "E_MALFORMED"),
        ("no-http", "E_MALFORMED"),
        ("reset", "E_RESET"),
        ("closed", "E_RESET"),
    ],
)
async def test_a_receiver_without_an_answer_is_a_failure_with_its_reason(
    sender: Sender, receiver: Receiver, misbehaviour: Misbehaviour, reason: Reason
) -> None:
    outcome = await sent(sender, receiver, Reply(misbehaviour=misbehaviour))

    assert (outcome.reason, outcome.status, outcome.delivered) == (reason, 0, False)
    assert len(receiver.received) == 1


@pytest.mark.parametrize("misbehaviour", ["silent", "dripping-headers", "endless-interim"])
async def test_a_receiver_without_an_answer_takes_no_more_than_its_time(
    hasty: Sender, receiver: Receiver, misbehaviour: Misbehaviour
) -> None:
    begun = time.monotonic()

    outcome = await sent(hasty, receiver, Reply(misbehaviour=misbehaviour))

    assert (outcome.reason, outcome.status, outcome.delivered) == ("E_TIMEOUT", 0, False)
    assert time.monotonic() - begun < MAX_SECONDS
    assert len(receiver.received) <= 1  # none if the time was up before


@pytest.mark.parametrize("misbehaviour", ["dripping-body", "endless-body"])
async def test_what_the_body_of_an_answer_does_changes_nothing(
    calm: Sender, receiver: Receiver, misbehaviour: Misbehaviour
) -> None:
    begun = time.monotonic()

    outcome = await sent(calm, receiver, Reply(misbehaviour=misbehaviour))

    assert (outcome.reason, outcome.status, outcome.delivered) == (None, 200, True)
    assert 0 < len(outcome.answer) <= 4096
    assert time.monotonic() - begun < CALM.timeout_seconds + 20


async def test_an_endless_body_is_not_read_until_the_time_is_up(
    sender: Sender, receiver: Receiver
) -> None:
    outcome = await sent(sender, receiver, Reply(misbehaviour="endless-body"))

    assert outcome.duration < 1000 * SETTINGS.timeout_seconds
    assert len(outcome.answer) == 4096


async def test_a_receiver_that_answers_late_is_not_waited_for(
    hasty: Sender, receiver: Receiver
) -> None:
    outcome = await sent(hasty, receiver, Reply(delay=600.0))

    assert outcome.reason == "E_TIMEOUT"
    assert 900 * TOTAL_SECONDS < outcome.duration < 1000 * MAX_SECONDS


async def test_a_redirect_is_an_answer_and_is_not_followed(
    sender: Sender, receiver: Receiver
) -> None:
    with Receiver() as elsewhere:
        outcome = await sent(
            sender, receiver, Reply(status=307, headers={"Location": elsewhere.url})
        )

        assert (outcome.status, outcome.delivered) == (307, False)
        assert elsewhere.received == []


@pytest.mark.parametrize(
    ("headers", "wish", "retry_after"),
    [
        ({"Retry-After": "120"}, None, 120.0),
        ({"Retry-After": "Wed, 18 Nov 2026 13:08:00 GMT"}, None, 7280.0),
        ({"Retry-After": "Wed, 18 Nov 2020 13:08:00 GMT"}, None, 0.0),
        ({"Retry-After": "soon"}, None, None),
        ({"Retry-After": "-1"}, None, None),
        ({"Retry-After": "9" * 400}, None, None),
        ({"Webhook-Delivery": "Disable"}, "disable", None),
        ({"webhook-delivery": "abort-message"}, "abort-message", None),
        ({"webhook-delivery": "else"}, None, None),
    ],
)
async def test_what_a_receiver_asks_for_is_in_the_outcome(
    sender: Sender,
    receiver: Receiver,
    headers: dict[str, str],
    wish: str | None,
    retry_after: float | None,
) -> None:
    outcome = await sent(sender, receiver, Reply(status=503, headers=headers))

    assert (outcome.status, outcome.wish, outcome.retry_after) == (503, wish, retry_after)


async def test_a_token_that_comes_back_is_not_kept(sender: Sender, receiver: Receiver) -> None:
    echo = b"x" * 4090 + b"the-token"

    outcome = await sent(sender, receiver, Reply(status=400, body=echo))

    assert outcome.answer == b"x" * 4090 + b"[token"


async def test_an_answer_is_not_decompressed(sender: Sender, receiver: Receiver) -> None:
    reply = Reply(status=200, headers={"Content-Encoding": "gzip"}, body=b"no gzip at all")

    outcome = await sent(sender, receiver, reply)

    assert outcome.answer == b"no gzip at all"


async def test_cookies_are_not_sent_back(sender: Sender, receiver: Receiver) -> None:
    await sent(sender, receiver, Reply(headers={"Set-Cookie": "a=b; Path=/"}))
    await sent(sender, receiver)

    assert "cookie" not in receiver.received[1].headers


async def test_proxies_of_the_environment_are_not_used(
    sender: Sender, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    assert (await sent(sender, receiver)).delivered


async def test_a_port_without_a_listener_is_a_failed_connection(sender: Sender) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]

        outcome = await sender.attempt(replace(MESSAGE, url=f"http://127.0.0.1:{port}/"))

    assert (outcome.reason, outcome.dialled) == ("E_CONNECT", ("127.0.0.1",))


async def test_a_connection_that_is_never_accepted_times_out() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        clients = [socket.socket() for _ in range(4)]
        for item in clients:
            item.settimeout(0)
            item.connect_ex(("127.0.0.1", port))

        async with Sender(IMPATIENT, clock=HandClock()) as sender:
            outcome = await sender.attempt(replace(MESSAGE, url=f"http://127.0.0.1:{port}/"))
        for item in clients:
            item.close()

    assert outcome.reason == "E_TIMEOUT"
    assert outcome.duration < 20_000


async def test_a_name_that_does_not_exist_has_its_reason(sender: Sender) -> None:
    outcome = await sender.attempt(replace(MESSAGE, url="https://nowhere.invalid/"))

    assert (outcome.reason, outcome.dialled) == ("E_DNS", ())


async def test_a_secret_that_cannot_sign_is_no_fault_of_the_receiver(sender: Sender) -> None:
    with pytest.raises(BadSecret):
        await sender.attempt(replace(MESSAGE, url="https://a.example/", secrets=("whsec_",)))


# Connections


KEPT = Reply(keep_open=True)


@pytest.fixture
def kept_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep connections longer than a slow machine takes between two messages."""
    monkeypatch.setattr(http_client, "_KEPT_SECONDS", 60.0)


async def ports_of(sender: Sender, receiver: Receiver, *endpoints: str) -> list[int]:
    """Send a message for each endpoint, one after the other; return the local ports."""
    receiver.answer(KEPT)
    for endpoint in endpoints:
        outcome = await sender.attempt(replace(MESSAGE, url=receiver.url, endpoint=endpoint))
        assert outcome.delivered
    return [received.port for received in receiver.received]


@pytest.mark.usefixtures("kept_for_long")
async def test_messages_of_one_endpoint_share_a_connection(
    sender: Sender, receiver: Receiver
) -> None:
    assert len(set(await ports_of(sender, receiver, "a", "a", "a"))) == 1


@pytest.mark.usefixtures("kept_for_long")
async def test_no_two_endpoints_share_a_connection_although_their_url_is_one(
    sender: Sender, receiver: Receiver
) -> None:
    first, second, third = await ports_of(sender, receiver, "a", "b", "a")

    assert first == third != second


async def test_a_message_of_no_endpoint_has_a_connection_of_its_own(
    sender: Sender, receiver: Receiver
) -> None:
    assert len(set(await ports_of(sender, receiver, "", "", ""))) == 3


@pytest.mark.usefixtures("kept_for_long")
async def test_the_log_names_no_address_where_a_connection_was_open_already(
    sender: Sender, receiver: Receiver
) -> None:
    receiver.answer(KEPT)
    message = replace(MESSAGE, url=receiver.url, endpoint="a")

    dialled = [(await sender.attempt(message)).dialled for _ in range(2)]

    assert dialled == [("127.0.0.1",), ()]


@pytest.mark.usefixtures("kept_for_long")
async def test_a_kept_connection_that_breaks_is_a_failure_and_nothing_is_sent_twice(
    sender: Sender, receiver: Receiver
) -> None:
    receiver.answer(KEPT, Reply(misbehaviour="reset"), KEPT)
    message = replace(MESSAGE, url=receiver.url, endpoint="a")

    reasons = [(await sender.attempt(message)).reason for _ in range(3)]

    assert reasons == [None, "E_RESET", None]
    assert len(receiver.received) == 3


@pytest.mark.usefixtures("kept_for_long")
async def test_what_a_receiver_says_unasked_answers_nothing(sender: Sender) -> None:
    answers = [b"204 No Content", b"500 Internal Server Error"]
    ended: list[bytes] = []
    said = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(BODY)
        answer = answers.pop(0)
        writer.write(b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % answer)
        await asyncio.sleep(0.05)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        said.set()
        await asyncio.sleep(0.3)
        writer.close()
        ended.append(answer)

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    message = replace(MESSAGE, url=f"http://127.0.0.1:{port}/", endpoint="a")

    first = await sender.attempt(message)
    await said.wait()
    await asyncio.sleep(0.2)  # in which the loop reads it
    second = await sender.attempt(message)
    server.close()
    await until(lambda: len(ended) == 2)

    assert (first.status, second.status) == (204, 500)


async def test_a_kept_connection_waits_for_a_second_only(
    sender: Sender, receiver: Receiver
) -> None:
    await ports_of(sender, receiver, "a")
    await asyncio.sleep(1.1)

    first, second = await ports_of(sender, receiver, "a")

    assert first != second


async def test_a_name_is_looked_up_once_for_all_that_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searches: list[str] = []
    answer = threading.Event()

    def look_up(host: str, *_more: Any) -> list[AddrInfoType]:
        searches.append(host)
        answer.wait(60)
        raise socket.gaierror("unknown")

    async with Sender(SETTINGS, clock=HandClock(), look_up=look_up) as sender:
        messages = [
            replace(MESSAGE, url="https://slow.example/", endpoint=character)
            for character in "abcd"
        ]
        attempts = [asyncio.create_task(sender.attempt(message)) for message in messages]
        resolve, waiting = sender._lookup.resolve, list[Name]()

        async def counted(name: Name) -> Sequence[AddrInfoType]:
            waiting.append(name)
            return await resolve(name)

        monkeypatch.setattr(sender._lookup, "resolve", counted)
        await until(lambda: searches and len(waiting) == 4)
        answer.set()
        reasons = {(await attempt).reason for attempt in attempts}

    assert reasons == {"E_DNS"}
    assert searches == ["slow.example"]


# TLS


async def sent_by_tls(tmp_path: Path, *, name: str, trusted: bool = True) -> Outcome:
    certificate = Certificate.create(tmp_path, name=name)
    tls = certificate.client() if trusted else None
    with Receiver(certificate=certificate) as receiver:
        async with Sender(SETTINGS, clock=HandClock(), tls=tls) as sender:
            outcome = await sent(sender, receiver)
        assert len(receiver.received) == outcome.delivered
    return outcome


async def test_a_receiver_with_a_good_certificate_is_served(tmp_path: Path) -> None:
    assert (await sent_by_tls(tmp_path, name="127.0.0.1")).delivered


async def test_a_certificate_of_another_host_is_refused(tmp_path: Path) -> None:
    outcome = await sent_by_tls(tmp_path, name="hooks.example.org")

    assert outcome.reason == "E_TLS"


async def test_a_certificate_of_no_known_authority_is_refused(tmp_path: Path) -> None:
    outcome = await sent_by_tls(tmp_path, name="127.0.0.1", trusted=False)

    assert outcome.reason == "E_TLS"


async def test_a_receiver_that_does_not_speak_tls_has_its_reason(sender: Sender) -> None:
    async def refuse(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    outcome = await sender.attempt(replace(MESSAGE, url=f"https://127.0.0.1:{port}/"))
    server.close()

    assert outcome.reason == "E_TLS"


# Refused addresses


class Names:
    """A name server with answers chosen by a test, one after the other."""

    def __init__(self) -> None:
        self.answers: list[list[str]] = []

    def __call__(self, host: str, port: int, *rest: Any) -> Sequence[AddrInfoType]:
        if not host.endswith(".test"):
            return socket.getaddrinfo(host, port, *rest)
        addresses = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [
            found for address in addresses for found in socket.getaddrinfo(address, port, *rest)
        ]


@pytest.fixture
def names() -> Names:
    return Names()


@pytest.fixture
async def strict(clock: HandClock, names: Names) -> AsyncIterator[Sender]:
    """Settings without exceptions for special addresses."""
    settings = replace(SETTINGS, allow_networks=[])
    async with Sender(settings, clock=clock, look_up=names) as sender:
        yield sender


INSIDE = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "fd00::1"]


@pytest.mark.parametrize("address", INSIDE)
async def test_a_name_that_leads_inside_is_not_dialled(
    strict: Sender, names: Names, address: str
) -> None:
    names.answers = [[address]]

    outcome = await strict.attempt(replace(MESSAGE, url="https://hooks.test/"))

    assert (outcome.reason, outcome.dialled) == ("E_BLOCKED_ADDRESS", ())


@pytest.mark.parametrize("address", INSIDE)
async def test_an_address_in_the_url_is_refused_too(strict: Sender, address: str) -> None:
    host = f"[{address}]" if ":" in address else address

    outcome = await strict.attempt(replace(MESSAGE, url=f"https://{host}/"))

    assert (outcome.reason, outcome.dialled) == ("E_BLOCKED_ADDRESS", ())


async def test_open_and_closed_ports_of_refused_addresses_look_the_same(
    strict: Sender, names: Names, receiver: Receiver
) -> None:
    names.answers = [["127.0.0.1"]]

    outcomes = [
        await strict.attempt(replace(MESSAGE, url=f"https://hooks.test:{port}/"))
        for port in (receiver.port, 443)
    ]

    assert {outcome.reason for outcome in outcomes} == {"E_BLOCKED_ADDRESS"}
    assert receiver.received == []


async def test_a_name_that_leads_elsewhere_after_registration_is_refused(
    strict: Sender, names: Names
) -> None:
    names.answers = [["93.184.215.14"], ["127.0.0.1"]]

    target = await strict.target("https://hooks.test/", tenant=TENANT)
    outcome = await strict.attempt(replace(MESSAGE, url=target.url))

    assert outcome.reason == "E_BLOCKED_ADDRESS"


async def test_a_name_that_leads_to_refused_addresses_only_is_reported(
    clock: HandClock, names: Names
) -> None:
    settings, reported = replace(SETTINGS, allow_networks=[]), list[str]()
    names.answers = [["127.0.0.1"]]

    async with Sender(
        settings, clock=clock, look_up=names, blocked=lambda: reported.append("blocked")
    ) as sender:
        with pytest.raises(InvalidContent):
            await sender.target("https://hooks.test/", tenant=TENANT)
        await sender.attempt(replace(MESSAGE, url="https://hooks.test/"))
        names.answers = [[]]
        with pytest.raises(InvalidContent):
            await sender.target("https://hooks.test/", tenant=TENANT)

    assert reported == ["blocked", "blocked"]


async def test_refused_addresses_are_skipped(names: Names, receiver: Receiver) -> None:
    names.answers = [["10.0.0.1", "127.0.0.1"]]
    delivery = replace(MESSAGE, url=f"http://hooks.test:{receiver.port}/")

    async with Sender(SETTINGS, clock=HandClock(), look_up=names) as sender:
        outcome = await sender.attempt(delivery)

    assert (outcome.delivered, outcome.dialled) == (True, ("127.0.0.1",))


# Addresses that only an entry permits


def a_sender(names: Names, *entries: str) -> Sender:
    settings = replace(SETTINGS, allow_networks=[*entries])
    return Sender(settings, clock=HandClock(), look_up=names)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("127.0.0.1 port={port} tenant={tenant}", None),
        ("127.0.0.1 port={port} tenant={another} tenant={tenant}", None),
        ("127.0.0.1 port={port} tenant={another}", "E_BLOCKED_ADDRESS"),
        ("127.0.0.1 port=1 tenant={tenant}", "E_BLOCKED_ADDRESS"),
    ],
)
@pytest.mark.parametrize("host", ["127.0.0.1", "hooks.test"])
async def test_an_entry_is_for_its_tenants_and_ports_whatever_was_registered(
    host: str, entry: str, reason: Reason | None, names: Names, receiver: Receiver
) -> None:
    names.answers = [["127.0.0.1"]]
    message = replace(MESSAGE, url=f"http://{host}:{receiver.port}/")
    entry = entry.format(port=receiver.port, tenant=TENANT, another=ANOTHER)

    async with a_sender(names, entry) as sender:
        outcome = await sender.attempt(message)

    assert (outcome.reason, bool(receiver.received)) == (reason, reason is None)


async def test_the_connection_of_a_tenant_is_not_that_of_another(
    names: Names, receiver: Receiver
) -> None:
    receiver.answer(Reply(keep_open=True))
    entry = f"127.0.0.1 port={receiver.port} tenant={TENANT}"

    async with a_sender(names, entry) as sender:
        message = replace(MESSAGE, url=receiver.url, endpoint="one")
        first = await sender.attempt(message)
        other = await sender.attempt(replace(message, tenant=ANOTHER, endpoint="two"))

    assert (first.status, other.reason) == (204, "E_BLOCKED_ADDRESS")


async def test_a_host_is_registered_for_the_tenants_of_its_entry(
    names: Names, receiver: Receiver
) -> None:
    names.answers = [["127.0.0.1"]]
    url = f"http://hooks.test:{receiver.port}/"

    async with a_sender(names, f"127.0.0.1 port={receiver.port} tenant={TENANT}") as sender:
        assert (await sender.target(url, tenant=TENANT)).url == url
        with pytest.raises(InvalidContent):
            await sender.target(url, tenant=ANOTHER)


async def test_a_connection_that_is_kept_is_as_private_as_when_it_was_opened(
    sender: Sender, receiver: Receiver
) -> None:
    receiver.answer(Reply(keep_open=True), Reply(keep_open=True), Reply(misbehaviour="reset"))
    message = replace(MESSAGE, url=receiver.url, endpoint="one")

    outcomes = [await sender.attempt(message) for _ in range(3)]

    assert len({received.port for received in receiver.received}) == 1
    assert [outcome.dialled for outcome in outcomes] == [("127.0.0.1",), (), ()]
    assert [outcome.private for outcome in outcomes] == [True, True, True]
    assert outcomes[2].reason == "E_RESET"


@pytest.mark.parametrize("misbehaviour", ["silent", "no-http", "reset", "closed"])
async def test_a_failure_at_a_private_address_is_marked(
    misbehaviour: Misbehaviour, calm: Sender, receiver: Receiver
) -> None:
    outcome = await sent(calm, receiver, Reply(misbehaviour=misbehaviour))

    assert (outcome.private, outcome.status) == (True, 0)


async def test_a_refused_connection_and_failing_tls_at_a_private_address_are_marked(
    sender: Sender, tmp_path: Path
) -> None:
    refused = await sender.attempt(replace(MESSAGE, url="http://127.0.0.1:9/"))
    of_another_host = await sent_by_tls(tmp_path, name="hooks.example.org")

    assert (refused.reason, refused.private) == ("E_CONNECT", True)
    assert (of_another_host.reason, of_another_host.private) == ("E_TLS", True)


async def test_a_name_that_is_not_found_or_blocked_is_no_private_failure(
    strict: Sender, names: Names
) -> None:
    names.answers = [["127.0.0.1"]]

    for url in ("https://hooks.test/", "https://example.invalid/"):
        assert not (await strict.attempt(replace(MESSAGE, url=url))).private


async def test_where_a_private_address_has_failed_no_public_one_is_dialled(names: Names) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    names.answers = [["127.0.0.1", "192.88.98.1"]]
    settings = replace(SETTINGS, ports=[port])

    async with Sender(settings, clock=HandClock(), look_up=names) as sender:
        outcome = await sender.attempt(replace(MESSAGE, url=f"https://hooks.test:{port}/"))

    assert (outcome.reason, outcome.dialled) == ("E_CONNECT", ("127.0.0.1",))
    assert outcome.private


@pytest.mark.parametrize("first", ["127.0.0.1", "192.88.98.1"])
def test_an_attempt_dials_private_addresses_or_public_ones_not_both(first: str) -> None:
    rules = TargetRules(allow_networks=["127.0.0.0/8"])
    target = rules.target("https://hooks.test/", tenant=TENANT)
    exchange = _Exchange(rules)
    exchange.line = _Line(target, URL(target.url), session=None)  # type: ignore[arg-type]

    def dials(address: str) -> bool:
        (found,) = socket.getaddrinfo(address, 443, type=socket.SOCK_STREAM)
        try:
            exchange.open_socket(found).close()
        except OSError:
            return False
        return True

    assert dials(first)
    assert dials("127.0.0.2") == dials("127.0.0.1") == (first == "127.0.0.1")
    assert dials("192.88.98.1") == (first == "192.88.98.1")
    assert exchange.private == exchange.line.private == (first == "127.0.0.1")


@pytest.mark.parametrize("answers", [["127.0.0.1"], []])
async def test_a_host_without_an_address_that_may_be_called_is_not_registered(
    strict: Sender, names: Names, answers: list[str]
) -> None:
    names.answers = [answers]

    with pytest.raises(InvalidContent) as refusal:
        await strict.target("https://hooks.test/", tenant=TENANT)

    (issue,) = refusal.value.issues
    assert issue.diagnostics == "has a host that leads to no address to which webhooks are sent"
    assert issue.expression == "url"


async def test_a_host_that_leads_to_somewhere_public_is_registered(
    strict: Sender, names: Names
) -> None:
    names.answers = [["10.0.0.1", "93.184.215.14"]]

    target = await strict.target("https://Hooks.test", tenant=TENANT)

    assert target.url == "https://hooks.test/"


def looking_up(names: Names, answer: threading.Event) -> LookUp:
    """Return a lookup that does not answer for names in ``.hangs`` until the event is set."""

    def look_up(host: str, *more: Any) -> Sequence[AddrInfoType]:
        if host.endswith(".hangs"):
            answer.wait(60)
            raise socket.gaierror("no answer")
        return names(host, *more)

    return look_up


async def test_names_that_time_out_again_delay_no_others(names: Names) -> None:
    names.answers = [["127.0.0.1"]]
    answer = threading.Event()
    look_up = looking_up(names, answer)

    async def reasons_of_all(sender: Sender) -> set[str | None]:
        messages = [replace(MESSAGE, url=f"https://{number}.hangs/") for number in range(40)]
        outcomes = await asyncio.gather(*map(sender.attempt, messages))
        return {item.reason for item in outcomes}

    settings = replace(IMPATIENT, connect_seconds=1.0)
    async with Sender(settings, clock=HandClock(), look_up=look_up) as sender:
        client = await sender._open()
        assert await reasons_of_all(sender) == {"E_TIMEOUT"}
        answer.set()
        client._connect_seconds = PATIENT_SECONDS
        assert await reasons_of_all(sender) == {"E_DNS"}
        answer.clear()
        client._connect_seconds = 1.0
        hanging = asyncio.create_task(reasons_of_all(sender))
        await asyncio.sleep(0.05)
        client._connect_seconds = PATIENT_SECONDS
        outcome = await sender.attempt(replace(MESSAGE, url="https://fine.test:9/"))
        assert outcome.reason == "E_CONNECT"
        assert await hanging == {"E_TIMEOUT"}
        answer.set()


async def test_names_that_time_out_during_registration_delay_no_deliveries(
    names: Names,
) -> None:
    names.answers = [["127.0.0.1"]]
    answer = threading.Event()
    look_up = looking_up(names, answer)

    async def registered(sender: Sender, number: int) -> None:
        with pytest.raises(InvalidContent):
            await sender.target(f"https://{number}.hangs/", tenant=TENANT)

    settings = replace(IMPATIENT, connect_seconds=1.0)
    async with Sender(settings, clock=HandClock(), look_up=look_up) as sender:
        client = await sender._open()
        client._connect_seconds = PATIENT_SECONDS
        registering = asyncio.gather(*(registered(sender, number) for number in range(40)))
        await asyncio.sleep(0.05)
        outcome = await sender.attempt(replace(MESSAGE, url="https://fine.test:9/"))
        await registering
        answer.set()

    assert outcome.reason == "E_CONNECT"


async def test_a_name_server_that_never_answers_is_not_waited_for() -> None:
    given_up = threading.Event()

    def wait(*_arguments: Any) -> list[AddrInfoType]:
        given_up.wait()
        return []

    async with Sender(IMPATIENT, clock=HandClock(), look_up=wait) as sender:
        outcome = await sender.attempt(replace(MESSAGE, url="https://slow.test/"))
        given_up.set()

    assert outcome.reason == "E_TIMEOUT"
    assert outcome.duration < 20_000
