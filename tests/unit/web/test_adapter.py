"""How requests come in: broken ones, bodies that never end, and one connection too many."""

from __future__ import annotations

import orjson
import pytest
from tornado.httputil import HTTPHeaders, HTTPInputError, RequestStartLine, ResponseStartLine

from fhirpub.http.reader import TooLong
from fhirpub.testing.service import Integrator, RunningService
from fhirpub.web.adapter import RequestRouterAdapter
from tests import raw
from tests.audit_trail import records_of_tenant
from tests.log_lines import caught_lines
from tests.unit.web.handlers.asking import REPORTS, asked, running

IN_CHUNKS = ("Content-Type: application/fhir+json", "Transfer-Encoding: chunked")
WRONG_CHUNK = b"2\r\n{}XX0\r\n\r\n"


def test_a_connection_too_many_is_refused_in_fhir(service: RunningService) -> None:
    head, _, body = RequestRouterAdapter(service.services).busy_response().partition(b"\r\n\r\n")

    lines = head.decode().split("\r\n")
    assert lines[0] == "HTTP/1.1 503 Service Unavailable"
    assert {*lines[1:]} == {
        "Content-Type: application/fhir+json",
        "Retry-After: 5",
        "Cache-Control: no-store",
        "Connection: close",
        f"Content-Length: {len(body)}",
    }
    (issue,) = orjson.loads(body)["issue"]
    assert (issue["severity"], issue["code"]) == ("error", "throttled")
    assert issue["details"]["coding"][0]["code"] == "service-busy"
    assert issue["diagnostics"] == "too many connections; retry in some seconds"


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ("GET /health/live HTTP/1.1\r\nHost: a\r\nHost: b\r\n", 400),
        (f"GET /{'a' * 70_000} HTTP/1.1\r\nHost: a\r\n", 414),
        (f"GET / HTTP/1.1\r\nHost: a\r\nX: {'a' * 70_000}\r\n", 431),
    ],
    ids=["two hosts", "long line", "long headers"],
)
def test_broken_http_is_refused_in_fhir(service: RunningService, lines: str, status: int) -> None:
    talk = raw.talk(service, f"{lines}\r\n".encode())

    assert (talk.status, talk.closed) == (status, True)
    assert talk.answer.json["resourceType"] == "OperationOutcome"


def test_a_refusal_of_a_head_that_was_read_heeds_its_headers(service: RunningService) -> None:
    lines = ("Host: b", "X-Request-Id: named", "Accept: application/fhir+xml")

    talk = raw.request(service, "GET /health/live", *lines)

    assert talk.status == 400
    assert talk.answer.headers["x-request-id"] == "named"
    assert talk.answer.headers["content-type"] == "application/fhir+xml"


async def test_what_answers_is_no_request(service: RunningService) -> None:
    message = RequestRouterAdapter(service.services).start_request(None, None)

    with pytest.raises(HTTPInputError):
        message.headers_received(ResponseStartLine("HTTP/1.1", 200, "OK"), HTTPHeaders())


async def test_a_connection_that_ends_before_its_head_ends_quietly(
    service: RunningService,
) -> None:
    message = RequestRouterAdapter(service.services).start_request(None, None)

    message.on_connection_close()


def test_a_request_waits_until_its_token_is_verified(lab: Integrator) -> None:
    lab.log_in()  # a token that no request has used yet

    async def begun() -> list[bool]:
        async with asked(lab, "GET", "/health/live") as one:
            adapter = RequestRouterAdapter(running(lab).services)
            message = adapter.start_request(None, one.exchange)
            line = RequestStartLine("GET", REPORTS, "HTTP/1.1")
            headers = HTTPHeaders({"Authorization": f"Bearer {lab.token}"})
            later = message.headers_received(line, headers)
            assert later is not None
            await later
            handler = message._handler  # type: ignore[attr-defined]
            found = [handler.caller.client_id == lab.client_id]
            handler.cancel()
            return found

    assert running(lab).call(begun()) == [True]


def received(lab: Integrator, end: str, *why: HTTPInputError) -> tuple[int, bytes, bool]:
    """Return what is answered to a body at its end, and whether the request is still there."""

    async def found() -> tuple[int, bytes, bool]:
        async with asked(lab, "POST", f"{REPORTS}/$validate", {"Content-Length": "2"}) as one:
            adapter = RequestRouterAdapter(running(lab).services)
            message = adapter.start_request(None, one.exchange)
            message._handler = one.handler  # type: ignore[attr-defined]
            message.data_received(b"{}")
            getattr(message, end)(*why)
            if end != "on_connection_close":
                await one.exchange.wait_ended()
            in_flight = one.handler in one.handler.services.in_flight
            return one.exchange.status, one.exchange.body or b"", in_flight

    return running(lab).call(found())


def test_a_whole_body_is_answered(lab: Integrator) -> None:
    assert received(lab, "finish")[0] == 200


def test_a_body_that_is_not_worth_reading_on_is_refused_at_once(lab: Integrator) -> None:
    status, body, _ = received(lab, "refuse_body", TooLong())

    assert status == 413
    most = lab.service.config.limits.drain_bytes
    assert f"the body has more than {most} bytes".encode() in body
    assert b"body-too-large" in body


def test_a_client_that_leaves_gives_back_the_memory_of_its_body(lab: Integrator) -> None:
    async def held() -> list[bool]:
        async with asked(lab, "POST", f"{REPORTS}/$validate", {"Content-Length": "9"}) as one:
            memory = one.handler.services.request_memory
            message = RequestRouterAdapter(one.handler.services).start_request(None, one.exchange)
            message._handler = one.handler  # type: ignore[attr-defined]
            memory.acquire(one.request, 9, owner=lab.tenant.id)
            found = [one.request in memory]
            message.on_connection_close()
            return [*found, one.request in memory]

    assert running(lab).call(held()) == [True, False]


def test_a_body_that_breaks_http_is_one_refusal_of_its_request(lab: Integrator) -> None:
    lab.get(REPORTS)  # so that the token is known
    lines = (f"Authorization: Bearer {lab.token}", "X-Request-Id: broken", *IN_CHUNKS)
    with caught_lines() as caught:
        talk = raw.request(lab.service, f"POST {REPORTS}/$register", *lines, body=WRONG_CHUNK)
        line = caught.of("broken")

    assert (talk.statuses, talk.closed) == ([400], True)
    assert (line["event"], line["route"], line["client"], line["codes"]) == (
        "refused",
        f"{REPORTS}/$register",
        lab.client_id,
        ["request-malformed"],
    )
    record = records_of_tenant(lab)[-1]
    assert (record["action"], record["status"], record["request"]) == ("register", 400, "broken")


def test_what_was_wrong_before_a_body_that_breaks_http_is_its_refusal(
    service: RunningService,
) -> None:
    talk = raw.request(service, f"POST {REPORTS}/$register", *IN_CHUNKS, body=WRONG_CHUNK)

    assert (talk.statuses, talk.closed) == ([401], True)


def test_a_token_request_that_breaks_http_is_refused_as_oauth_does(
    service: RunningService,
) -> None:
    talk = raw.request(service, "POST /oauth/token", IN_CHUNKS[1], body=WRONG_CHUNK)

    assert (talk.statuses, talk.answer.json["error"]) == ([400], "invalid_request")


def test_a_client_that_leaves_ends_its_request(lab: Integrator) -> None:
    assert received(lab, "on_connection_close") == (0, b"", False)
