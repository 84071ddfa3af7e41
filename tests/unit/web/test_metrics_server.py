"""The page of metrics: its one path, its methods, its formats, and bodies that do not come."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator

import pytest
from tornado.httputil import HTTPHeaders, HTTPInputError, ResponseStartLine

from fhirpub.config.monitoring import MetricsConfig
from fhirpub.runtime.metrics import Metrics
from fhirpub.web.metrics_server import _Page, bind_page, serve_metrics
from tests.ports import free_port


@pytest.fixture
async def port() -> AsyncGenerator[int]:
    """The port where the metrics of no service are served."""
    config = MetricsConfig(port=free_port())
    sockets = bind_page(config)
    async with serve_metrics(Metrics(serves=True, sends=True), sockets):
        yield config.port


async def ask(port: int, start: str, *lines: str, body: bytes = b"") -> tuple[str, str, bytes]:
    """Return the first line, the headers and the body of an answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = [f"{start} HTTP/1.1", "Host: a", *lines, "Connection: close", "", ""]
    writer.write("\r\n".join(head).encode() + body)
    async with asyncio.timeout(30):
        received = await reader.read()
    writer.close()
    begun, _, rest = received.partition(b"\r\n\r\n")
    line, _, headers = begun.decode().partition("\r\n")
    return line, headers, rest


@pytest.mark.parametrize("path", ["/metrics", "/metrics?name=x"])
async def test_metrics_are_shown(port: int, path: str) -> None:
    line, headers, body = await ask(port, f"GET {path}")

    assert line == "HTTP/1.1 200 OK"
    assert "Content-Type: text/plain" in headers
    assert f"Content-Length: {len(body)}" in headers
    assert b"# HELP fhirpub_" in body


async def test_metrics_are_open_metrics_for_a_client_that_accepts_them(port: int) -> None:
    _, headers, body = await ask(port, "GET /metrics", "Accept: application/openmetrics-text")

    assert "Content-Type: application/openmetrics-text" in headers
    assert body.endswith(b"# EOF\n")


async def test_head_has_the_length_only(port: int) -> None:
    line, headers, body = await ask(port, "HEAD /metrics")

    assert (line, body) == ("HTTP/1.1 200 OK", b"")
    assert "Content-Length: 0" not in headers


@pytest.mark.parametrize(
    "start", ["GET /", "GET /metrics/", "GET /metric", "POST /metrics", "DELETE /metrics"]
)
async def test_all_else_is_not_found(port: int, start: str) -> None:
    line, headers, body = await ask(port, start)

    assert (line, body) == ("HTTP/1.1 404 Not Found", b"")
    assert "Content-Length: 0" in headers


@pytest.mark.parametrize("header", ["Content-Length: 9", "Transfer-Encoding: chunked"])
async def test_a_body_that_does_not_come_is_not_waited_for(port: int, header: str) -> None:
    line, _, _ = await ask(port, "GET /metrics", header)

    assert line.startswith("HTTP/1.1 200")


async def test_an_empty_body_is_none(port: int) -> None:
    assert (await ask(port, "GET /metrics", "Content-Length: 0"))[0] == "HTTP/1.1 200 OK"


async def test_nothing_is_served_after_the_end() -> None:
    config = MetricsConfig(port=free_port())
    async with serve_metrics(Metrics(serves=True, sends=True), bind_page(config)):
        assert (await ask(config.port, "GET /metrics"))[0] == "HTTP/1.1 200 OK"

    with pytest.raises(OSError, match=r"refused|failed"):
        socket.create_connection(("127.0.0.1", config.port), timeout=5)


async def test_a_connection_that_is_left_open_ends_with_the_server() -> None:
    config = MetricsConfig(port=free_port())
    async with serve_metrics(Metrics(serves=True, sends=True), bind_page(config)):
        reader, writer = await asyncio.open_connection("127.0.0.1", config.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")

    async with asyncio.timeout(30):
        assert await reader.read() == b""
    writer.close()


def test_without_a_port_nothing_is_bound() -> None:
    assert bind_page(MetricsConfig()) == []


def test_what_answers_is_no_request() -> None:
    message = _Page(Metrics(serves=True, sends=True)).start_request(None, None)

    with pytest.raises(HTTPInputError):
        message.headers_received(ResponseStartLine("HTTP/1.1", 200, "OK"), HTTPHeaders())


async def test_what_is_not_found_is_plain_text(port: int) -> None:
    _line, headers, _body = await ask(port, "GET /")

    assert "Content-Type: text/plain" in headers
