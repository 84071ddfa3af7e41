"""Connections that are kept: what is sent and read, and what a service without an answer is."""

from __future__ import annotations

import asyncio
import ssl
import threading
from pathlib import Path
from typing import Any, cast

import pytest
from tornado.httpclient import HTTPClientError

from fhirpub.cli.http_client import Call
from fhirpub.cli.publish.bulk import connections as module
from fhirpub.cli.publish.bulk.connections import Connections, connections
from fhirpub.testing.certificate import Certificate, Misbehaviour
from fhirpub.testing.receiver import Received, Receiver, Reply
from tests.ports import free_port
from tests.waiting import until


def call(url: str, **more: str) -> Call:
    return Call(method="POST", url=url, headers={"X-Name": "é", **more}, body=b"body")


async def test_a_request_is_sent_and_its_answer_is_read(receiver: Receiver) -> None:
    receiver.answer(Reply(status=422, headers={"X-Reason": "why"}, body=b"no"))

    async with connections(1) as opened:
        answer = await opened.send(call(receiver.url))

    (received,) = receiver.received
    assert (received.method, received.body) == ("POST", b"body")
    assert (answer.code, answer.body, answer.headers["X-Reason"]) == (422, b"no", "why")
    assert answer.request.url == receiver.url


async def test_redirects_are_not_followed_and_cookies_not_kept(receiver: Receiver) -> None:
    headers = {"Location": receiver.url, "Set-Cookie": "a=b"}
    receiver.answer(Reply(status=307, headers=headers))

    url = receiver.url.replace("127.0.0.1", "localhost")  # addresses have no cookies anyway

    async with connections(1) as opened:
        codes = [(await opened.send(call(url))).code for _ in range(2)]

    assert codes == [307, 307]
    assert not any("cookie" in map(str.lower, one.headers) for one in receiver.received)


@pytest.mark.parametrize("jobs", [1, 3])
async def test_there_are_at_most_as_many_connections_as_jobs(jobs: int) -> None:
    async with connections(jobs) as opened:
        connector = opened.session.connector

        assert connector is not None
        assert connector.limit == jobs


async def test_a_service_that_is_not_there_is_an_error_of_the_system() -> None:
    async with connections(1) as opened:
        with pytest.raises(ConnectionRefusedError):
            await opened.send(call(f"http://127.0.0.1:{free_port()}"))


@pytest.mark.parametrize(
    ("misbehaviour", "message"),
    [("no-http", "the response is not HTTP"), ("closed", "the connection was closed")],
)
async def test_an_answer_that_is_no_http_or_missing_is_named(
    receiver: Receiver, misbehaviour: Misbehaviour, message: str
) -> None:
    receiver.answer(Reply(misbehaviour=misbehaviour))

    async with connections(1) as opened:
        with pytest.raises(HTTPClientError) as problem:
            await opened.send(call(receiver.url))

    assert (problem.value.code, problem.value.message) == (599, message)


async def test_a_certificate_must_be_trusted(tmp_path: Path) -> None:
    certificate = Certificate.create(tmp_path, name="127.0.0.1")

    with Receiver(certificate=certificate) as receiver:
        async with connections(1) as opened:
            with pytest.raises(ssl.SSLCertVerificationError):
                await opened.send(call(receiver.url))
        async with connections(1, certificate.file) as opened:
            assert (await opened.send(call(receiver.url))).code == 204


@pytest.mark.parametrize(("size", "is_read"), [(100, True), (101, False)])
async def test_an_answer_beyond_the_largest_is_not_read(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, size: int, *, is_read: bool
) -> None:
    monkeypatch.setattr(module, "_LARGEST_ANSWER", 100)
    receiver.answer(Reply(status=200, body=b"x" * size))

    async with connections(1) as opened:
        if is_read:
            assert len((await opened.send(call(receiver.url))).body) == size
        else:
            with pytest.raises(HTTPClientError, match="the response is too large"):
                await opened.send(call(receiver.url))


async def test_an_answer_of_many_parts_is_read_whole(receiver: Receiver) -> None:
    body = bytes(range(256)) * 8_000
    receiver.answer(Reply(status=200, body=body))

    async with connections(1) as opened:
        assert (await opened.send(call(receiver.url))).body == body


async def test_an_answer_that_does_not_come_in_time_is_named(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TIMES", type(module._TIMES)(total=0.05))
    receiver.answer(Reply(misbehaviour="silent"))

    async with connections(1) as opened:
        with pytest.raises(HTTPClientError, match="there was no response in time"):
            await opened.send(call(receiver.url))


async def test_a_pause_that_the_service_asks_for_applies_to_the_next_request(
    receiver: Receiver,
) -> None:
    receiver.answer(Reply(status=503, headers={"Retry-After": "60"}), Reply(status=204))

    async with connections(2) as opened:
        await opened.send(call(receiver.url))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(opened.send(call(receiver.url)), 0.05)

    assert len(receiver.received) == 1


async def test_a_shorter_pause_does_not_end_a_longer_one(receiver: Receiver) -> None:
    receiver.answer(Reply(status=503, headers={"Retry-After": "60"}))
    is_paused = threading.Event()

    def answer_without_a_pause(_received: Received) -> Reply:
        assert is_paused.wait(30)
        return Reply(status=204)

    with Receiver() as slow:
        slow.answer_by(answer_without_a_pause)
        async with connections(2) as opened:
            earlier = asyncio.create_task(opened.send(call(slow.url)))
            await until(lambda: slow.received)
            await opened.send(call(receiver.url))
            is_paused.set()
            assert (await earlier).code == 204
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(opened.send(call(receiver.url)), 0.05)

    assert len(receiver.received) == 1


async def test_a_request_that_waits_also_waits_for_a_pause_that_comes_later() -> None:
    now = asyncio.get_running_loop().time
    opened = Connections(cast("Any", NeverAsked()))
    opened._free_from = now() + 60
    sending = opened.send(call("http://127.0.0.1:1"))
    first_sleep = sending.send(None)
    opened._free_from = now() + 120  # as the answer to another request asks for
    first_sleep.set_result(None)

    second_sleep = sending.send(None)

    assert not second_sleep.done()
    sending.close()


class NeverAsked:
    """A session for which it is too early."""

    def request(self, *_words: object, **_named: object) -> None:
        raise AssertionError("a request was sent during a pause")


async def test_a_quota_that_is_used_up_delays_nothing(receiver: Receiver) -> None:
    receiver.answer(Reply(status=429, headers={"Retry-After": "3600"}))

    async with connections(1) as opened:
        await opened.send(call(receiver.url))
        async with asyncio.timeout(30):  # less than the longest pause, of a minute
            assert (await opened.send(call(receiver.url))).code == 429
