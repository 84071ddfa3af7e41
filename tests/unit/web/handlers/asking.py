"""Requests that reach their handler in parts, on the event loop of a running service."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

from tornado.httputil import HTTPHeaders, RequestStartLine
from tornado.iostream import IOStream

from fhirpub.http.exchange import Exchange, Peer
from fhirpub.interactions.context import Context
from fhirpub.testing.service import Answer, Integrator, RunningService
from fhirpub.web.admission.memory_budget import MemoryBudget
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.batch.exchange import AnswerBytes, EntryExchange
from fhirpub.web.handlers.body import BodyHandler
from fhirpub.web.message.request import Request
from fhirpub.web.routes import Router
from fhirpub.web.services import Services

REPORTS = "/fhir/r4/DiagnosticReport"
MOST = 300_000
"""The bytes of a body that a service of small bodies takes."""
_ROOM = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, its handler, and the answer, which stays in memory."""

    request: Request
    handler: BaseHandler
    exchange: EntryExchange

    @property
    def body_handler(self) -> BodyHandler:
        return cast("BodyHandler", self.handler)


class NotingMemory(MemoryBudget):
    """Memory for large answers, which notes how much is asked for, and the owner."""

    def __init__(self) -> None:
        super().__init__(_ROOM, patience_seconds=1)
        self.asked_for: list[tuple[int, str]] = []

    def acquire(
        self, request: Request, size: int, *, expected: int = 0, owner: str = ""
    ) -> Awaitable[None] | None:
        self.asked_for.append((size, owner))
        return super().acquire(request, size, expected=expected, owner=owner)


class Places:
    """Computes what it is given, and notes where it does, and the owner."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.seen: list[tuple[str, str]] = []

    async def run(self, owner: str, work: Callable[..., Any], *chunks: Sequence[bytes]) -> Any:
        self.seen.append(("process" if chunks else "thread", owner))
        return work(self.context, b"".join(*chunks)) if chunks else work()


def running(lab: Integrator) -> RunningService:
    """Return the service that a client calls, which runs in this process."""
    assert isinstance(lab.service, RunningService)
    return lab.service


def path_of(answer: Answer) -> str:
    """Return the address of a resource from that of its version."""
    return answer.headers["location"].partition("/_history")[0]


def id_of(answer: Answer) -> str:
    """Return the id of a resource from the address of its version."""
    return answer.headers["location"].split("/")[-3]


def named(headers: Mapping[str, str]) -> dict[str, str]:
    """Return header fields whose names are given as those of arguments."""
    return {name.replace("_", "-"): value for name, value in headers.items()}


@asynccontextmanager
async def asked(
    lab: Integrator,
    method: str,
    path: str,
    headers: Mapping[str, str] | None = None,
    *,
    services: Services | None = None,
) -> AsyncGenerator[Asked]:
    """Hand the head of a request with the token of a client to its handler.

    What is not answered when the block ends is cancelled, as if the client had left.
    """
    services = services or running(lab).services
    ours, theirs = socket.socketpair()
    stream = IOStream(ours)
    line = RequestStartLine(method, path, "HTTP/1.1")
    wire = Exchange(stream, Peer("127.0.0.1"), line, is_last=False)
    exchange = EntryExchange(wire, AnswerBytes(_ROOM))
    given = {"Authorization": f"Bearer {lab.token}", **(headers or {})}
    if method in ("POST", "PATCH"):
        given.setdefault("Content-Type", "application/fhir+json")
    request = Request(line, HTTPHeaders(given), exchange)
    handler = Router(services).handler(request)
    try:
        later = handler.begin()
        if later is not None:
            await later
        yield Asked(request, handler, exchange)
    finally:
        handler.cancel()
        stream.close()
        theirs.close()


def on_request(
    lab: Integrator,
    use: Callable[[Asked], Awaitable[Any]],
    method: str = "GET",
    path: str = REPORTS,
    headers: dict[str, str] | None = None,
) -> Any:
    """Begin a request on the loop of the service, and return what is made of it."""

    async def used() -> Any:
        async with asked(lab, method, path, headers) as one:
            return await use(one)

    return running(lab).call(used())


def small_parts(data: bytes, size: int) -> list[bytes]:
    """Return bytes in pieces of a size."""
    return [data[start : start + size] for start in range(0, len(data), size)]
