"""What the console sends to the service in memory for a request of a browser, and gets back."""

from __future__ import annotations

from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tornado.httputil import HTTPHeaders, ResponseStartLine

from fhirpub.console.internal import _MOST_BYTES, AnswerTooLarge, ServiceClient
from fhirpub.errors import StoreUnavailable
from fhirpub.web.message.request import Request
from tests.unit.console.test_visit import CALLER


class Handler:
    """A handler of the service that answers with what the test has given it."""

    def __init__(self, service: Service, request: Request) -> None:
        self.service, self.request = service, request
        self.authenticated: Any = None
        self.received = b""

    def begin(self) -> Awaitable[None] | None:
        return None

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        self.received += chunk
        return None

    def answer(self) -> Awaitable[None] | None:
        service = self.service
        service.asked.append(self)
        connection: Any = self.request.connection
        headers = HTTPHeaders({"Content-Length": str(len(service.body))})
        line = ResponseStartLine("HTTP/1.1", service.status, "")
        connection.write_headers(line, headers, service.body)
        if service.is_cut_off:
            connection.close()
        else:
            connection.finish()
        return None


class Service:
    """The service behind the console."""

    def __init__(self, body: bytes = b"{}", *, is_cut_off: bool = False) -> None:
        self.body, self.status, self.is_cut_off = body, 200, is_cut_off
        self.asked: list[Handler] = []

    def handler(self, request: Request, _services: object) -> Handler:
        return Handler(self, request)


def a_client(service: Service, **headers: str) -> ServiceClient:
    connection = SimpleNamespace(stream=None, context=None)
    request = SimpleNamespace(headers=HTTPHeaders(headers), connection=connection)
    handler: Any = SimpleNamespace(request=request, request_id="r-1")
    return ServiceClient(cast("Any", service), cast("Any", None), handler)


async def test_a_request_is_made_as_the_caller_of_the_session() -> None:
    service = Service(b'{"a":1}')

    answer = await a_client(service).get(CALLER, "/fhir/r4/Patient", [("name", "a b"), ("x", "1")])

    assert (answer.status, answer.json) == (200, {"a": 1})
    (asked,) = service.asked
    assert asked.authenticated is CALLER
    assert (asked.request.method, asked.request.path) == ("GET", "/fhir/r4/Patient")
    assert asked.request.query == "name=a+b&x=1"


async def test_each_request_has_an_id_of_its_own() -> None:
    service = Service()
    client = a_client(service)

    for _ in range(2):
        await client.get(CALLER, "/x")

    ids = [one.request.headers["X-Request-Id"] for one in service.asked]
    assert ids == ["r-1-1", "r-1-2"]


async def test_a_body_is_sent_as_json_with_its_length() -> None:
    service = Service()

    await a_client(service).ask(CALLER, "PUT", "/x", {"a": "ü"})

    (asked,) = service.asked
    assert asked.received == '{"a":"ü"}'.encode()
    assert asked.request.headers["Content-Type"] == "application/json"
    assert asked.request.headers["Content-Length"] == "10"


async def test_without_a_body_there_is_no_content_type() -> None:
    service = Service()

    await a_client(service).ask(CALLER, "POST", "/x")

    assert "Content-Type" not in service.asked[0].request.headers
    assert service.asked[0].received == b""


async def test_only_the_address_and_the_trace_of_the_browser_are_passed_on() -> None:
    service = Service()
    sent = {
        "X-Forwarded-For": "198.51.100.9",
        "Traceparent": "00-1-2-01",
        "Cookie": "secret",
        "Authorization": "Bearer x",
        "If-Match": "*",
    }

    await a_client(service, **sent).get(CALLER, "/x")

    headers = service.asked[0].request.headers
    assert (headers["X-Forwarded-For"], headers["Traceparent"]) == ("198.51.100.9", "00-1-2-01")
    assert not {"Cookie", "Authorization", "If-Match"} & {*headers}


async def test_what_was_received_is_added_up() -> None:
    client = a_client(Service(b'{"a":1}'))

    for _ in range(2):
        await client.get(CALLER, "/x")

    assert client.received == 14


@pytest.mark.parametrize(("size", "fits"), [(_MOST_BYTES, True), (_MOST_BYTES + 1, False)])
async def test_an_answer_must_fit_into_a_page(size: int, *, fits: bool) -> None:
    client = a_client(Service(b" " * size))

    if fits:
        assert len((await client.get(CALLER, "/x")).body) == size
    else:
        with pytest.raises(AnswerTooLarge):
            await client.get(CALLER, "/x")


async def test_an_answer_that_was_cut_off_is_none() -> None:
    with pytest.raises(StoreUnavailable):
        await a_client(Service(is_cut_off=True)).get(CALLER, "/x")
