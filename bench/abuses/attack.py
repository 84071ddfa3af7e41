"""What every abuse is given: a tenant's credentials, a time limit, and ways to send requests."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from bench.abuses.bodies import Body, JsonValue, encoded
from bench.payloads import REPORTS
from bench.wire import Chunks, Disconnected, Wire

ADDRESS = "127.0.0.2"
"""The abuser is another machine than the neighbour, as far as the service can see."""
NEIGHBOURS_ADDRESS = "127.0.0.1"
CONNECTIONS = 8
FHIR_JSON, FHIR_XML = "application/fhir+json", "application/fhir+xml"
REGISTER, VALIDATE = f"{REPORTS}/$register", f"{REPORTS}/$validate"
_MAX_REQUESTS = 400_000
_MAX_BYTES = 6 * 1024**3
"""The most that one abuse sends, so that its disk space stays bounded."""
_PAUSE_SECONDS = 0.01
_PREPARING = 8
_LOCATION = re.compile(rb"\r\nlocation: *https?://[^/]+([^\r]*?)(?:/_history/1)?\r", re.IGNORECASE)

Phases = AsyncGenerator[None, None]
Requests = Iterator[Chunks]


class NotPrepared(Exception):
    """The service did not take what an abuse needs before it can start."""


@dataclass(kw_only=True)
class Attack:
    """One run of an abuse. The tallies count what the service answered."""

    port: int
    token: str
    client_id: str
    audience: str
    seconds: float = 0.0
    statuses: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    sent: int = 0
    _serials: Iterator[int] = field(default_factory=itertools.count)

    @property
    def is_over(self) -> bool:
        """Whether the bound of requests or bytes is reached."""
        return self.requests >= _MAX_REQUESTS or self.sent >= _MAX_BYTES

    def count(self, outcome: int | str) -> None:
        """Count one outcome: a status, or what happened instead."""
        self.statuses[str(outcome)] += 1

    # Requests

    def head(
        self, start: str, *more: str, length: int | None = None, media_type: str = FHIR_JSON
    ) -> bytes:
        """Return a head with the token; ``more`` are further header lines."""
        lines = [f"{start} HTTP/1.1", "Host: abuser", f"Authorization: Bearer {self.token}"]
        if length is not None:
            lines += [f"Content-Type: {media_type}", f"Content-Length: {length}"]
        return "\r\n".join([*lines, *more, "", ""]).encode("latin-1")

    def get(self, path: str, *more: str) -> Requests:
        """Yield the same GET request again and again."""
        return itertools.repeat((self.head(f"GET {path}", *more),))

    def post(self, path: str, body: bytes, *more: str, media_type: str = FHIR_JSON) -> Requests:
        """Yield the same POST request again and again."""
        head = self.head(f"POST {path}", *more, length=len(body), media_type=media_type)
        return itertools.repeat((head, body))

    def patch(self, path: str, body: bytes, *, media_type: str = FHIR_JSON) -> Requests:
        """Yield the same PATCH request again and again."""
        head = self.head(f"PATCH {path}", length=len(body), media_type=media_type)
        return itertools.repeat((head, body))

    def post_new(self, path: str, body: Body, *more: str, media_type: str = FHIR_JSON) -> Requests:
        """Yield POST requests, each with an identifier of its own."""
        head = self.head(f"POST {path}", *more, length=body.length, media_type=media_type)
        return ((head, *body.numbered(next(self._serials))) for _ in itertools.count())

    # Traffic

    async def connect(self, *, source: str = ADDRESS, receive_buffer: int = 0) -> Wire:
        """Open a connection."""
        return await Wire.open(self.port, source=source, receive_buffer=receive_buffer)

    async def flood(self, requests: Requests, *, connections: int = CONNECTIONS) -> None:
        """Send requests as fast as responses arrive, until the time is over."""

        async def one() -> None:
            while not self.is_over:
                with await self.connect() as wire:
                    while not self.is_over:
                        status = await self.ask(wire, next(requests))
                        self.count(status)

        await self.repeat(one, connections)

    async def ask(self, wire: Wire, request: Chunks) -> int:
        """Send one request and return the status of its response."""
        self.requests += 1
        self.sent += sum(map(len, request))
        await wire.send(*request)
        return (await wire.answer())[0]

    async def repeat(self, work: Callable[[], Awaitable[Any]], count: int) -> None:
        """Run ``count`` tasks that repeat ``work`` until the time or the bound is reached.

        A connection that the service closes is counted, and the work begins again.
        """

        async def again() -> None:
            while not self.is_over:
                try:
                    await work()
                except (OSError, Disconnected) as problem:
                    self.requests += 1
                    self.count(type(problem).__name__)
                    await asyncio.sleep(_PAUSE_SECONDS)

        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(again())

    # Preparation

    async def register(self, body: Body, count: int = 1) -> list[str]:
        """Register reports before the abuse begins; return their paths."""
        paths: list[str] = []
        numbers = iter(range(count))

        async def some() -> None:
            with await self.connect() as wire:
                for _ in numbers:
                    await wire.send(*next(self.post_new(REGISTER, body)))
                    paths.append(_path_of(*await wire.answer()))

        await asyncio.gather(*(some() for _ in range(min(count, _PREPARING))))
        return paths

    async def send_once(
        self, method: str, path: str, body: JsonValue = None, *, media_type: str = FHIR_JSON
    ) -> tuple[int, bytes]:
        """Send one request before the abuse begins; return its status and the head."""
        raw = b"" if body is None else encoded(body)
        length = None if body is None else len(raw)
        with await self.connect() as wire:
            head = self.head(f"{method} {path}", length=length, media_type=media_type)
            await wire.send(head, raw)
            return await wire.answer()


async def cancelled(task: asyncio.Future[Any]) -> None:
    """Cancel a task and wait for its end, so that its connection can be closed."""
    task.cancel()
    await asyncio.wait([task])


def _path_of(status: int, head: bytes) -> str:
    found = _LOCATION.search(head)
    if status != 201 or found is None:
        raise NotPrepared(f"status {status}")
    return found[1].decode()


@dataclass(frozen=True, slots=True)
class Abuse:
    """An abuse by name: it prepares, yields, and then runs until it is cancelled."""

    name: str
    sentence: str
    expected: frozenset[str]
    run: Callable[[Attack], Phases]


REGISTERED: dict[str, Abuse] = {}


def abuse(*expected: int | str) -> Callable[[Callable[[Attack], Phases]], Abuse]:
    """Register an abuse; ``expected`` are the outcomes that show that it works as intended."""

    def registered(run: Callable[[Attack], Phases]) -> Abuse:
        name = run.__name__.replace("_", "-")
        sentence = " ".join((run.__doc__ or "").split())
        REGISTERED[name] = Abuse(name, sentence, frozenset(map(str, expected)), run)
        return REGISTERED[name]

    return registered
