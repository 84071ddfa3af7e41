from __future__ import annotations

import http.client
import os
import re
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

import pytest

from fhirpub.config.settings import Config, LimitsConfig, ServerConfig
from fhirpub.fhir.strict_json import dumps
from fhirpub.testing.service import Answer, Integrator, RunningService
from fhirpub.web.routes import routes
from tests import raw
from tests.bodies import register_body
from tests.waiting import wait_until

BASE = "/fhir/r4/DiagnosticReport"
REGISTER = f"{BASE}/$register"
JSON = "Content-Type: application/fhir+json"
UNKNOWN_ID = "00000000-0000-4000-8000-000000000000"
LIMIT, CAP = 10_000, 400_000
MIB = 1024 * 1024
TRUE_LIMIT = 32 * MIB


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    limits = LimitsConfig(request_bytes=LIMIT, drain_bytes=CAP)
    folder = tmp_path_factory.mktemp("small")
    with RunningService(folder, config=replace(Config(), limits=limits)) as running:
        yield running


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    limits = LimitsConfig(idle_seconds=0.3, body_seconds=0.3)
    folder = tmp_path_factory.mktemp("impatient")
    with RunningService(folder, config=replace(Config(), limits=limits)) as running:
        yield running


@pytest.fixture(scope="module")
def hurried(impatient: RunningService) -> Integrator:
    """A client of the impatient service; a busy machine may be too slow for it to log in."""
    for _ in range(_TRIES):
        with suppress(RuntimeError, OSError):
            return impatient.integrator()
    raise AssertionError("it never was in time")


_TRIES = 20


def in_time(exchange: Callable[[], raw.Talk]) -> raw.Talk:
    """Return the first exchange whose connection was not idle too long before its request."""
    tries = (exchange() for _ in range(_TRIES))
    return next(one for one in tries if one.received)


def token(lab: Integrator) -> str:
    return f"Authorization: Bearer {lab.token}"


def code(answer: Answer) -> str:
    outcome = answer.json
    assert outcome["resourceType"] == "OperationOutcome"
    assert answer.headers["content-type"] == "application/fhir+json"
    return str(outcome["issue"][0]["code"])


# Where one request ends and the next begins (RFC 9112 sections 5 and 6).

FRAMINGS: dict[str, tuple[list[str], bytes]] = {
    "length and chunks": (["Content-Length: 2", "Transfer-Encoding: chunked"], b"{}"),
    "chunks and length": (["Transfer-Encoding: chunked", "Content-Length: 2"], b"{}"),
    "chunked twice": (["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], b"0\r\n\r\n"),
    "chunked, then something": (["Transfer-Encoding: chunked, x"], b"0\r\n\r\n"),
    "something, then chunked": (["Transfer-Encoding: gzip, chunked"], b"0\r\n\r\n"),
    "almost chunked": (["Transfer-Encoding: xchunked"], b"0\r\n\r\n"),
    "chunked with a tab": (["Transfer-Encoding: chunked\x0b"], b"0\r\n\r\n"),
    "identity": (["Transfer-Encoding: identity"], b"{}"),
    "two lengths": (["Content-Length: 2", "Content-Length: 3"], b"{}"),
    "two lengths in a list": (["Content-Length: 2, 3"], b"{}"),
    "one length twice": (["Content-Length: 2", "Content-Length: 2"], b"{}"),
    "one length twice in a list": (["Content-Length: 2, 2"], b"{}"),
    "a plus sign": (["Content-Length: +2"], b"{}"),
    "a minus sign": (["Content-Length: -2"], b"{}"),
    "hexadecimal": (["Content-Length: 0x2"], b"{}"),
    "an underscore": (["Content-Length: 0_2"], b"{}"),
    "a decimal point": (["Content-Length: 2.0"], b"{}"),
    "an exponent": (["Content-Length: 2e0"], b"{}"),
    "a superscript": (["Content-Length: \xb2"], b"{}"),
    "two numbers": (["Content-Length: 2 2"], b"{}"),
    "a word": (["Content-Length: two"], b"{}"),
    "no length": (["Content-Length:"], b"{}"),
    "a length of thirty digits": ([f"Content-Length: {'9' * 30}"], b"{}"),
    "a length of five thousand digits": ([f"Content-Length: {'9' * 5000}"], b"{}"),
    "a space before the colon": (["Content-Length : 2"], b"{}"),
    "a tab before the colon": (["Content-Length\t: 2"], b"{}"),
    "a folded line": (["X-Note: a\r\n b", "Content-Length: 2"], b"{}"),
    "a line folded with a tab": (["X-Note: a\r\n\tb", "Content-Length: 2"], b"{}"),
    "a bare CR in a value": (["X-Note: a\rContent-Length: 9", "Content-Length: 2"], b"{}"),
    "a NUL in a value": (["X-Note: a\0b", "Content-Length: 2"], b"{}"),
    "a control character in a name": (["X\x01Note: a", "Content-Length: 2"], b"{}"),
    "a line without a colon": (["X-Note", "Content-Length: 2"], b"{}"),
    "a line without a name": ([": a", "Content-Length: 2"], b"{}"),
    "a second host": (["Host: other.example", "Content-Length: 2"], b"{}"),
    "a host of two names": (["Host: a b", "Content-Length: 2"], b"{}"),
    "a chunk size with a sign": (["Transfer-Encoding: chunked"], b"+2\r\n{}\r\n0\r\n\r\n"),
    "a chunk size in 0x": (["Transfer-Encoding: chunked"], b"0x2\r\n{}\r\n0\r\n\r\n"),
    "a chunk size with blanks": (["Transfer-Encoding: chunked"], b"2 \r\n{}\r\n0\r\n\r\n"),
    "a chunk size that is a word": (["Transfer-Encoding: chunked"], b"two\r\n{}\r\n0\r\n\r\n"),
    "a negative chunk": (["Transfer-Encoding: chunked"], b"-2\r\n{}\r\n0\r\n\r\n"),
    "a chunk that is longer than it says": (
        ["Transfer-Encoding: chunked"],
        b"1\r\n{}\r\n0\r\n\r\n",
    ),
    "a chunk without an end": (["Transfer-Encoding: chunked"], b"2\r\n{}XX0\r\n\r\n"),
}


def hidden(lab: Integrator, value: str) -> bytes:
    """Return a valid registration, for places where it must not be found."""
    body = dumps(register_body(value))
    lines = [f"POST {REGISTER} HTTP/1.1", "Host: localhost", token(lab), JSON]
    head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""])
    return head.encode() + body


def registered(lab: Integrator, value: str) -> int:
    lab.register(register_body("later"))  # writes that were started before are committed by now
    return int(lab.get(f"{BASE}?identifier={value}").json["total"])


@pytest.mark.parametrize("case", FRAMINGS)
def test_a_request_of_unclear_length_ends_the_connection_and_hides_no_other(
    service: RunningService, lab: Integrator, case: str
) -> None:
    lines, body = FRAMINGS[case]
    head = "\r\n".join([f"POST {REGISTER} HTTP/1.1", "Host: localhost", token(lab), JSON, *lines])

    exchange = raw.talk(
        lab.service, head.encode("latin-1") + b"\r\n\r\n" + body + hidden(lab, "H")
    )

    assert (exchange.statuses, exchange.closed) == ([400], True)
    assert registered(lab, "H") == 0
    assert wait_until(lambda: not service.services.in_flight, seconds=20)


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["Host: localhost", "Host: other.example"],
        ["Host: a b"],
        ["Host: localhost", "Content-Length: +2"],
        ["Host: localhost", "Content-Length: 2", "Content-Length: 2"],
        ["Host: localhost", "Content-Length: 2", "Transfer-Encoding: chunked"],
        ["Host: localhost", "Transfer-Encoding: gzip, chunked"],
    ],
)
def test_a_head_that_breaks_http_is_refused_before_the_end(
    service: RunningService, lines: list[str]
) -> None:
    head = "\r\n".join([f"POST {REGISTER} HTTP/1.1", JSON, *lines, "", ""])

    exchange = raw.talk(service, head.encode(), b"{}")

    assert (exchange.status, code(exchange.answer), exchange.closed) == (400, "exception", True)
    assert exchange.answer.headers["connection"] == "close"


@pytest.mark.parametrize("path", [REGISTER, "/oauth/token", "/nowhere", "/metadata"])
@pytest.mark.parametrize("length", ["+2", "0x2", "2, 3", "9" * 30])
def test_an_unclear_length_is_refused_on_every_path(
    lab: Integrator, path: str, length: str
) -> None:
    exchange = raw.request(
        lab.service, f"POST {path}", f"Content-Length: {length}", body=hidden(lab, "H")
    )

    assert (exchange.statuses, exchange.closed) == ([400], True)


@pytest.mark.parametrize(
    "start",
    [
        b"GET /health/live HTTP/1.1\r\n\r\n",
        b"GET /health/live\r\n\r\n",
        b"GET  /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /health/live HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"GET /health/live HTTP/1.1 x\r\nHost: localhost\r\n\r\n",
        b"GE(T /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\rGET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\nGET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_a_start_that_is_not_http_is_a_400_and_the_end(lab: Integrator, start: bytes) -> None:
    exchange = raw.talk(lab.service, start, hidden(lab, "H"))

    assert (exchange.statuses, code(exchange.answer), exchange.closed) == (
        [400],
        "exception",
        True,
    )
    assert registered(lab, "H") == 0


def test_a_body_is_never_read_as_a_request(lab: Integrator) -> None:
    inner = hidden(lab, "inner")
    head = f"POST {REGISTER} HTTP/1.1\r\nHost: localhost\r\n{token(lab)}\r\n{JSON}\r\n"

    exchange = raw.talk(
        lab.service,
        f"{head}Content-Length: {len(inner)}\r\n\r\n".encode() + inner,
        b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    )

    assert exchange.statuses == [400, 200]
    assert registered(lab, "inner") == 0


def test_honest_requests_may_follow_one_another_at_once(lab: Integrator) -> None:
    last = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

    exchange = raw.talk(lab.service, hidden(lab, "one") + hidden(lab, "two") + last)

    assert exchange.statuses == [201, 201, 200]


# Size (D-61).


@pytest.mark.parametrize("total", [LIMIT + 1, 2 * LIMIT, 10 * LIMIT, 100_000, CAP - 1, CAP])
@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_a_client_that_sends_too_much_can_read_the_413(
    small: RunningService, total: int, framing: str
) -> None:
    exchange = _sized(small.integrator(), total, framing)

    # Most clients do not read a response while they are still sending.
    assert exchange.heard_out
    assert (exchange.status, code(exchange.answer)) == (413, "too-costly")


@pytest.mark.parametrize("total", [0, 1, LIMIT - 1, LIMIT])
@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_what_is_within_the_limit_is_read(small: RunningService, total: int, framing: str) -> None:
    exchange = _sized(small.integrator(), total, framing)

    assert (exchange.status, code(exchange.answer)) == (400, "exception")


@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_beyond_the_drain_cap_there_is_a_413_and_the_end(
    small: RunningService, framing: str
) -> None:
    exchange = _sized(small.integrator(), CAP + 200_000, framing)

    assert (exchange.status, code(exchange.answer), exchange.closed) == (413, "too-costly", True)


@pytest.mark.parametrize(
    ("start", "fields", "status"),
    [
        ("POST /nope", [], 404),
        ("POST /metadata", [], 405),
        ("POST /fhir/r4/DiagnosticReport/$register", [], 401),
        ("POST /fhir/r4/DiagnosticReport/$register", ["Content-Type: text/plain"], 415),
        ("POST /fhir/r4/DiagnosticReport/$register", ["Content-Type: application/json"], 413),
    ],
)
def test_beyond_the_drain_cap_too_the_first_problem_is_reported(
    small: RunningService, start: str, fields: list[str], status: int
) -> None:
    known = [token(small.integrator())] if fields else []
    head = [f"{start} HTTP/1.1", "Host: x", f"Content-Length: {CAP + 1}", *known, *fields, "", ""]

    answer = raw.talk(small, "\r\n".join(head).encode()).answer

    assert answer.status == status
    if status == 413:
        assert f"more than {LIMIT} bytes" in answer.json["issue"][0]["diagnostics"]


def test_a_token_request_of_any_size_is_refused_as_oauth_says(small: RunningService) -> None:
    head = ["POST /oauth/token HTTP/1.1", "Host: x", f"Content-Length: {CAP + 1}", "", ""]

    answer = raw.talk(small, "\r\n".join(head).encode()).answer

    assert (answer.status, answer.json["error"]) == (413, "invalid_request")


def test_no_answer_of_the_token_endpoint_is_kept(lab: Integrator) -> None:
    for method in ("GET", "PUT"):
        headers = lab.request(method, "/oauth/token").headers
        assert (headers["cache-control"], headers["pragma"]) == ("no-store", "no-cache")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("total", "framing", "status"),
    [
        (TRUE_LIMIT - 1, "length", 400),
        (TRUE_LIMIT, "chunks", 400),
        (TRUE_LIMIT + 1, "length", 413),
        (TRUE_LIMIT + 1, "chunks", 413),
        (2 * TRUE_LIMIT, "length", 413),
        (4 * TRUE_LIMIT, "chunks", 413),
    ],
)
def test_the_limit_is_32_mebibytes_unless_set(
    lab: Integrator, total: int, framing: str, status: int
) -> None:
    exchange = _sized(lab, total, framing)

    assert (exchange.heard_out, exchange.status) == (True, status)


def _sized(lab: Integrator, total: int, framing: str) -> raw.Talk:
    """Register a body of white space."""
    chunks = framing == "chunks"
    announced = "Transfer-Encoding: chunked" if chunks else f"Content-Length: {total}"
    body = raw.chunked(b" " * total) if chunks else [b" " * total]
    lines = (token(lab), JSON, announced)
    return raw.request(lab.service, f"POST {REGISTER}", *lines, body=body)


def test_a_client_that_expects_a_100_gets_the_413_at_once(small: RunningService) -> None:
    lines = (token(small.integrator()), JSON, "Expect: 100-continue")

    exchange = raw.request(small, f"POST {REGISTER}", *lines, f"Content-Length: {LIMIT + 1}")

    assert (exchange.statuses, code(exchange.answer)) == ([413], "too-costly")


@pytest.mark.parametrize(
    ("lines", "status"),
    [([], 401), (["Content-Type: text/plain"], 415), (["Accept: text/html"], 406)],
)
def test_a_client_that_expects_a_100_gets_any_refusal_at_once(
    lab: Integrator, lines: list[str], status: int
) -> None:
    given = [token(lab), *lines] if status != 401 else []

    exchange = raw.request(
        lab.service, f"POST {REGISTER}", *given, "Expect: 100-continue", "Content-Length: 9"
    )

    assert exchange.statuses == [status]


@pytest.mark.parametrize(("start", "status"), [("POST /nowhere", 404), (f"PUT {BASE}", 405)])
def test_a_route_that_takes_no_body_sends_no_100(lab: Integrator, start: str, status: int) -> None:
    exchange = raw.request(lab.service, start, "Expect: 100-continue", "Content-Length: 9")

    assert exchange.statuses == [status]


def test_a_client_that_expects_a_100_gets_it_for_a_good_request(lab: Integrator) -> None:
    lines = (token(lab), JSON, "Expect: 100-continue", "Content-Length: 2")

    exchange = raw.request(lab.service, f"POST {REGISTER}", *lines, body=b"{}")

    assert exchange.statuses == [100, 400]


REFUSED_EARLY: dict[str, tuple[str, list[str], int, str]] = {
    "no token": (f"POST {REGISTER}", [JSON], 401, "security"),
    "an address that is not there": ("POST /nowhere", [JSON], 404, "not-supported"),
    "a method that is not there": (f"PUT {BASE}", [JSON], 405, "not-supported"),
    "a form for another path": (f"POST {BASE}/x", [JSON], 405, "not-supported"),
    "a body of another type": (f"POST {REGISTER}", ["Content-Type: text/plain"], 415, ""),
    "a format that is not spoken": (f"POST {REGISTER}", [JSON, "Accept: text/html"], 406, ""),
    "an update of nothing": (f"PATCH {BASE}/{UNKNOWN_ID}", [JSON], 404, "not-found"),
    "a form of another type": (f"POST {BASE}/_search", [JSON], 415, ""),
}


@pytest.mark.parametrize("case", REFUSED_EARLY)
def test_a_refusal_before_the_body_can_be_read_after_ten_megabytes(
    lab: Integrator, case: str
) -> None:
    start, lines, status, expected = REFUSED_EARLY[case]
    if status != 401:
        lines = [*lines, token(lab)]

    exchange = raw.request(
        lab.service, start, *lines, "Content-Length: 10000000", body=bytes(10_000_000)
    )

    assert (exchange.heard_out, exchange.status) == (True, status)
    assert code(exchange.answer) == (expected or "not-supported")


def test_an_address_that_is_not_there_is_a_404_however_large_the_body(
    small: RunningService,
) -> None:
    body = bytes(2 * LIMIT)

    assert small.request("POST", "/nowhere", body).status == 404
    assert small.request("PUT", BASE, body).status == 405


# Request bodies (D-69).


@pytest.mark.parametrize(
    "content_type",
    [
        "application/fhir+json",
        "application/json",
        "text/json",
        "APPLICATION/FHIR+JSON",
        "application/fhir+json;charset=utf-8",
        "application/fhir+json; charset=UTF-8",
        'application/fhir+json; charset="utf-8"',
        "application/fhir+json; fhirVersion=4.0",
        'application/fhir+json; fhirVersion="4.0"',
        "application/fhir+json; fhirVersion=4.0; charset=utf-8",
        "application/fhir+json;",
        "application/fhir+xml",
        "application/xml; charset=utf-8",
        "text/xml",
        "application/xml+fhir; fhirVersion=4.0",
    ],
)
def test_a_body_of_these_types_is_read(lab: Integrator, content_type: str) -> None:
    answer = lab.request("POST", REGISTER, b"{}", {"Content-Type": content_type})

    assert answer.status == 400


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "text/plain",
        "multipart/form-data; boundary=x",
        "multipart/related; boundary=x",
        "application/x-www-form-urlencoded",
        "application/octet-stream",
        "application/xhtml+xml",
        "application/fhir+xml; charset=iso-8859-1",
        "application/fhir+xml; fhirVersion=5.0",
        "application/fhir+json; charset=iso-8859-1",
        "application/fhir+json; charset=utf-16",
        "application/fhir+json; charset=",
        "application/fhir+json; fhirVersion=3.0",
        "application/fhir+json; fhirVersion=5.0",
        "application/fhir+json; charset=utf-8; charset=utf-16",
        "application/fhir+json, text/plain",
        "application/fhir+jsonx",
        "json",
    ],
)
@pytest.mark.parametrize(
    ("method", "path"), [("POST", REGISTER), ("PATCH", f"{BASE}/{UNKNOWN_ID}")]
)
def test_a_body_of_another_type_is_a_415(
    lab: Integrator, method: str, path: str, content_type: str
) -> None:
    answer = lab.request(method, path, b"{}", {"Content-Type": content_type})

    assert (answer.status, code(answer)) == (415, "not-supported")


@pytest.mark.parametrize("kind", ["application/json-patch+json", "application/merge-patch+json"])
def test_a_patch_cannot_be_registered(lab: Integrator, kind: str) -> None:
    answer = lab.request("POST", REGISTER, b"{}", {"Content-Type": kind})

    assert (answer.status, code(answer)) == (415, "not-supported")


def test_a_body_without_a_type_is_a_415(lab: Integrator) -> None:
    exchange = raw.request(
        lab.service, f"POST {REGISTER}", token(lab), "Content-Length: 2", body=b"{}"
    )

    assert (exchange.status, code(exchange.answer)) == (415, "not-supported")


def test_two_types_are_a_415(lab: Integrator) -> None:
    lines = (token(lab), JSON, "Content-Type: text/plain", "Content-Length: 2")

    assert raw.request(lab.service, f"POST {REGISTER}", *lines, body=b"{}").status == 415


# Response formats (D-100, D-141).


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "application/fhir+json"),
        ("*/*", "application/fhir+json"),
        ("application/*", "application/fhir+json"),
        ("application/fhir+json", "application/fhir+json"),
        ("Application/FHIR+JSON", "application/fhir+json"),
        ("application/fhir+json; fhirVersion=4.0", "application/fhir+json"),
        ('application/fhir+json; fhirVersion="4.0"', "application/fhir+json"),
        ("application/fhir+json;q=0.5, text/html", "application/fhir+json"),
        ("text/html, */*;q=0.1", "application/fhir+json"),
        ("application/json", "application/json"),
        ("text/json", "text/json"),
        ("application/json+fhir", "application/fhir+json"),
        ("application/fhir+xml", "application/fhir+xml"),
        ("application/xml", "application/xml"),
        ("text/xml", "text/xml"),
        ("application/xml+fhir", "application/fhir+xml"),
        ("application/fhir+xml;q=0.9, application/json;q=0.1", "application/fhir+xml"),
        ("application/fhir+xml;q=0.1, application/json;q=0.9", "application/json"),
        ("application/fhir+json, application/fhir+xml", "application/fhir+json"),
        ("application/fhir+xml, application/fhir+json", "application/fhir+json"),
        ("application/fhir+xml, */*;q=0.1", "application/fhir+xml"),
        ("application/fhir+json;q=0, */*", "application/json"),
        ("application/fhir+json;q=0, application/json;q=0, */*;q=0.5", "text/json"),
        ("text/*", "text/json"),
        ("text/*;q=0.5, application/xml", "application/xml"),
        ("application/fhir+json; fhirVersion=3.0, application/fhir+xml", "application/fhir+xml"),
        ("application/fhir+json; fhirVersion=5.0, */*;q=0.1", "application/fhir+json"),
        ("application/fhir+xml;q=2, application/json;q=0.001", "application/json"),
    ],
)
def test_these_formats_are_spoken(lab: Integrator, accept: str, content_type: str) -> None:
    answer = lab.get("/metadata", Accept=accept)

    assert (answer.status, answer.headers["content-type"]) == (200, content_type)


@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "image/*",
        "application/fhir+xml;q=0",
        "application/fhir+xml; fhirVersion=3.0",
        "application/fhir+json;q=0",
        "*/*;q=0",
        "application/fhir+json; fhirVersion=3.0",
        "application/fhir+turtle",
        "nonsense",
        "application/fhir+json;q=x",
    ],
)
@pytest.mark.parametrize("path", ["/metadata", BASE, f"{BASE}/{UNKNOWN_ID}"])
def test_another_format_is_a_406_in_json(lab: Integrator, path: str, accept: str) -> None:
    answer = lab.get(path, Accept=accept)

    assert (answer.status, code(answer)) == (406, "not-supported")


def test_a_request_for_another_version_of_fhir_is_answered_with_the_supported_one(
    lab: Integrator,
) -> None:
    asked = "application/fhir+json; fhirVersion=3.0"

    for answer in (lab.get(BASE, Accept=asked), lab.get(f"{BASE}?_format=json;fhirVersion=3.0")):
        assert answer.issues[0]["diagnostics"].endswith("of FHIR R4")


@pytest.mark.parametrize("syntax", ["json", "xml"])
@pytest.mark.parametrize(
    "name",
    [
        "{}",
        "application/fhir%2B{}",
        "application/fhir+{}",
        "application/{}",
        "text/{}",
        "application/fhir%2B{}%3B%20fhirVersion=4.0",
    ],
)
def test_the_format_of_the_address_counts_for_more_than_the_header(
    lab: Integrator, name: str, syntax: str
) -> None:
    answer = lab.get(f"/metadata?_format={name.format(syntax)}", Accept="text/html")

    content_type = f"application/fhir+{syntax}"
    assert (answer.status, answer.headers["content-type"]) == (200, content_type)


@pytest.mark.parametrize("name", ["html", "ttl", "JSON%00", "xml%3BfhirVersion=5.0"])
def test_another_format_in_the_address_is_a_406(lab: Integrator, name: str) -> None:
    assert lab.get(f"/metadata?_format={name}").status == 406


# Headers.


@pytest.mark.parametrize("size", [16_384, 20_000, 60_000, 1_000_000])
def test_headers_above_sixteen_kilobytes_are_a_431(lab: Integrator, size: int) -> None:
    exchange = raw.request(lab.service, "GET /health/live", f"X-Note: {'a' * size}")

    assert (exchange.status, code(exchange.answer), exchange.closed) == (431, "too-costly", True)


def test_a_head_of_sixteen_kilobytes_is_read(lab: Integrator) -> None:
    start = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Note: "

    exchange = raw.talk(lab.service, start.ljust(16_380, b"a") + b"\r\n\r\n")

    assert exchange.statuses == [200]


@pytest.mark.parametrize("size", [16_384, 20_000, 64_000])
def test_an_address_above_sixteen_kilobytes_is_a_414_and_the_end(
    lab: Integrator, size: int
) -> None:
    exchange = raw.request(lab.service, f"GET {BASE}?identifier={'a' * size}", token(lab))

    assert (exchange.statuses, code(exchange.answer), exchange.closed) == (
        [414],
        "too-costly",
        True,
    )


@pytest.mark.parametrize(("count", "status"), [(98, 200), (101, 431), (5000, 431)])
def test_a_head_has_at_most_a_hundred_headers(lab: Integrator, count: int, status: int) -> None:
    lines = [f"X{number}: a" for number in range(count)]

    exchange = raw.request(lab.service, "GET /health/live", *lines)

    assert (exchange.status, exchange.closed) == (status, True)


def test_headers_that_do_not_come_end_the_connection(impatient: RunningService) -> None:
    exchange = raw.talk(impatient, b"GET /health/live HTTP/1.1\r\nHost: loc")

    assert (exchange.received, exchange.closed) == (b"", True)


SLOW_BODIES = [("Content-Length: 100", b"{"), ("Transfer-Encoding: chunked", b"1\r\n{\r\n")]


@pytest.mark.parametrize(("framing", "body"), SLOW_BODIES)
@pytest.mark.parametrize("start", [f"POST {REGISTER}", f"GET {BASE}"])
def test_a_body_that_does_not_come_is_a_408_and_the_end(
    hurried: Integrator, start: str, framing: str, body: bytes
) -> None:
    lines = (token(hurried), JSON, framing)

    exchange = in_time(lambda: raw.request(hurried.service, start, *lines, body=body))

    assert (exchange.statuses, code(exchange.answer), exchange.closed) == ([408], "timeout", True)


def test_a_request_refused_anyway_gets_that_refusal_when_the_body_does_not_come(
    impatient: RunningService,
) -> None:
    lines = (JSON, "Content-Length: 9")

    exchange = in_time(lambda: raw.request(impatient, f"POST {REGISTER}", *lines, body=b"{"))

    assert (exchange.statuses, code(exchange.answer), exchange.closed) == ([401], "security", True)


def test_a_form_that_does_not_come_is_a_408_of_oauth(impatient: RunningService) -> None:
    lines = ("Content-Type: application/x-www-form-urlencoded", "Content-Length: 9")

    exchange = in_time(lambda: raw.request(impatient, "POST /oauth/token", *lines, body=b"a"))

    assert (exchange.status, exchange.answer.json["error"], exchange.closed) == (
        408,
        "invalid_request",
        True,
    )


def test_a_client_that_sends_on_after_a_408_is_disconnected(hurried: Integrator) -> None:
    lines = [f"POST {REGISTER} HTTP/1.1", "Host: x", token(hurried), JSON]
    head = "\r\n".join([*lines, "Content-Length: 100", "", ""]).encode()

    with socket.create_connection(("127.0.0.1", hurried.service.port)) as wire:

        def send_on() -> None:
            wire.sendall(head)
            for _ in range(99):
                wire.sendall(b" ")
                time.sleep(0.1)

        with pytest.raises(ConnectionError):
            send_on()


def test_an_idle_connection_ends(impatient: RunningService) -> None:
    head = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"

    exchange = in_time(lambda: raw.talk(impatient, head))

    assert (exchange.statuses, exchange.closed) == ([200], True)


@pytest.mark.parametrize("lines", [["Content-Length: 100"], ["Transfer-Encoding: chunked"]])
def test_a_request_that_never_comes_whole_is_not_waited_for_at_the_end(
    impatient: RunningService, hurried: Integrator, lines: list[str]
) -> None:
    raw.request(impatient, f"POST {REGISTER}", token(hurried), JSON, *lines)

    assert wait_until(lambda: not impatient.services.in_flight, seconds=20)


@pytest.mark.parametrize("name", ["a", "A-b_c.9", "x" * 64])
def test_a_good_request_id_is_echoed(service: RunningService, name: str) -> None:
    answer = service.request("GET", "/health/live", headers={"X-Request-Id": name})

    assert answer.headers["x-request-id"] == name


@pytest.mark.parametrize("name", ["", "x" * 65, "a b", "a\tb", "\xe9", "<script>", "a,b", "a;b"])
@pytest.mark.parametrize("path", ["/health/live", "/nowhere", "/metadata"])
def test_another_request_id_is_replaced(service: RunningService, path: str, name: str) -> None:
    answer = service.request("GET", path, headers={"X-Request-Id": name})

    assert answer.headers["x-request-id"] != name
    assert re.fullmatch("[0-9a-f]{12}-[0-9a-f]+", answer.headers["x-request-id"])


def test_two_request_ids_are_replaced(lab: Integrator) -> None:
    exchange = raw.request(lab.service, "GET /health/live", "X-Request-Id: a", "X-Request-Id: b")

    assert exchange.answer.headers["x-request-id"] not in ("a", "b", "a,b")


def test_addresses_are_those_of_the_configuration_whatever_the_request_says(
    tmp_path: Path,
) -> None:
    server = ServerConfig(base_url="https://fhir.example.org/lab/")
    headers = {
        "Host": "evil.example",
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Proto": "gopher",
        "X-Forwarded-Prefix": "/evil",
        "X-Original-URL": "/evil",
        "Forwarded": "host=evil.example;proto=gopher",
    }
    with RunningService(tmp_path, config=replace(Config(), server=server)) as service:
        lab = service.integrator()

        created = lab.request("POST", REGISTER, register_body("A"), headers)
        found = lab.request("GET", BASE, headers=headers)
        about = lab.request("GET", "/metadata", headers=headers)
        discovery = service.request("GET", "/.well-known/smart-configuration", headers=headers)

    assert created.headers["location"].startswith("https://fhir.example.org/lab/fhir/r4/")
    assert b"https://fhir.example.org/lab/fhir/r4/Binary/" in found.body
    for answer in (created, found, about, discovery):
        assert b"evil" not in answer.body + repr(answer.headers).encode()
        assert b"gopher" not in answer.body


@pytest.mark.parametrize(
    ("trusted", "forwarded", "status"),
    [
        ([], "198.51.100.2", 429),
        (["203.0.113.0/24"], "198.51.100.2", 429),
        (["127.0.0.1"], "198.51.100.2", 401),
        (["127.0.0.0/8"], "198.51.100.2", 401),
        (["127.0.0.1"], "198.51.100.1", 429),
        (["127.0.0.1"], "198.51.100.2, 198.51.100.1", 429),
        (["127.0.0.1"], "198.51.100.1, 198.51.100.2", 401),
        (["127.0.0.0/8"], "198.51.100.1, 127.0.0.9", 429),
    ],
)
def test_only_a_trusted_proxy_names_the_client_behind_it(
    tmp_path: Path, trusted: list[str], forwarded: str, status: int
) -> None:
    config = replace(
        Config(),
        server=ServerConfig(trusted_proxies=trusted),
        limits=LimitsConfig(token_failures=2),
    )
    with RunningService(tmp_path, config=config) as service:
        lab = service.integrator()
        for _ in range(3):
            _fail(lab, "198.51.100.1")

        assert _fail(lab, forwarded) == status


def _fail(lab: Integrator, forwarded: str) -> int:
    form = {
        "grant_type": "client_credentials",
        "client_id": lab.client_id,
        "client_secret": "wrong",
        "audience": lab.service.config.auth.audience,
    }
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "X-Forwarded-For": forwarded,
        "X-Real-IP": os.urandom(4).hex(),
    }
    path = "/oauth/token"
    return lab.service.request("POST", path, urlencode(form).encode(), headers).status


# Paths and methods (D-15, D-16, D-148).

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "QUERY")
ODD_PATHS = {
    "/": 404,
    "//": 404,
    "*": 404,
    "http://127.0.0.1": 404,
    "gopher://127.0.0.1/metadata": 404,
    "/nowhere": 404,
    "/fhir": 404,
    "/fhir/r4": 405,
    "/fhir/r4/": 405,
    "/fhir/r5/metadata": 404,
    "/fhir/R4/metadata": 404,
    "/FHIR/r4/metadata": 404,
    "/Metadata": 404,
    "/metadata/": 404,
    "//metadata": 404,
    "/./metadata": 404,
    "/x/../metadata": 404,
    "/metadata;x=1": 404,
    "/metadata%20": 404,
    "/metadata%00": 404,
    "/metadata%0a": 404,
    "/fhir/r4/diagnosticreport": 404,
    "/fhir/r4/DiagnosticReport/": 404,
    f"/fhir/r4/DiagnosticReport/{UNKNOWN_ID}/": 404,
    f"/fhir/r4/DiagnosticReport/{UNKNOWN_ID}/_history/": 404,
    f"/fhir/r4/DiagnosticReport/{UNKNOWN_ID}/_history/1/": 404,
    f"/fhir/r4/DiagnosticReport//{UNKNOWN_ID}": 404,
    f"/fhir/r4/DiagnosticReport/{UNKNOWN_ID}%00": 404,
    f"/fhir/r4/DiagnosticReport/{UNKNOWN_ID}%0d%0aX-Evil:%20yes": 404,
    "/fhir/r4/DiagnosticReport/..": 404,
    "/fhir/r4/DiagnosticReport/%2e%2e": 404,
    "/fhir/r4/DiagnosticReport/%2e%2e%2fPatient": 404,
    "/fhir/r4/DiagnosticReport/%252e": 404,
    "/fhir/r4/DiagnosticReport/%00": 404,
    "/fhir/r4/DiagnosticReport/%0d%0aX-Evil:%20yes": 404,
    "/fhir/r4/DiagnosticReport/%c0%ae%c0%ae": 404,
    "/fhir/r4/DiagnosticReport/%ed%a0%80": 404,
    "/fhir/r4/DiagnosticReport/%ff": 404,
    "/fhir/r4/DiagnosticReport/%zz": 404,
    "/fhir/r4/DiagnosticReport/%": 404,
    "/fhir/r4/DiagnosticReport/\xff\xfe": 400,
    "/fhir/r4/DiagnosticReport/'": 404,
    "/fhir/r4/DiagnosticReport/$where": 404,
    "/fhir/r4/DiagnosticReport/<script>": 404,
    f"/fhir/r4/DiagnosticReport/{'a' * 8192}": 404,
    f"/fhir/r4/Binary/{'A' * 64}": 404,
    "/fhir/r4/Binary/..%2f..%2fetc%2fpasswd": 404,
    "/fhir/r4/CapabilityStatement/%2e%2e": 404,
    "/fhir/r4/Observation/1": 404,
    "/fhir/r4/DiagnosticReport?_count=%ff": 400,
    "/fhir/r4/DiagnosticReport?identifier=%00%5C": 400,
    "/fhir/r4/DiagnosticReport?" + "&".join(f"p{n}" for n in range(1500)): 400,
}


@pytest.mark.parametrize("path", ODD_PATHS)
def test_an_odd_path_leads_nowhere(lab: Integrator, path: str) -> None:
    exchange = raw.request(lab.service, f"GET {path}", token(lab))

    assert exchange.status == ODD_PATHS[path]
    assert "x-evil" not in exchange.answer.headers
    assert b"Traceback" not in exchange.received


def test_a_compressed_token_request_is_a_400_of_oauth(service: RunningService) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}

    answer = service.request("POST", "/oauth/token", b"{}", headers)

    assert (answer.status, answer.json["error"]) == (400, "invalid_request")
    assert "compressed" in answer.json["error_description"]


@pytest.mark.parametrize(
    "path", ["/fhir/r4/%44iagnosticReport", "/%66hir/r4/DiagnosticReport", "/fhir%2Fr4"]
)
def test_an_unneeded_escape_changes_no_address(lab: Integrator, path: str) -> None:
    assert lab.get(path).status == (404 if "%2F" in path else 200)


WEBHOOKS = "/webhooks/v1/endpoints"


@pytest.mark.parametrize(
    "path",
    [
        "/%77ebhooks/v1/endpoints",
        "/webhooks/%76%31/endpoints",
        "/webhooks/v1/%65ndpoint%73",
        f"http://127.0.0.1{WEBHOOKS}",
        "http://other.example/%77ebhooks/v1/endpoints",
    ],
)
def test_a_rule_of_a_proxy_for_the_plain_path_is_evaded_by(lab: Integrator, path: str) -> None:
    assert raw.request(lab.service, f"GET {path}", token(lab)).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/./webhooks/v1/endpoints",
        "/x/../webhooks/v1/endpoints",
        "/x/%2e%2e/webhooks/v1/endpoints",
        "//webhooks/v1/endpoints",
        "/webhooks//v1/endpoints",
        "/Webhooks/v1/endpoints",
        "/WEBHOOKS/V1/ENDPOINTS",
        "/%57ebhooks/v1/endpoints",
        "/%2577ebhooks/v1/endpoints",
        "/webhooks%2Fv1/endpoints",
        "%2Fwebhooks/v1/endpoints",
        "/webhooks;x/v1/endpoints",
        "/webhooks/v1/endpoints/",
    ],
)
def test_a_path_of_webhooks_in_another_form_leads_nowhere(lab: Integrator, path: str) -> None:
    assert raw.request(lab.service, f"GET {path}", token(lab)).status == 404


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8080", "HTTPS://fhir.example.org"])
def test_an_address_may_be_asked_for_as_a_whole(lab: Integrator, origin: str) -> None:
    exchange = raw.request(lab.service, f"GET {origin}{BASE}?_count=0", token(lab))

    assert (exchange.status, exchange.answer.json["total"]) == (200, 0)


def test_every_path_refuses_the_methods_that_it_does_not_have(service: RunningService) -> None:
    table: dict[str, set[str]] = defaultdict(set)
    for route in routes(service.services):
        table[route.path] |= {route.method, "OPTIONS"}
        table[route.path] |= {"HEAD"} if route.method == "GET" else set()

    for path, methods in table.items():
        for method in METHODS:
            if method in methods:
                continue
            # The path without a parameter comes first: it has no method that the id's path has.
            answer = service.request(method, path.replace("{}", UNKNOWN_ID))

            assert answer.status == 405, (method, path)
            assert set(answer.headers["allow"].split(", ")) == methods, (method, path)
            if method != "HEAD" and not path.startswith("/oauth/"):  # their errors are OAuth's
                assert code(answer) == "not-supported", (method, path)


def test_options_lists_the_methods_for_every_client(service: RunningService) -> None:
    for route in routes(service.services):
        answer = service.request("OPTIONS", route.path.replace("{}", UNKNOWN_ID))

        assert (answer.status, answer.body) == (204, b"")
        assert route.method in answer.headers["allow"].split(", ")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "OPTIONS", "TRACE", "QUERY", "get"])
def test_a_path_that_is_not_there_is_a_404_for_every_method(
    service: RunningService, method: str
) -> None:
    answer = service.request(method, "/nowhere")

    assert (answer.status, code(answer)) == (404, "not-supported")


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
@pytest.mark.parametrize("name", ["$regster", "%24everything", f"{UNKNOWN_ID}/_history/$diff"])
def test_an_operation_that_is_not_there_is_no_resource_of_that_id(
    service: RunningService, method: str, name: str
) -> None:
    answer = service.request(method, f"{BASE}/{name}")

    assert (answer.status, code(answer)) == (404, "not-supported")
    assert "allow" not in answer.headers


def test_a_head_is_a_get_without_its_body(lab: Integrator) -> None:
    location = lab.register(register_body("A")).headers["location"]
    path = location.removeprefix(lab.service.base_url).removesuffix("/_history/1")
    report = lab.get(path).json
    entry = lab.get(BASE).json["entry"][0]["resource"]
    document = entry["presentedForm"][0]["url"].removeprefix(lab.service.base_url)
    paths = [
        path,
        f"{path}/_history",
        f"{path}/_history/1",
        f"{path}/_history/2",
        BASE,
        f"{BASE}?_count=x",
        f"/fhir/r4/{report['subject']['reference']}",
        document,
        "/metadata",
        "/fhir/r4/metadata",
        "/fhir/r4/CapabilityStatement/fhirpub",
        "/.well-known/jwks.json",
        "/.well-known/oauth-authorization-server",
        "/.well-known/smart-configuration",
        "/health/live",
        "/health/ready",
        "/nowhere",
    ]

    for item in paths:
        whole, head = lab.get(item), lab.request("HEAD", item)

        assert (head.status, head.body) == (whole.status, b""), item
        assert _lasting(head) == _lasting(whole), item


def _lasting(answer: Answer) -> dict[str, str]:
    passing = {"date", "x-request-id"}
    return {name: value for name, value in answer.headers.items() if name not in passing}


# Errors (D-139 to D-143).


@pytest.mark.parametrize(
    ("start", "lines", "status"),
    [
        ("GET /nowhere", [], 404),
        (f"GET {BASE}/x", [], 404),
        ("PUT /metadata", [], 405),
        (f"POST {REGISTER}", [JSON, "Content-Length: 0"], 400),
        (f"POST {REGISTER}", ["Content-Length: 0"], 415),
        (f"GET {BASE}?_format=ttl", [], 406),
        (f"GET {BASE}?_count=x", [], 400),
        (f"PATCH {BASE}/x", [JSON, "Content-Length: 0"], 404),
    ],
)
def test_every_refusal_is_an_outcome_that_reveals_nothing_of_the_machine(
    lab: Integrator, start: str, lines: list[str], status: int
) -> None:
    exchange = raw.request(lab.service, start, token(lab), *lines)

    answer = exchange.answer
    assert (answer.status, answer.issues[0]["severity"]) == (status, "error")
    assert answer.headers["server"] == "fhirpub"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    for word in (b"Traceback", b"ornado", b"ython", b".py"):
        assert word not in exchange.received


def test_a_fault_is_an_outcome_that_reveals_nothing_of_the_machine(tmp_path: Path) -> None:
    with RunningService(tmp_path) as service:
        lab = service.integrator()
        # Break the service from inside.
        cast("dict[str, Any]", service.services.context.searched).clear()

        answer = lab.get(BASE)

    assert (answer.status, code(answer)) == (500, "exception")
    assert answer.headers["server"] == "fhirpub"
    for word in (b"Traceback", b"KeyError", b"ornado", b".py"):
        assert word not in answer.body


def test_an_answer_that_cannot_be_written_ends_the_connection_and_holds_up_no_stop(
    tmp_path: Path,
) -> None:
    server = ServerConfig(base_url="http://lab\r\nInjected: yes")
    with RunningService(tmp_path, config=replace(Config(), server=server)) as service:
        lab = service.integrator()

        with pytest.raises(http.client.RemoteDisconnected):
            lab.register(register_body("unspeakable"))

        assert not service.services.in_flight
