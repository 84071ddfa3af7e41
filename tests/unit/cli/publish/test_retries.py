"""A request is retried while that can help, and no longer."""

from __future__ import annotations

import socket
from functools import partial
from typing import Any

import pytest

from fhirpub.cli.http_client import Call, http_client, send
from fhirpub.cli.publish.retries import Unreachable, send_until_answered

LATER: tuple[int, dict[str, str], Any] = (503, {}, {})
DONE: tuple[int, dict[str, str], Any] = (201, {}, {"a": 1})


async def outcome(stub: Any, *pauses: float) -> tuple[int, list[str]]:
    notes: list[str] = []
    call = Call.form(f"{stub.address}/x", {"a": "b c"})
    async with http_client() as client:
        answer = await send_until_answered(
            partial(send, client), call, note=notes.append, pauses=pauses
        )
    return answer.response.code, notes


async def test_an_answer_is_an_answer_whatever_its_status(stub: Any) -> None:
    stub.answers = [(422, {}, {})]

    assert await outcome(stub, 0.01) == (422, [])


@pytest.mark.parametrize("status", [0, 429, 502, 503, 504])
async def test_what_was_put_off_or_lost_is_sent_again(stub: Any, status: int) -> None:
    stub.answers = [(status, {}, {}), LATER, DONE]

    code, notes = await outcome(stub, 0.01, 0.01)

    assert code == 201
    assert len(notes) == len({status, 503})
    assert len({body for _, _, body in stub.requests}) == 1


async def test_the_service_may_ask_for_a_longer_pause(stub: Any) -> None:
    stub.answers = [(503, {"Retry-After": "1"}, {}), DONE]

    _, notes = await outcome(stub, 0.01)

    assert notes == [
        "the service returned 503 Service Unavailable; sending the same request again in 1 s"
    ]


async def test_a_quota_that_is_used_up_for_the_day_is_an_answer(stub: Any) -> None:
    stub.answers = [(429, {"Retry-After": "61"}, {}), DONE]

    assert await outcome(stub, 0.01) == (429, [])


@pytest.mark.parametrize("wish", ["soon", "-1", ""])
async def test_a_pause_that_cannot_be_read_is_our_own(stub: Any, wish: str) -> None:
    stub.answers = [(503, {"Retry-After": wish}, {}), DONE]

    _, notes = await outcome(stub, 0.01)

    assert notes[0].endswith("in 0.01 s")


async def test_it_gives_up_in_the_end(stub: Any) -> None:
    stub.answers = [LATER]

    with pytest.raises(Unreachable, match=r"503 .*\nGave up; the same command may be run"):
        await outcome(stub, 0.01)

    assert len(stub.requests) == 2


async def test_a_service_that_is_not_there_is_reported_as_such() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        call = Call(method="GET", url=f"http://127.0.0.1:{bound.getsockname()[1]}/")
        async with http_client() as client:
            with pytest.raises(Unreachable, match=r"cannot be reached.*refused"):
                await send_until_answered(partial(send, client), call, note=print, pauses=())


async def test_a_redirect_is_not_followed_with_credentials(stub: Any) -> None:
    stub.answers = [(302, {"Location": "http://127.0.0.1:1/"}, {})]

    assert await outcome(stub) == (302, [])


async def test_a_reason_that_lasts_is_noted_once(stub: Any) -> None:
    stub.answers = [LATER, LATER, LATER, DONE]

    _, notes = await outcome(stub, 0.01, 0.01, 0.01)

    assert len(notes) == 1
