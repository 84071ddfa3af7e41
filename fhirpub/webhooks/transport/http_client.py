"""One attempt to deliver an event, by aiohttp, whatever the receiver does (D-174 to D-176)."""

from __future__ import annotations

import asyncio
import math
import re
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import (
    AddrInfoType,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientError,
    ClientResponse,
    ClientResponseError,
    ClientSession,
    ClientSSLError,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
)
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import Connection
from yarl import URL

from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.errors import InvalidContent
from fhirpub.fhir.times import from_http
from fhirpub.runtime.clock import Clock
from fhirpub.webhooks.policy.outcome import Outcome, Reason, Wish
from fhirpub.webhooks.transport.signing import signed_headers
from fhirpub.webhooks.transport.url_policy import Target, TargetRules

MAX_READ_BYTES = 65_536
MAX_KEPT_BYTES = 4_096
_MAX_HEADER_BYTES = 8_190
_MAX_HEADERS = 100
_MAX_ADDRESSES = 8
_RESOLVING_THREADS = 32
_MAX_HANGING_LOOKUPS = 1_000
_KEPT_SECONDS = 1.0
"""How long a connection waits for the next message: shorter than servers wait for it."""
_IDLE_SECONDS = 30.0
_SECONDS = re.compile("[0-9]{1,9}")
_MAX_DATE_LENGTH = len("Wednesday, 21-Nov-26 10:00:00 GMT")
_HIDDEN = b"[token]"
LookUp = Callable[..., Sequence[AddrInfoType]]
"""Finds the addresses of a host as :func:`socket.getaddrinfo` does; raises OSError."""

_WISHES: tuple[Wish, ...] = ("disable", "abort-message")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One event on its way to one endpoint.

    ``body`` is sent byte for byte, at every attempt. ``secrets`` are those that sign, newest
    first; ``number`` counts the attempts from 1; ``sequence`` is the event's place in the
    endpoint's. Messages of one ``endpoint`` may share a connection; without one each has its own.
    """

    url: str
    token: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    event_id: str
    event_type: str
    body: bytes = field(repr=False)
    number: int
    sequence: int
    endpoint: str = ""


class Sender:
    """Sends messages; safe to use from many tasks of one event loop. Close it in the end.

    Connections are kept for the next message of the same endpoint, for a second. No two
    endpoints share one, so that nothing is shared between tenants. ``tls`` is for receivers whose
    authority the machine does not know, ``look_up`` for names that it does not know. ``blocked``
    is called when a host led to no address but those that are refused.
    """

    def __init__(
        self,
        settings: WebhooksConfig,
        *,
        clock: Clock,
        tls: ssl.SSLContext | None = None,
        look_up: LookUp = socket.getaddrinfo,
        blocked: Callable[[], None] = lambda: None,
    ) -> None:
        self._rules = TargetRules(allow_networks=settings.allow_networks, ports=settings.ports)
        self._seconds = settings.timeout_seconds
        self._connect_seconds = settings.connect_seconds
        self._agent = f"{settings.service_name}-Webhooks/1.0"
        self._clock = clock
        self._tls = tls or ssl.create_default_context()
        self._resolver = _Resolver(look_up, patience_seconds=settings.connect_seconds)
        self._blocked = blocked
        self._lines: dict[tuple[str, str], _Line] = {}

    async def close(self) -> None:
        """Close the connections and release the threads; their pending lookups are abandoned."""
        for line in self._lines.values():
            await line.session.close()
        self._lines.clear()
        self._resolver.stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    async def target(self, url: str) -> Target:
        """Return a URL that may be registered, in canonical form, once its host was looked up.

        Raises InvalidContent, which does not reveal whether the host is unknown or blocked.
        """
        target = self._rules.target(url)
        try:
            async with asyncio.timeout(self._connect_seconds):
                found = await self._resolver.resolve_unknown(target.host, target.port)
        except (OSError, TimeoutError):
            found = []
        if not any(self._rules.permits(item["host"], target) for item in found):
            if found:
                self._blocked()
            raise InvalidContent.because(
                "has a host that leads to no address to which webhooks are sent",
                expression="url",
                code="value",
            )
        return target

    async def attempt(self, message: Message) -> Outcome:
        """Send a message once and return what came of it, whatever the receiver does.

        It ends within ``timeout_seconds``, connecting within ``connect_seconds``. An answer counts
        as soon as its headers are complete; whatever its body does then changes nothing. A
        connection that an earlier attempt left open and that breaks is a failure like any other:
        it is unknown whether the receiver has read the message. Raises BadSecret and ValueError
        for a message that cannot be signed.
        """
        begun = time.monotonic()
        headers = self._headers(message)
        exchange = _Exchange(self._rules)
        _current.set(exchange)
        reason: Reason | None = None
        try:
            async with asyncio.timeout(self._seconds):
                await self._send(message, headers, exchange)
        except (InvalidContent, ClientError, OSError) as problem:
            reason = None if exchange.status else exchange.reason_of(problem)
        if reason == "E_BLOCKED_ADDRESS":
            self._blocked()
        return Outcome(
            reason=reason,
            status=exchange.status,
            retry_after=exchange.retry_after,
            wish=exchange.wish,
            duration=round((time.monotonic() - begun) * 1000),
            dialled=tuple(exchange.dialled),
            answer=as_kept(exchange.body, message.token)[:MAX_KEPT_BYTES],
        )

    async def _send(self, message: Message, headers: dict[str, str], exchange: _Exchange) -> None:
        line = await self._line(message)
        line.under_way += 1
        exchange.target = line.target
        try:
            async with line.session.post(
                line.url, data=message.body, headers=headers, allow_redirects=False
            ) as answer:
                exchange.take_headers(answer, self._clock())
                await exchange.take_body(answer)
        finally:
            line.under_way -= 1
            line.used = time.monotonic()
            if not message.endpoint:
                await line.session.close()

    async def _line(self, message: Message) -> _Line:
        """Return the connections to an endpoint. Raises InvalidContent for a URL that is refused.

        The URL is checked again: the operator's rules may have changed since it was registered.
        """
        key = (message.endpoint, message.url)
        line = self._lines.get(key)
        if line is None:
            target = self._rules.target(message.url)
            line = _Line(target, URL(target.url, encoded=True), self._session(message.endpoint))
            if message.endpoint:
                self._lines[key] = line
            await self._close_idle()
        return line

    def _session(self, endpoint: str) -> ClientSession:
        keep: dict[str, Any] = {"keepalive_timeout": _KEPT_SECONDS}
        connector = _Connector(
            resolver=self._resolver,
            socket_factory=lambda found: _current.get().open_socket(found),
            ssl=self._tls,
            use_dns_cache=False,
            limit=0,
            timeout_ceil_threshold=math.inf,
            **(keep if endpoint else {"force_close": True}),
        )
        return ClientSession(
            connector=connector,
            cookie_jar=DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            timeout=ClientTimeout(total=None, connect=self._connect_seconds),
            max_line_size=_MAX_HEADER_BYTES,
            max_field_size=_MAX_HEADER_BYTES,
            max_headers=_MAX_HEADERS,
        )

    async def _close_idle(self) -> None:
        before = time.monotonic() - _IDLE_SECONDS
        idle = [
            key for key, line in self._lines.items() if not line.under_way and line.used < before
        ]
        for line in [self._lines.pop(key) for key in idle]:
            await line.session.close()

    def _headers(self, message: Message) -> dict[str, str]:
        now = self._clock() // 1000
        return {
            "Content-Type": "application/json",
            "User-Agent": self._agent,
            "Accept-Encoding": "identity",
            "Authorization": f"Bearer {message.token}",
            "X-Webhook-Event": message.event_type,
            "X-Webhook-Attempt": str(message.number),
            "X-Webhook-Sequence": str(message.sequence),
            **signed_headers(message.event_id, now, message.body, secrets=message.secrets),
        }


@dataclass(slots=True)
class _Line:
    """The connections to one endpoint, and when the last of them was used."""

    target: Target
    url: URL
    session: ClientSession
    under_way: int = 0
    used: float = field(default_factory=time.monotonic)


class _BlockedAddress(OSError):
    """An address that webhooks are not sent to; the connector goes on to the next."""


class _Exchange:
    """What is known of one attempt so far."""

    def __init__(self, rules: TargetRules) -> None:
        self._rules = rules
        self.target: Target | None = None
        self.dialled: list[str] = []
        self.status = 0
        self.retry_after: float | None = None
        self.wish: Wish | None = None
        self.body = b""

    def open_socket(self, found: AddrInfoType) -> socket.socket:
        """Return a socket for an address that may be dialled.

        Every address comes through here, those in the URL itself too, which no resolver sees.
        """
        family, kind, protocol, _name, place = found
        address = str(place[0])
        if self.target is None or not self._rules.permits(address, self.target):
            raise _BlockedAddress
        self.dialled.append(address)
        return socket.socket(family, kind, protocol)

    def take_headers(self, answer: ClientResponse, now: int) -> None:
        self.retry_after = _retry_after(answer.headers.get("Retry-After", ""), now)
        wish = answer.headers.get("webhook-delivery", "").strip().lower()
        self.wish = next((item for item in _WISHES if item == wish), None)
        self.status = answer.status

    async def take_body(self, answer: ClientResponse) -> None:
        while len(self.body) < MAX_READ_BYTES:
            piece = await answer.content.read(MAX_READ_BYTES - len(self.body))
            if not piece:
                return
            self.body += piece

    def reason_of(self, problem: Exception) -> Reason:
        if isinstance(problem, InvalidContent):
            return "E_BLOCKED_ADDRESS"
        if isinstance(problem, TimeoutError):
            return "E_TIMEOUT"
        if isinstance(problem, ClientConnectorDNSError):
            return "E_DNS"
        if isinstance(problem, ClientSSLError):
            return "E_TLS"
        if isinstance(problem, ClientConnectorError):
            return self._reason_of_connect(problem.os_error)
        return "E_MALFORMED" if isinstance(problem, ClientResponseError) else "E_RESET"

    def _reason_of_connect(self, problem: OSError) -> Reason:
        if not self.dialled:
            return "E_BLOCKED_ADDRESS"
        return "E_RESET" if isinstance(problem, ConnectionResetError) else "E_CONNECT"


_current: ContextVar[_Exchange] = ContextVar("exchange")
"""The attempt that a connection is opened for: the connector itself does not know it."""


class _Connector(TCPConnector):
    """Leaves kept connections over which something came unasked (RFC 9112 section 9.2).

    It would be taken for the answer to the next message, which the receiver may never read.
    """

    async def connect(self, *values: Any, **named: Any) -> Connection:
        while True:
            connection = await super().connect(*values, **named)
            is_new = bool(_current.get().dialled)
            if is_new or connection.protocol is None or not connection.protocol.should_close:
                return connection
            connection.close()


_Name = tuple[str, int, int]


class _Resolver(AbstractResolver):
    """Resolves names in threads of its own: a lookup that hangs must not block anything else.

    A name that is being looked up has one thread, however many wait for it. One that took longer
    than any caller waits is resolved in a separate pool until it is found in time.
    """

    def __init__(self, look_up: LookUp, *, patience_seconds: float) -> None:
        self._look_up = look_up
        self._patience_seconds = patience_seconds
        self._threads = ThreadPoolExecutor(_RESOLVING_THREADS, "webhook-names")
        self._apart = ThreadPoolExecutor(_RESOLVING_THREADS, "webhook-names-apart")
        self._under_way: dict[_Name, asyncio.Future[Sequence[AddrInfoType]]] = {}
        self._begun: dict[_Name, float] = {}
        self._hung: dict[_Name, None] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        known = (host, port, family) not in self._hung
        return await self._resolve((host, port, family), self._threads if known else self._apart)

    async def resolve_unknown(self, host: str, port: int) -> list[ResolveResult]:
        """Resolve a name in the separate pool, since it may hang."""
        return await self._resolve((host, port, socket.AF_UNSPEC), self._apart)

    async def _resolve(self, key: _Name, threads: ThreadPoolExecutor) -> list[ResolveResult]:
        host, port, _family = key
        search = self._under_way.get(key)
        if search is None:
            search = asyncio.get_running_loop().run_in_executor(threads, self._search, key)
            self._under_way[key] = search
            search.add_done_callback(lambda done: self._forget(key, done))
        found = await asyncio.shield(search)
        return [
            ResolveResult(
                hostname=host,
                host=str(place[0]),
                port=port,
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _type, protocol, _name, place in found[:_MAX_ADDRESSES]
        ]

    def _search(self, key: _Name) -> Sequence[AddrInfoType]:
        self._begun[key] = time.monotonic()
        return self._look_up(*key, socket.SOCK_STREAM)

    def _forget(self, key: _Name, done: asyncio.Future[Sequence[AddrInfoType]]) -> None:
        del self._under_way[key]
        if done.cancelled():
            return
        done.exception()  # all waiters may be gone: retrieve it
        self._hung.pop(key, None)
        if time.monotonic() - self._begun.pop(key) > self._patience_seconds:
            self._hung[key] = None
        if len(self._hung) > _MAX_HANGING_LOOKUPS:
            del self._hung[next(iter(self._hung))]

    def stop(self) -> None:
        for threads in (self._threads, self._apart):
            threads.shutdown(wait=False, cancel_futures=True)

    async def close(self) -> None:
        """Do nothing: a connector may close it, and the next still needs the threads."""


def as_kept(answer: bytes, token: str) -> bytes:
    """Return what may be kept of an answer that repeats the token."""
    return answer.replace(token.encode(), _HIDDEN)


def _retry_after(text: str, now: int) -> float | None:
    """Read the header as seconds from now: whole seconds, or a date (RFC 9110 section 10.2.3)."""
    if _SECONDS.fullmatch(text):
        return float(text)
    moment = from_http(text) if 0 < len(text) <= _MAX_DATE_LENGTH else None
    return None if moment is None else max(0.0, (moment - now) / 1000)
