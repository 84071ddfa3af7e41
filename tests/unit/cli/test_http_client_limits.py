"""Clients of commands are separate, closed, and wait for an end."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from tornado.httpclient import AsyncHTTPClient, HTTPRequest

from fhirpub.cli.http_client import Call, http_client, send


async def test_each_client_is_a_separate_one_and_closed_at_the_end() -> None:
    async with http_client() as first, http_client() as second:
        assert first is not second
        assert AsyncHTTPClient() not in (first, second)
        assert not cast("Any", first)._closed

    assert cast("Any", first)._closed
    assert cast("Any", second)._closed


async def test_a_client_trusts_the_certificates_that_are_named(tmp_path: Path) -> None:
    file = tmp_path / "authority.pem"

    async with http_client(file) as client, http_client() as other:
        assert cast("Any", client).defaults["ca_certs"] == str(file)
        assert "ca_certs" not in cast("Any", other).defaults


async def test_a_request_waits_ten_seconds_to_connect_and_two_minutes_in_all() -> None:
    sent: list[HTTPRequest] = []

    class Client:
        async def fetch(self, request: HTTPRequest, *, raise_error: bool) -> None:
            assert not raise_error
            sent.append(request)

    call = Call(method="PUT", url="https://a.example/x", headers={"X-A": "1"}, body=b"b")
    await send(cast("AsyncHTTPClient", Client()), call)

    (request,) = sent
    assert (request.connect_timeout, request.request_timeout) == (10, 120)
    assert (request.method, request.body, request.headers["X-A"]) == ("PUT", b"b", "1")
    assert request.follow_redirects is False
