"""Which responses are worth a repetition, and how long it waits."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from fhirpub_client import Refused, Unanswered, clients, retries
from fhirpub_client.retries import PAUSES, is_deferred, pause_after, pauses
from tests.client.recorded import Recorded, with_async_client, with_client

OK = {"resourceType": "Patient", "id": "1"}


def response(status: int, after: str | None = None) -> httpx.Response:
    return httpx.Response(status, headers={} if after is None else {"Retry-After": after})


def test_a_request_is_repeated_five_times_at_growing_distances() -> None:
    assert PAUSES == (0.5, 1.0, 2.0, 4.0, 8.0)


def test_a_pause_is_up_to_a_quarter_longer_and_never_shorter() -> None:
    parts = [
        real / named for _ in range(200) for real, named in zip(pauses(), PAUSES, strict=True)
    ]

    assert 1.0 <= min(parts) < 1.02
    assert 1.23 < max(parts) <= 1.25


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
def test_a_response_of_a_moment_is_deferred(status: int) -> None:
    assert is_deferred(response(status)) is True


@pytest.mark.parametrize("status", [200, 201, 307, 400, 401, 403, 404, 409, 412, 422, 500, 501])
def test_every_other_response_is_the_answer(status: int) -> None:
    assert is_deferred(response(status, "1")) is False


@pytest.mark.parametrize(("seconds", "deferred"), [("60", True), ("61", False), ("40000", False)])
def test_a_quota_of_more_than_a_minute_is_not_waited_for(seconds: str, *, deferred: bool) -> None:
    assert is_deferred(response(429, seconds)) is deferred


@pytest.mark.parametrize("status", [408, 502, 503, 504])
def test_a_service_that_is_away_for_longer_is_waited_for(status: int) -> None:
    assert is_deferred(response(status, "3600"))


@pytest.mark.parametrize(
    ("named", "seconds"),
    [("5", 5), ("1", 2), ("60", 60), ("61", 60), ("3600", 60), (None, 2), ("0", 2)],
)
def test_the_service_may_name_a_longer_time_up_to_a_minute(
    named: str | None, seconds: float
) -> None:
    assert pause_after(response(503, named), 2.0) == seconds


@pytest.mark.parametrize("named", ["soon", "", "-3", "1e3", "Wed, 21 Oct 2026 07:28:00 GMT", "٣"])
def test_a_time_in_another_form_is_none(named: str) -> None:
    unreadable = httpx.Response(503, headers=[(b"Retry-After", named.encode())])

    assert pause_after(unreadable, 0.5) == 0.5


def test_a_time_that_is_longer_than_a_pause_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "PAUSES", (0.001,))
    waited: list[float] = []
    monkeypatch.setattr(clients, "time", SimpleNamespace(sleep=waited.append))
    service = Recorded(response(503, "7"), httpx.Response(200, json=OK))

    with_client(service, lambda client: client.read("1"))

    assert waited == [7.0]


def test_an_event_loop_waits_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "PAUSES", (0.001,))
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(clients, "asyncio", SimpleNamespace(sleep=wait))
    service = Recorded(response(503, "7"), httpx.Response(200, json=OK))

    with_async_client(service, lambda client: client.read("1"))

    assert waited == [7.0]


def test_a_quota_that_is_used_up_until_tomorrow_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retries, "PAUSES", ())
    service = Recorded(response(429, "40000"))

    with pytest.raises(Refused, match="429"):
        with_client(service, lambda client: client.read("1"))

    assert len(service.requests) == 1


@pytest.mark.parametrize("run", [with_client, with_async_client])
@pytest.mark.parametrize(
    "lost",
    [
        httpx.ReadTimeout("slow"),
        httpx.ConnectTimeout("slow"),
        httpx.ConnectError("refused"),
        httpx.ReadError("reset"),
        httpx.RemoteProtocolError("cut"),
    ],
)
def test_a_lost_connection_is_tried_once_more(
    monkeypatch: pytest.MonkeyPatch, run: object, lost: Exception
) -> None:
    monkeypatch.setattr(retries, "PAUSES", (0.001,))
    service = Recorded(lost, httpx.Response(200, json=OK))

    stored = run(service, lambda client: client.read("1"))  # type: ignore[operator]

    assert stored.resource == OK
    assert len(service.requests) == 2


def test_a_request_that_is_lost_each_time_is_sent_once_and_for_each_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retries, "PAUSES", (0.001, 0.001))
    service = Recorded(*(httpx.ReadTimeout("slow") for _ in range(4)))

    with pytest.raises(Unanswered, match="ReadTimeout: slow"):
        with_client(service, lambda client: client.read("1"))

    assert len(service.requests) == 3


@pytest.mark.parametrize("run", [with_client, with_async_client])
def test_a_token_that_is_deferred_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, run: Callable[..., Any]
) -> None:
    monkeypatch.setattr(retries, "PAUSES", (0.001,))
    answers = [response(503), httpx.Response(200, json={"access_token": "t"})]
    sent: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.url.path)
        return answers.pop(0) if answers else httpx.Response(200, json=OK)

    stored = run(httpx.MockTransport(answer), lambda client: client.read("1"))

    assert stored.resource == OK
    assert sent == ["/oauth/token", "/oauth/token", "/fhir/r4/DiagnosticReport/1"]


@pytest.mark.parametrize("run", [with_client, with_async_client])
def test_a_service_that_defers_every_request_is_unanswered_with_its_last_refusal(
    monkeypatch: pytest.MonkeyPatch, run: Callable[..., Any]
) -> None:
    monkeypatch.setattr(retries, "PAUSES", (0.001, 0.001))
    service = Recorded(*(response(503) for _ in range(4)))

    with pytest.raises(Unanswered, match=r"^the service defers every request$") as failed:
        run(service, lambda client: client.read("1"))

    assert isinstance(failed.value.__cause__, Refused)
    assert failed.value.__cause__.status == 503
    assert len(service.requests) == 3
