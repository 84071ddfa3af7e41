"""The connections to the service: what they trust, how many there are, and how long they try."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from fhirpub.cli.publish.retries import Unreachable
from fhirpub.testing.certificate import Certificate
from fhirpub.testing.receiver import Receiver, Reply
from fhirpub_hl7v2.service import open_publisher
from tests.hl7v2.answering import CREATED, granting, requests_of, service_at


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        running.answer_by(granting(CREATED))
        yield running


def base(receiver: Receiver) -> str:
    return receiver.url.removesuffix("/webhook")


async def test_the_certificates_that_are_named_are_trusted(tmp_path: Path) -> None:
    certificate = Certificate.create(tmp_path, name="127.0.0.1")
    with Receiver(certificate=certificate) as receiver:
        receiver.answer_by(granting(CREATED))

        async with open_publisher(service_at(base(receiver), certificate.file)) as publisher:
            answered = await publisher.request("GET", "/x")

    assert answered.response.code == 201


async def test_the_pauses_of_the_caller_are_those_between_its_requests(
    receiver: Receiver,
) -> None:
    receiver.answer_by(granting(Reply(status=503)))

    async with open_publisher(service_at(base(receiver)), 1, lambda: (0.0, 0.0)) as publisher:
        with pytest.raises(Unreachable):
            await publisher.request("GET", "/x")

    assert len(requests_of(receiver.received)) == 3


async def test_each_request_has_the_pauses_anew(receiver: Receiver) -> None:
    deferred, done = Reply(status=503), Reply(status=200)
    receiver.answer_by(granting(deferred, done, deferred, done))

    async with open_publisher(service_at(base(receiver)), 1, lambda: iter((0.0,))) as publisher:
        found = [(await publisher.request("GET", "/x")).response.code for _ in range(2)]

    assert found == [200, 200]


async def test_as_many_requests_as_connections_are_sent_at_once(receiver: Receiver) -> None:
    receiver.answer_by(granting(Reply(misbehaviour="silent")))
    async with open_publisher(service_at(base(receiver)), 2) as publisher:
        sending = [asyncio.create_task(publisher.request("GET", "/x")) for _ in range(2)]

        await asyncio.to_thread(receiver.wait, 3)

        for task in sending:
            task.cancel()
        await asyncio.gather(*sending, return_exceptions=True)


async def test_the_service_is_asked_for_a_token_of_its_audience(receiver: Receiver) -> None:
    async with open_publisher(service_at(base(receiver))) as publisher:
        await publisher.request("GET", "/x")

    token, request = receiver.received
    assert b"audience=urn%3Aservice" in token.body
    assert request.headers["authorization"] == "Bearer t"
