"""The receiver of the demo repeats challenges, and keeps webhooks until they are asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPResponse

from fhirpub.cli.demo.receiver import DemoReceiver


async def send(receiver: DemoReceiver, event: str, **data: Any) -> HTTPResponse:
    client = AsyncHTTPClient(force_instance=True)
    try:
        return await client.fetch(
            receiver.url,
            method="POST",
            headers={"X-Webhook-Event": event},
            body=json.dumps({"data": data}),
        )
    finally:
        client.close()


async def test_a_challenge_is_repeated() -> None:
    receiver = DemoReceiver()
    async with receiver.receiving():
        answer = await send(receiver, "endpoint.verification", challenge="abc")

    assert (answer.code, answer.reason, answer.body) == (200, "OK", b"abc")
    assert answer.headers["Content-Length"] == "3"


async def test_another_webhook_is_accepted_without_a_body() -> None:
    receiver = DemoReceiver()
    async with receiver.receiving():
        answer = await send(receiver, "a.created", id="1")

    assert (answer.code, answer.body) == (200, b"")


async def test_the_next_webhook_of_a_type_is_returned_and_others_are_passed_over() -> None:
    receiver = DemoReceiver()
    other, wanted = "report.created_again", "report.created"
    async with receiver.receiving():
        for number, event in enumerate((other, wanted, other, wanted), start=1):
            await send(receiver, event, number=number)
        first = await receiver.wait_for(wanted, seconds=30)
        second = await receiver.wait_for(wanted, seconds=30)

    assert [json.loads(one.body)["data"]["number"] for one in (first, second)] == [2, 4]
    assert first.headers["X-Webhook-Event"] == wanted


async def test_what_does_not_arrive_is_waited_for_only_so_long() -> None:
    with pytest.raises(TimeoutError):
        await DemoReceiver().wait_for("a", seconds=0.001)


async def test_the_address_is_of_this_machine_and_is_left_at_the_end() -> None:
    receiver = DemoReceiver()
    async with receiver.receiving():
        assert receiver.url.startswith("http://127.0.0.1:")
        assert receiver.url.endswith("/webhook")

    with pytest.raises(ConnectionRefusedError):
        await send(receiver, "a")
