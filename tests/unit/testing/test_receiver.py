"""The published receiver follows its replies."""

from __future__ import annotations

import asyncio
import http.client
import socket
import ssl
from contextlib import suppress
from pathlib import Path

import pytest

from fhirpub.testing.certificate import Certificate
from fhirpub.testing.receiver import Receiver, Reply, close_server
from tests.waiting import until


def post(receiver: Receiver, body: bytes = b"{}") -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", receiver.port, timeout=20)
    connection.request("POST", "/webhook", body, {"X-Number": "1"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer


def test_it_keeps_what_came() -> None:
    with Receiver() as receiver:
        post(receiver, b'{"a":1}')

        (received,) = receiver.wait(1)

    assert (received.method, received.path, received.json) == ("POST", "/webhook", {"a": 1})
    assert received.headers["x-number"] == "1"


def test_it_answers_in_turn_and_then_always_like_the_last() -> None:
    with Receiver() as receiver:
        receiver.answer(Reply(status=503, headers={"Retry-After": "1"}), Reply(status=200))

        first, second, third = (post(receiver) for _ in range(3))

    assert (first.status, first.headers["Retry-After"]) == (503, "1")
    assert (second.status, third.status) == (200, 200)


def test_it_does_not_wait_for_ever() -> None:
    with Receiver() as receiver, pytest.raises(TimeoutError, match="0 of 1"):
        receiver.wait(1, seconds=0.05)


def test_it_stops_while_a_request_is_unanswered() -> None:
    with Receiver() as receiver:
        receiver.answer(Reply(misbehaviour="silent"))
        connection = http.client.HTTPConnection("127.0.0.1", receiver.port, timeout=20)
        connection.request("POST", "/webhook", b"{}")
        receiver.wait(1)

    with pytest.raises(OSError):
        connection.getresponse()
    connection.close()


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_its_certificate_is_good_for_one_name(tmp_path: Path, name: str) -> None:
    certificate = Certificate.create(tmp_path, name=name)
    with Receiver(certificate=certificate) as receiver:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", receiver.port, timeout=5, context=certificate.client()
        )
        if name == "127.0.0.1":
            connection.request("POST", "/webhook", b"{}")
            assert connection.getresponse().status == 204
        else:
            with pytest.raises(ssl.SSLCertVerificationError):
                connection.request("POST", "/webhook", b"{}")
        connection.close()


def test_its_url_is_one_of_tls_if_it_has_a_certificate(tmp_path: Path) -> None:
    certificate = Certificate.create(tmp_path, name="127.0.0.1")

    with Receiver() as plain, Receiver(certificate=certificate) as other:
        assert plain.url == f"http://127.0.0.1:{plain.port}/webhook"
        assert other.url == f"https://127.0.0.1:{other.port}/webhook"


@pytest.mark.parametrize("turns", range(6))
async def test_the_end_leaves_no_connection_open_that_is_being_accepted(turns: int) -> None:
    accepted: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: accepted.append(writer), "127.0.0.1", 0)
    with socket.create_connection(server.sockets[0].getsockname(), timeout=20) as client:
        for _ in range(turns):
            await asyncio.sleep(0)

        await close_server(server)

        await until(lambda: accepted or turns < 2)  # before, the kernel resets it
        for writer in accepted:
            writer.close()
            await writer.wait_closed()
        with suppress(ConnectionResetError):
            assert client.recv(1) == b""
