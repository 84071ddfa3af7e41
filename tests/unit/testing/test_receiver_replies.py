"""What the published receiver does with each request, as a client on a socket sees it."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from fhirpub.testing.receiver import Misbehaviour, Receiver, Reply

REQUEST = b"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


@pytest.fixture
def connection(receiver: Receiver) -> Iterator[http.client.HTTPConnection]:
    opened = http.client.HTTPConnection("127.0.0.1", receiver.port, timeout=30)
    yield opened
    opened.close()


def post(connection: http.client.HTTPConnection, body: bytes = b"{}") -> tuple[int, bytes]:
    connection.request("POST", "/webhook?a=1", body)
    answer = connection.getresponse()
    return answer.status, answer.read()


def raw(receiver: Receiver) -> bytes:
    """Return all that comes until the connection ends."""
    with socket.create_connection(("127.0.0.1", receiver.port), timeout=30) as opened:
        opened.sendall(REQUEST)
        return b"".join(iter(lambda: opened.recv(65_536), b""))


def begin(receiver: Receiver, length: int) -> bytes:
    """Return the first bytes of what comes."""
    found = b""
    with socket.create_connection(("127.0.0.1", receiver.port), timeout=30) as opened:
        opened.sendall(REQUEST)
        while len(found) < length and (piece := opened.recv(length - len(found))):
            found += piece
    return found


def test_the_last_reply_repeats(
    receiver: Receiver, connection: http.client.HTTPConnection
) -> None:
    receiver.answer(Reply(status=503), Reply(status=200))

    assert [post(connection)[0] for _ in range(4)] == [503, 200, 200, 200]


def test_a_function_chooses_by_the_request_until_replies_are_set_again(
    receiver: Receiver, connection: http.client.HTTPConnection
) -> None:
    receiver.answer_by(lambda received: Reply(status=200, body=received.body * 2))
    assert post(connection, b"ab") == (200, b"abab")

    receiver.answer_by(lambda received: Reply(status=201, body=received.body))
    assert post(connection, b"ab") == (201, b"ab")

    receiver.answer(Reply(status=202))

    assert post(connection, b"ab") == (202, b"")


def test_an_echo_has_the_body_of_its_request(
    receiver: Receiver, connection: http.client.HTTPConnection
) -> None:
    receiver.answer(Reply(status=200, echo=True, body=b"other"))

    assert [post(connection, body) for body in (b"one", b"two")] == [(200, b"one"), (200, b"two")]


def test_a_connection_is_kept_only_if_the_reply_says_so(
    receiver: Receiver, connection: http.client.HTTPConnection
) -> None:
    receiver.answer(Reply(status=200, keep_open=True), Reply(status=200), Reply(status=200))

    for _ in range(3):
        post(connection)

    first, second, third = (received.port for received in receiver.wait(3))
    assert first == second != third


def test_an_empty_body_has_a_length_but_for_204(receiver: Receiver) -> None:
    receiver.answer(Reply(status=200), Reply(status=204))

    assert b"Content-Length: 0\r\n" in raw(receiver)
    assert b"Content-Length" not in raw(receiver)


def test_a_reply_is_delayed(receiver: Receiver, connection: http.client.HTTPConnection) -> None:
    receiver.answer(Reply(status=200, delay=0.05))
    begun = time.monotonic()

    post(connection)

    assert time.monotonic() - begun >= 0.05


def test_a_request_is_recorded_before_its_response(receiver: Receiver) -> None:
    receiver.answer(Reply(misbehaviour="silent"))
    with socket.create_connection(("127.0.0.1", receiver.port), timeout=30) as opened:
        opened.sendall(REQUEST)

        (received,) = receiver.wait(1)

    assert (received.path, received.body) == ("/webhook", b"{}")
    assert received.headers == {"host": "x", "content-length": "2"}


def test_a_request_without_a_body_is_one(
    receiver: Receiver, connection: http.client.HTTPConnection
) -> None:
    connection.request("GET", "/x?a=1")

    assert connection.getresponse().status == 204
    (received,) = receiver.wait(1)
    assert (received.method, received.path, received.body) == ("GET", "/x?a=1", b"")


def test_a_wait_ends_with_the_request_that_was_missing(receiver: Receiver) -> None:
    raw(receiver)

    assert [len(receiver.wait(number)) for number in (0, 1)] == [1, 1]


def test_what_is_no_http_ends_its_connection_alone(receiver: Receiver) -> None:
    with socket.create_connection(("127.0.0.1", receiver.port), timeout=30) as opened:
        opened.sendall(b"EHLO\r\n\r\n")
        with suppress(ConnectionResetError):
            assert opened.recv(100) == b""

    assert raw(receiver).startswith(b"HTTP/1.1 204")
    assert len(receiver.received) == 1


@pytest.mark.parametrize(
    ("misbehaviour", "begins"),
    [
        ("dripping-headers", b"HTTP/1.1 200 OK\r\nX-Drip: 1\r\n"),
        ("dripping-body", b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n."),
        ("endless-body", b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b"." * 200_000),
        ("endless-interim", b"HTTP/1.1 100 Continue\r\n\r\n" * 2),
        ("header-flood", b"HTTP/1.1 200 OK\r\n" + b"X-Flood: 1\r\n" * 20_000),
        ("long-header", b"HTTP/1.1 200 OK\r\nX-Long: " + b"1" * 200_000),
    ],
)
def test_a_hostile_response_begins_as_it_is_named(
    receiver: Receiver, misbehaviour: Misbehaviour, begins: bytes
) -> None:
    receiver.answer(Reply(misbehaviour=misbehaviour))

    assert begin(receiver, len(begins)) == begins


@pytest.mark.parametrize(
    ("misbehaviour", "whole"),
    [
        ("closed", b""),
        ("no-http", b"220 mail.example.org ESMTP\r\n"),
        (
            "body-after-204",
            b"HTTP/1.1 204 No Content\r\nContent-Type: text/plain\r\n\r\nbut yes\r\n\r\n",
        ),
    ],
)
def test_a_response_that_is_none_is_all_that_comes(
    receiver: Receiver, misbehaviour: Misbehaviour, whole: bytes
) -> None:
    receiver.answer(Reply(misbehaviour=misbehaviour))

    assert raw(receiver) == whole


def test_a_reset_connection_is_reset(receiver: Receiver) -> None:
    receiver.answer(Reply(misbehaviour="reset"))

    with pytest.raises(ConnectionResetError):
        raw(receiver)


def test_it_has_ended_when_its_block_ends() -> None:
    with Receiver() as receiver:
        raw(receiver)

    assert not receiver._thread.is_alive()
    with pytest.raises(ConnectionRefusedError):
        raw(receiver)
