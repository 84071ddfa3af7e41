"""Answers of a provider are bounded, and redirects are not followed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import pytest
from aiohttp import ClientTimeout

from fhirpub.console import provider_client
from fhirpub.console.provider_client import Document, request

MOST = 64 * 1024


@dataclass
class Provider:
    """A server that answers each request with the same bytes, and keeps what it got."""

    answer: bytes = b""
    port: int = 0
    got: list[bytes] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/token"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        self.got.append(head + await reader.readexactly(length))
        writer.write(self.answer)
        await writer.drain()
        writer.close()


@pytest.fixture
async def provider() -> AsyncGenerator[Provider]:
    provider = Provider()
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    provider.port = server.sockets[0].getsockname()[1]
    async with server:
        yield provider


def answer(body: bytes, *, status: str = "200 OK", more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{more}Connection: close\r\n\r\n"
    return head.encode() + body


async def test_a_form_and_headers_are_sent(provider: Provider) -> None:
    provider.answer = answer(b"{}", more="Cache-Control: max-age=5\r\n")

    found = await request("POST", provider.url, form={"code": "a b"}, headers={"X-A": "1"})

    assert found == Document(body=b"{}", cache_control="max-age=5")
    (sent,) = provider.got
    assert sent.startswith(b"POST /token HTTP/1.1\r\n")
    assert b"X-A: 1\r\n" in sent
    assert sent.endswith(b"\r\n\r\ncode=a+b")


@pytest.mark.parametrize(("size", "is_whole"), [(MOST, True), (MOST + 1, False)])
async def test_a_body_is_taken_up_to_its_limit(
    provider: Provider, size: int, *, is_whole: bool
) -> None:
    provider.answer = answer(b"x" * size)

    found = await request("GET", provider.url)

    assert len(found.body) == (size if is_whole else 0)
    assert bool(found.problem) is not is_whole


@pytest.mark.parametrize("status", ["400 Bad Request", "500 Internal Server Error"])
async def test_a_refusal_has_its_status_and_no_body(provider: Provider, status: str) -> None:
    provider.answer = answer(b"secret", status=status)

    found = await request("GET", provider.url)

    assert (found.problem, found.body) == (f"status {status[:3]}", b"")


async def test_a_redirect_is_not_followed(provider: Provider) -> None:
    provider.answer = answer(b"", status="302 Found", more=f"Location: {provider.url}\r\n")

    found = await request("GET", provider.url)

    assert found.body == b""
    assert len(provider.got) == 1


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "nonsense", "http://[/"])
async def test_an_address_that_leads_nowhere_is_a_problem(url: str) -> None:
    found = await request("GET", url)

    assert found.problem
    assert found.body == b""


def test_what_a_provider_answers_is_not_printed() -> None:
    assert "secret" not in repr(Document(body=b"secret"))


async def test_an_answer_that_ends_too_early_is_a_problem(provider: Provider) -> None:
    provider.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort"

    found = await request("GET", provider.url)

    assert (found.body, bool(found.problem)) == (b"", True)


async def test_a_provider_that_does_not_answer_in_time_is_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(provider_client, "_TIMEOUT", ClientTimeout(total=0.05))
    ended = asyncio.Event()

    async def silent(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ended.wait()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with asyncio.timeout(60):
            found = await request("GET", f"http://127.0.0.1:{port}/")
        ended.set()

    assert (found.body, bool(found.problem)) == (b"", True)
