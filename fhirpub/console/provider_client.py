"""Requests of an OpenID Connect provider, by aiohttp: bounded in time and size."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout

_MOST_BYTES = 64 * 1024
_TIMEOUT = ClientTimeout(total=10)


@dataclass(frozen=True, slots=True)
class Document:
    """What came of a request: ``problem`` is empty, or why there is no body."""

    problem: str = ""
    body: bytes = field(default=b"", repr=False)
    cache_control: str = ""


async def request(
    method: str,
    url: str,
    *,
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Document:
    """Ask the provider, whose address is the operator's; redirects are not followed."""
    try:
        async with (
            ClientSession(timeout=_TIMEOUT) as session,
            session.request(
                method,
                url,
                data=form,
                headers=headers,
                allow_redirects=False,
            ) as answer,
        ):
            body = b"".join([chunk async for chunk in _pieces(answer)])
            is_whole = answer.ok and len(body) <= _MOST_BYTES
            problem = "" if is_whole else f"status {answer.status}"
            control = answer.headers.get("Cache-Control", "")
            return Document(problem, b"" if problem else body, control)
    except (ClientError, OSError, TimeoutError, ValueError) as problem:
        return Document(type(problem).__name__)


async def _pieces(answer: ClientResponse) -> AsyncIterator[bytes]:
    """Yield the body of an answer, up to a piece more than is read."""
    size = 0
    async for chunk in answer.content.iter_any():
        size += len(chunk)
        yield chunk
        if size > _MOST_BYTES:
            return
