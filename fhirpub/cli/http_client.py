"""An HTTP client of the service: one request and its response."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson
from tornado.httpclient import AsyncHTTPClient, HTTPRequest, HTTPResponse

FHIR_JSON = "application/fhir+json"
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
async def http_client(cacert: Path | None = None) -> AsyncIterator[AsyncHTTPClient]:
    """Open a separate client, and close it at the end.

    ``cacert`` has the certificates to trust, instead of those of the system.
    """
    client = AsyncHTTPClient(
        force_instance=True,
        max_body_size=_LARGEST_ANSWER,
        defaults={"ca_certs": str(cacert)} if cacert else {},
    )
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


def json_of(answer: HTTPResponse) -> dict[str, Any]:
    """Return the body as a JSON object, or an empty one if it is none."""
    try:
        value = orjson.loads(answer.body or b"")
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
