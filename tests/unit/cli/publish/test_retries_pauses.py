"""How long a request waits, and which responses end it."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from fhirpub.cli.http_client import Call
from fhirpub.cli.publish import retries
from fhirpub.cli.publish.retries import (
    PAUSES,
    Answered,
    Unreachable,
    is_used_up,
    retry_after,
    send_until_answered,
)
from tests import canned

CALL = Call(method="POST", url="https://fhir.example.org/x")


def response(status: int, after: str | None = None) -> HTTPResponse:
    headers = {} if after is None else {"Retry_After": after}
    return canned.response(status, b"", reason="Reason", **headers)


class Line:
    """Answers in turn: a response, or what there is in place of one. Keeps how long was waited."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *answers: HTTPResponse | Exception
    ) -> None:
        self.answers, self.calls = [*answers], 0
        self.waits: list[float] = []
        self.notes: list[str] = []

        async def sleep(seconds: float) -> None:
            self.waits.append(seconds)

        monkeypatch.setattr(retries, "asyncio", SimpleNamespace(sleep=sleep))

    async def send(self, call: Call) -> HTTPResponse:
        assert call is CALL
        self.calls += 1
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def result(self, **options: Any) -> Answered:
        return await send_until_answered(self.send, CALL, note=self.notes.append, **options)


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
async def test_what_is_put_off_waits_a_pause_and_counts_its_attempts(
    monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    line = Line(monkeypatch, response(status), response(status), response(201))

    answered = await line.result()

    assert (answered.attempts, answered.response.code) == (3, 201)
    assert line.waits == [0.5, 1.0]
    assert line.notes == [
        f"the service returned {status} Reason; sending the same request again in 0.5 s"
    ]


@pytest.mark.parametrize("status", [200, 400, 401, 404, 409, 500, 501])
async def test_other_responses_are_final(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    line = Line(monkeypatch, response(status))

    assert (await line.result()).attempts == 1
    assert line.waits == []


async def test_a_lost_connection_waits_no_longer_than_the_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = Line(monkeypatch, ConnectionResetError(), response(201))

    await line.result(pauses=[0.25])

    assert line.waits == [0.25]


async def test_each_pause_that_the_service_asks_for_is_noted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = Line(monkeypatch, response(503, "3"), response(503, "3"), response(201))

    await line.result(pauses=[1, 5])

    assert line.waits == [3, 5]
    assert [note.rpartition(" in ")[2] for note in line.notes] == ["3 s"]

    line = Line(monkeypatch, response(503, "3"), response(503, "9"), response(201))
    await line.result(pauses=[1, 5])
    assert [note.rpartition(" in ")[2] for note in line.notes] == ["3 s", "9 s"]


async def test_pauses_grow_until_it_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line(monkeypatch, *[response(503)] * 9)

    with pytest.raises(Unreachable) as given_up:
        await line.result()

    assert str(given_up.value) == (
        "the service returned 503 Reason\nGave up; the same command may be run again."
    )
    assert line.waits == [0.5, 1, 2, 4, 8] == list(PAUSES)
    assert line.calls == 6


async def test_what_another_try_cannot_mend_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unknown = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    line = Line(monkeypatch, unknown, response(201))

    with pytest.raises(Unreachable, match=r"^there is no host fhir\.example\.org") as raised:
        await line.result()

    assert (line.calls, line.waits, line.notes) == (1, [], [])
    assert raised.value.__cause__ is unknown


async def test_a_host_that_is_not_found_for_now_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = Line(monkeypatch, socket.gaierror(socket.EAI_AGAIN, "Try again"), response(201))

    assert (await line.result()).attempts == 2


@pytest.mark.parametrize(
    ("status", "after", "is_final"),
    [
        (429, "61", True),
        (429, "60", False),
        (429, None, False),
        (429, "Wed, 21 Oct 2026 07:28:00 GMT", False),
        (503, "61", False),
        (503, "3600", False),
    ],
)
def test_only_a_quota_of_more_than_a_minute_is_used_up(
    status: int, after: str | None, *, is_final: bool
) -> None:
    assert is_used_up(response(status, after)) == is_final


@pytest.mark.parametrize(
    ("after", "seconds"),
    [(None, 0), ("0", 0), ("7", 7), ("60", 60), ("61", 60), ("3600", 60), ("1.5", 0), ("x", 0)],
)
def test_a_pause_that_is_asked_for_is_at_most_a_minute(after: str | None, seconds: float) -> None:
    assert retry_after(response(503, after)) == seconds


async def test_a_pause_that_is_no_longer_than_ours_is_noted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = Line(monkeypatch, response(503, "1"), response(503, "1"), response(201))

    await line.result(pauses=[1, 1])

    assert len(line.notes) == 1
