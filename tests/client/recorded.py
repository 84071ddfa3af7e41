"""Responses at hand in place of a service, and the requests that would have been sent to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx

from fhirpub_client import AsyncClient, Client, Secret

BASE = "https://fhir.example.org"
GRANTED = {"access_token": "t-1", "expires_in": 3_600}


class Recorded(httpx.MockTransport):
    """Grants a token, and gives the next response to each other request."""

    def __init__(self, *responses: httpx.Response | Exception) -> None:
        self.requests: list[httpx.Request] = []
        """Requests but for those of tokens."""
        self.token_requests: list[httpx.Request] = []
        self._responses = list(responses)
        super().__init__(self._answer)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        request.read()
        if request.url.path.endswith("/oauth/token"):
            self.token_requests.append(request)
            return httpx.Response(200, json=GRANTED)
        self.requests.append(request)
        response = self._responses.pop(0)
        if isinstance(response, Exception):
            raise response
        return response


def with_client(service: httpx.MockTransport, use: Callable[[Any], Any], **options: Any) -> Any:
    """Return what a client of threads does."""
    with Client(BASE, Secret("id", "secret"), transport=service, **options) as client:
        return use(client)


def with_async_client(
    service: httpx.MockTransport, use: Callable[[Any], Any], **options: Any
) -> Any:
    """Return what a client of an event loop does."""

    async def run() -> Any:
        async with AsyncClient(
            BASE, Secret("id", "secret"), transport=service, **options
        ) as client:
            return await use(client)

    return asyncio.run(run())
