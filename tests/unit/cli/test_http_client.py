"""A request and its response."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.cli.http_client import Call, http_client, json_of, send


@pytest.mark.parametrize(("body", "parsed"), [({"a": 1}, {"a": 1}), ([1], {}), ("text", {})])
async def test_a_body_that_is_no_object_reads_as_an_empty_one(
    stub: Any, body: Any, parsed: dict[str, Any]
) -> None:
    stub.answers = [(200, {}, body)]

    async with http_client() as client:
        answer = await send(client, Call.form(stub.address, {}))

    assert json_of(answer) == parsed


def test_a_form_is_posted_with_its_type_and_escaped_fields() -> None:
    call = Call.form("https://fhir.example.org/oauth/token", {"scope": "a b", "x": "&é"})

    assert (call.method, call.url) == ("POST", "https://fhir.example.org/oauth/token")
    assert call.headers == {"Content-Type": "application/x-www-form-urlencoded"}
    assert call.body == b"scope=a+b&x=%26%C3%A9"


@pytest.mark.parametrize("status", [302, 404, 503])
async def test_each_status_is_a_response_and_no_redirect_is_followed(
    stub: Any, status: int
) -> None:
    stub.answers = [(status, {"Location": f"{stub.address}/other"}, {})]

    async with http_client() as client:
        answer = await send(client, Call.form(stub.address, {}))

    assert answer.code == status
    assert len(stub.requests) == 1
