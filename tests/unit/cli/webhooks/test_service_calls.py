"""Calls of a tenant's command: what is sent, and how a refusal reads."""

from __future__ import annotations

from decimal import Decimal
from io import BytesIO
from typing import Any

import pytest
from tornado.httpclient import HTTPRequest, HTTPResponse

from fhirpub.cli.webhooks.service_calls import Refused, WebhookCalls
from tests.canned import BASE, Canned, issue, outcome, response


def calls(*responses: HTTPResponse) -> tuple[WebhookCalls, Canned]:
    service = Canned(*responses)
    return WebhookCalls(service.publisher), service


async def test_a_query_is_part_of_the_address() -> None:
    made, service = calls(response(200, {"a": 1}), response(200))

    assert await made.get("/endpoints", limit=5, status="dead letter") == {"a": 1}
    await made.get("/endpoints")

    assert [call.url for call in service.calls] == [
        f"{BASE}/webhooks/v1/endpoints?limit=5&status=dead+letter",
        f"{BASE}/webhooks/v1/endpoints",
    ]
    assert service.calls[0].headers["Accept"] == "application/json"
    assert (service.calls[0].method, service.calls[0].body) == ("GET", None)


async def test_fields_are_sent_as_json() -> None:
    made, service = calls(response(201, {"id": "e"}))

    assert await made.send("POST", "/endpoints", {"url": "https://a.example"}) == {"id": "e"}

    assert service.calls[0].method == "POST"
    assert service.sent(0) == {"url": "https://a.example"}


@pytest.mark.parametrize(
    ("status", "refused"), [(200, False), (299, False), (300, True), (199, True)]
)
async def test_a_response_of_2xx_is_none_of_refusal(status: int, *, refused: bool) -> None:
    made, _ = calls(response(status, {"a": 1}))

    if refused:
        with pytest.raises(Refused) as problem:
            await made.get("/endpoints")
        assert problem.value.status == status
    else:
        assert await made.get("/endpoints") == {"a": 1}


async def test_a_refusal_lists_each_issue_with_its_places() -> None:
    found = outcome(issue("a", "url", "events"), issue("b"))
    made, _ = calls(response(422, found))

    with pytest.raises(Refused) as refused:
        await made.send("PATCH", "/endpoints/e", {})

    assert str(refused.value.message).splitlines() == [
        "the service refused it: 422 Unprocessable Entity",
        "  url events It is wrong.",
        "  It is wrong.",
    ]


@pytest.mark.parametrize(
    ("method", "scope"),
    [
        *(("GET", "webhooks.read"), ("POST", "webhooks.write")),
        *(("PATCH", "webhooks.write"), ("DELETE", "webhooks.write")),
    ],
)
async def test_a_missing_scope_is_named(method: str, scope: str) -> None:
    made, _ = calls(response(403, outcome()))

    with pytest.raises(Refused, match=f"The client needs the scope {scope}; the operator can"):
        await (made.get("/x") if method == "GET" else made.send(method, "/x", {}))


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b""])
async def test_a_body_of_a_proxy_is_an_empty_object(body: bytes) -> None:
    made, _ = calls(HTTPResponse(HTTPRequest(BASE), 200, buffer=BytesIO(body)))

    assert await made.get("/x") == {}


async def test_decimals_stay_as_they_are_written() -> None:
    made, _ = calls(HTTPResponse(HTTPRequest(BASE), 200, buffer=BytesIO(b'{"rate":0.10}')))

    found: Any = (await made.get("/x"))["rate"]

    assert str(Decimal(str(found))) == "0.10"
