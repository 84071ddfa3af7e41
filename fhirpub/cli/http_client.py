"""An HTTP client of the service: one request, its response, and retries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import click
import orjson
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest, HTTPResponse

FHIR_JSON = "application/fhir+json"
_LATER = frozenset({429, 502, 503, 504})
PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)
_MAX_PAUSE = 60.0
_LARGEST_ANSWER = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request. All of them are safe to repeat."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None

    @classmethod
    def form(cls, url: str, fields: Mapping[str, str]) -> Call:
        """Return the request that sends a form."""
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return cls(method="POST", url=url, headers=headers, body=urlencode(fields).encode())


@asynccontextmanager
async def http_client() -> AsyncIterator[AsyncHTTPClient]:
    """Open a separate client, and close it at the end."""
    client = AsyncHTTPClient(force_instance=True, max_body_size=_LARGEST_ANSWER)
    try:
        yield client
    finally:
        client.close()


async def send(client: AsyncHTTPClient, call: Call) -> HTTPResponse:
    """Send once and return the response, whatever its status.

    Raises OSError or HTTPClientError if there is none.
    """
    request = HTTPRequest(
        call.url,
        method=call.method,
        headers=dict(call.headers),
        body=call.body,
        follow_redirects=False,
        connect_timeout=10,
        request_timeout=120,
    )
    return await client.fetch(request, raise_error=False)


async def send_until_answered(
    client: AsyncHTTPClient,
    call: Call,
    *,
    note: Callable[[str], None],
    pauses: Iterable[float] = PAUSES,
) -> HTTPResponse:
    """Send the same request until the service has accepted or refused it, after each pause again.

    Requests that were lost, or deferred by the service, are sent again: nothing is published
    twice. ``note`` gets a message for every failed attempt.
    """
    waits = iter(pauses)
    while True:
        try:
            answer = await send(client, call)
        except (OSError, HTTPClientError) as problem:
            reason, at_least = f"{call.url} cannot be reached: {problem}", 0.0
        else:
            if answer.code not in _LATER or _is_used_up(answer):
                return answer
            reason = f"the service returned {answer.code} {answer.reason}"
            at_least = _retry_after(answer)
        pause = next(waits, None)
        if pause is None:
            raise click.ClickException(f"{reason}; gave up; the same command may be run again")
        wait = max(pause, at_least)
        note(f"{reason}; sending the same request again in {wait:g} s")
        await asyncio.sleep(wait)


def json_of(answer: HTTPResponse) -> dict[str, Any]:
    """Return the body as a JSON object, or an empty one if it is none."""
    try:
        value = orjson.loads(answer.body or b"")
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _is_used_up(answer: HTTPResponse) -> bool:
    """Return whether a quota is used up until tomorrow, which no command waits for."""
    text = answer.headers.get("Retry-After", "")
    return answer.code == 429 and text.isdecimal() and float(text) > _MAX_PAUSE


def _retry_after(answer: HTTPResponse) -> float:
    text = answer.headers.get("Retry-After", "")
    return min(float(text), _MAX_PAUSE) if text.isdecimal() else 0.0
