"""One attempt against real receivers, good and hostile."""

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

from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.errors import InvalidContent
from fhirpub.testing.certificate import Certificate
from fhirpub.testing.clock import HandClock
from fhirpub.testing.receiver import Misbehaviour, Receiver, Reply
from fhirpub.webhooks.policy.outcome import Outcome, Reason
from fhirpub.webhooks.transport.http_client import Sender
from fhirpub.webhooks.transport.message import Message
from fhirpub.webhooks.transport.name_lookup import LookUp
from fhirpub.webhooks.transport.signing import BadSecret, NotVerified, new_secret, verify

TOTAL_SECONDS = 1.2
MAX_SECONDS = TOTAL_SECONDS + 3
BODY = b'{"event_id":"evt_1"}'
MESSAGE = Message(
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
    connect_seconds=TOTAL_SECONDS / 2,
    timeout_seconds=TOTAL_SECONDS,
    service_name="lab",
)

IMPATIENT = replace(SETTINGS, connect_seconds=0.2, timeout_seconds=30.0)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def sender(clock: HandClock) -> AsyncIterator[Sender]:
    async with Sender(SETTINGS, clock=clock) as sender:
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
    assert outcome.dialled == ("127.0.0.1",)


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
        ("silent", "E_TIMEOUT"),
        ("dripping-headers", "E_TIMEOUT"),
        ("endless-interim", "E_TIMEOUT"),
        ("header-flood", "E_MALFORMED"),
        ("long-header", "E_MALFORMED"),
        ("body-after-204", "E_MALFORMED"),
        ("no-http", "E_MALFORMED"),
        ("reset", "E_RESET"),
        ("closed", "E_RESET"),
    ],
)
async def test_a_receiver_without_an_answer_ends_in_time_with_its_reason(
    sender: Sender, receiver: Receiver, misbehaviour: Misbehaviour, reason: Reason
) -> None:
    begun = time.monotonic()

    outcome = await sent(sender, receiver, Reply(misbehaviour=misbehaviour))

    assert (outcome.reason, outcome.status, outcome.delivered) == (reason, 0, False)
    assert time.monotonic() - begun < MAX_SECONDS
    assert len(receiver.received) == 1


@pytest.mark.parametrize("misbehaviour", ["dripping-body", "endless-body"])
async def test_what_the_body_of_an_answer_does_changes_nothing(
    sender: Sender, receiver: Receiver, misbehaviour: Misbehaviour
) -> None:
    begun = time.monotonic()

    outcome = await sent(sender, receiver, Reply(misbehaviour=misbehaviour))

    assert (outcome.reason, outcome.status, outcome.delivered) == (None, 200, True)
    assert 0 < len(outcome.answer) <= 4096
    assert time.monotonic() - begun < MAX_SECONDS


async def test_an_endless_body_is_not_read_until_the_time_is_up(
    sender: Sender, receiver: Receiver
) -> None:
    outcome = await sent(sender, receiver, Reply(misbehaviour="endless-body"))

    assert outcome.duration < 1000 * TOTAL_SECONDS
    assert len(outcome.answer) == 4096


async def test_a_receiver_that_answers_late_is_not_waited_for(
    sender: Sender, receiver: Receiver
) -> None:
    outcome = await sent(sender, receiver, Reply(delay=TOTAL_SECONDS * 2))

    assert outcome.reason == "E_TIMEOUT"
    assert 900 * TOTAL_SECONDS < outcome.duration < 1000 * 2 * TOTAL_SECONDS


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
        taken = [socket.socket() for _ in range(4)]
        for item in taken:
            item.settimeout(0)
            item.connect_ex(("127.0.0.1", port))

        async with Sender(IMPATIENT, clock=HandClock()) as sender:
            outcome = await sender.attempt(replace(MESSAGE, url=f"http://127.0.0.1:{port}/"))
        for item in taken:
            item.close()

    assert outcome.reason == "E_TIMEOUT"
    assert outcome.duration < 5000


async def test_a_name_that_does_not_exist_has_its_reason(sender: Sender) -> None:
    outcome = await sender.attempt(replace(MESSAGE, url="https://nowhere.invalid/"))

    assert (outcome.reason, outcome.dialled) == ("E_DNS", ())


async def test_a_secret_that_cannot_sign_is_no_fault_of_the_receiver(sender: Sender) -> None:
    with pytest.raises(BadSecret):
        await sender.attempt(replace(MESSAGE, url="https://a.example/", secrets=("whsec_",)))


# Connections


KEPT = Reply(keep_open=True)


async def ports_of(sender: Sender, receiver: Receiver, *endpoints: str) -> list[int]:
    """Send a message for each endpoint, one after the other; return by which ports they came."""
    receiver.answer(KEPT)
    for endpoint in endpoints:
        outcome = await sender.attempt(replace(MESSAGE, url=receiver.url, endpoint=endpoint))
        assert outcome.delivered
    return [received.port for received in receiver.received]


async def test_messages_of_one_endpoint_share_a_connection(
    sender: Sender, receiver: Receiver
) -> None:
    assert len(set(await ports_of(sender, receiver, "a", "a", "a"))) == 1


async def test_no_two_endpoints_share_a_connection_although_their_url_is_one(
    sender: Sender, receiver: Receiver
) -> None:
    first, second, third = await ports_of(sender, receiver, "a", "b", "a")

    assert first == third != second


async def test_a_message_of_no_endpoint_has_a_connection_of_its_own(
    sender: Sender, receiver: Receiver
) -> None:
    assert len(set(await ports_of(sender, receiver, "", "", ""))) == 3


async def test_the_log_names_no_address_where_a_connection_was_open_already(
    sender: Sender, receiver: Receiver
) -> None:
    receiver.answer(KEPT)
    message = replace(MESSAGE, url=receiver.url, endpoint="a")

    dialled = [(await sender.attempt(message)).dialled for _ in range(2)]

    assert dialled == [("127.0.0.1",), ()]


async def test_a_kept_connection_that_breaks_is_a_failure_and_nothing_is_sent_twice(
    sender: Sender, receiver: Receiver
) -> None:
    receiver.answer(KEPT, Reply(misbehaviour="reset"), KEPT)
    message = replace(MESSAGE, url=receiver.url, endpoint="a")

    reasons = [(await sender.attempt(message)).reason for _ in range(3)]

    assert reasons == [None, "E_RESET", None]
    assert len(receiver.received) == 3


async def test_what_a_receiver_says_unasked_answers_nothing(sender: Sender) -> None:
    answers = [b"204 No Content", b"500 Internal Server Error"]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(BODY)
        writer.write(b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % answers.pop(0))
        await asyncio.sleep(0.05)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await asyncio.sleep(0.3)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    message = replace(MESSAGE, url=f"http://127.0.0.1:{port}/", endpoint="a")

    first = await sender.attempt(message)
    await asyncio.sleep(0.2)
    second = await sender.attempt(message)
    server.close()
    await asyncio.sleep(0.5)  # until both connections are closed

    assert (first.status, second.status) == (204, 500)


async def test_a_kept_connection_waits_for_a_second_only(
    sender: Sender, receiver: Receiver
) -> None:
    await ports_of(sender, receiver, "a")
    await asyncio.sleep(1.1)

    first, second = await ports_of(sender, receiver, "a")

    assert first != second


async def test_a_name_is_looked_up_once_for_all_that_wait_for_it() -> None:
    searches: list[str] = []
    answer = threading.Event()

    def look_up(host: str, *_more: Any) -> list[AddrInfoType]:
        searches.append(host)
        answer.wait(5)
        raise socket.gaierror("unknown")

    async with Sender(SETTINGS, clock=HandClock(), look_up=look_up) as sender:
        messages = [
            replace(MESSAGE, url="https://slow.example/", endpoint=character)
            for character in "abcd"
        ]
        attempts = [asyncio.create_task(sender.attempt(message)) for message in messages]
        await asyncio.sleep(0.05)
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


# Addresses that are refused


class Names:
    """A name server whose answers a test chooses, one after the other."""

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
    """Nothing special is open to it."""
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

    target = await strict.target("https://hooks.test/")
    outcome = await strict.attempt(replace(MESSAGE, url=target.url))

    assert outcome.reason == "E_BLOCKED_ADDRESS"


async def test_a_name_that_leads_to_refused_addresses_only_is_reported(
    clock: HandClock, names: Names
) -> None:
    settings, told = replace(SETTINGS, allow_networks=[]), list[str]()
    names.answers = [["127.0.0.1"]]

    async with Sender(
        settings, clock=clock, look_up=names, blocked=lambda: told.append("blocked")
    ) as sender:
        with pytest.raises(InvalidContent):
            await sender.target("https://hooks.test/")
        await sender.attempt(replace(MESSAGE, url="https://hooks.test/"))
        names.answers = [[]]
        with pytest.raises(InvalidContent):
            await sender.target("https://hooks.test/")

    assert told == ["blocked", "blocked"]


async def test_refused_addresses_are_skipped(names: Names, receiver: Receiver) -> None:
    names.answers = [["10.0.0.1", "127.0.0.1"]]
    delivery = replace(MESSAGE, url=f"http://hooks.test:{receiver.port}/")

    async with Sender(SETTINGS, clock=HandClock(), look_up=names) as sender:
        outcome = await sender.attempt(delivery)

    assert (outcome.delivered, outcome.dialled) == (True, ("127.0.0.1",))


@pytest.mark.parametrize("answers", [["127.0.0.1"], []])
async def test_a_host_without_an_address_that_may_be_called_is_not_registered(
    strict: Sender, names: Names, answers: list[str]
) -> None:
    names.answers = [answers]

    with pytest.raises(InvalidContent) as refusal:
        await strict.target("https://hooks.test/")

    (issue,) = refusal.value.issues
    assert issue.diagnostics == "has a host that leads to no address to which webhooks are sent"
    assert issue.expression == "url"


async def test_a_host_that_leads_to_somewhere_public_is_registered(
    strict: Sender, names: Names
) -> None:
    names.answers = [["10.0.0.1", "93.184.215.14"]]

    target = await strict.target("https://Hooks.test")

    assert target.url == "https://hooks.test/"


def looking_up(names: Names, answer: threading.Event) -> LookUp:
    """Return a look-up that gives no answer for names in ``.hangs`` until it may."""

    def look_up(host: str, *more: Any) -> Sequence[AddrInfoType]:
        if host.endswith(".hangs"):
            answer.wait(5)
            raise socket.gaierror("no answer")
        return names(host, *more)

    return look_up


async def test_names_that_time_out_again_delay_no_others(names: Names) -> None:
    names.answers = [["127.0.0.1"]]
    answer = threading.Event()
    look_up = looking_up(names, answer)

    async def all_hang(sender: Sender) -> set[str | None]:
        messages = [replace(MESSAGE, url=f"https://{number}.hangs/") for number in range(40)]
        outcomes = await asyncio.gather(*map(sender.attempt, messages))
        return {item.reason for item in outcomes}

    settings = replace(IMPATIENT, connect_seconds=1.0)
    async with Sender(settings, clock=HandClock(), look_up=look_up) as sender:
        assert await all_hang(sender) == {"E_TIMEOUT"}
        answer.set()
        assert await all_hang(sender) == {"E_DNS"}
        answer.clear()
        hanging = asyncio.create_task(all_hang(sender))
        await asyncio.sleep(0.05)
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
            await sender.target(f"https://{number}.hangs/")

    settings = replace(IMPATIENT, connect_seconds=1.0)
    async with Sender(settings, clock=HandClock(), look_up=look_up) as sender:
        registering = asyncio.gather(*(registered(sender, number) for number in range(40)))
        await asyncio.sleep(0.05)
        outcome = await sender.attempt(replace(MESSAGE, url="https://fine.test:9/"))
        await registering
        answer.set()

    assert outcome.reason == "E_CONNECT"


async def test_a_name_server_that_never_answers_is_not_waited_for() -> None:
    given_up = threading.Event()

    def hang(*_asked: Any) -> list[AddrInfoType]:
        given_up.wait()
        return []

    async with Sender(IMPATIENT, clock=HandClock(), look_up=hang) as sender:
        outcome = await sender.attempt(replace(MESSAGE, url="https://slow.test/"))
        given_up.set()

    assert outcome.reason == "E_TIMEOUT"
    assert outcome.duration < 5000
