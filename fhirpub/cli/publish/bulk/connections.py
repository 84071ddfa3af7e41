"""Connections to the service that are kept for the next request, by aiohttp."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorError,
    ClientError,
    ClientResponse,
    ClientResponseError,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
)
from tornado.httpclient import HTTPClientError, HTTPRequest, HTTPResponse
from tornado.httputil import HTTPHeaders

from fhirpub.cli.http_client import Call
from fhirpub.cli.publish.retries import is_used_up, retry_after

_TIMES = ClientTimeout(total=120, sock_connect=10)
_LARGEST_ANSWER = 16 * 1024 * 1024
_NO_RESPONSE = 599


@dataclass(slots=True)
class Connections:
    """Connections to one service. A pause that it asks for applies to all of them."""

    session: ClientSession
    _free_from: float = field(default=0.0, init=False)

    async def send(self, call: Call) -> HTTPResponse:
        """Send once and return the response, like :func:`fhirpub.cli.http_client.send`."""
        now = asyncio.get_running_loop().time
        while (pause := self._free_from - now()) > 0:  # an answer may have extended it
            await asyncio.sleep(pause)
        answer = await self._send(call)
        if not is_used_up(answer):
            self._free_from = max(self._free_from, now() + retry_after(answer))
        return answer

    async def _send(self, call: Call) -> HTTPResponse:
        try:
            async with self.session.request(
                call.method, call.url, headers=call.headers, data=call.body, allow_redirects=False
            ) as answer:
                return await _read(answer, call)
        except ClientConnectorCertificateError as problem:
            raise problem.certificate_error from problem
        except ClientConnectorError as problem:
            raise problem.os_error from problem
        except TimeoutError as problem:
            raise HTTPClientError(_NO_RESPONSE, "there was no response in time") from problem
        except ClientResponseError as problem:
            raise HTTPClientError(_NO_RESPONSE, "the response is not HTTP") from problem
        except ClientError as problem:
            raise HTTPClientError(_NO_RESPONSE, "the connection was closed") from problem


@asynccontextmanager
async def connections(jobs: int, cacert: Path | None = None) -> AsyncIterator[Connections]:
    """Open at most ``jobs`` connections when they are needed, and close them at the end.

    ``cacert`` has the certificates to trust, instead of those of the system.
    """
    tls = ssl.create_default_context(cafile=cacert)
    connector = TCPConnector(limit=jobs, ssl=tls)
    async with ClientSession(
        connector=connector, timeout=_TIMES, cookie_jar=DummyCookieJar()
    ) as session:
        yield Connections(session)


async def _read(answer: ClientResponse, call: Call) -> HTTPResponse:
    body = bytearray()
    async for part in answer.content.iter_any():
        body += part
        if len(body) > _LARGEST_ANSWER:
            raise HTTPClientError(_NO_RESPONSE, "the response is too large")
    return HTTPResponse(
        HTTPRequest(call.url),
        answer.status,
        headers=HTTPHeaders(dict(answer.headers)),
        buffer=BytesIO(bytes(body)),
        reason=answer.reason,
    )
