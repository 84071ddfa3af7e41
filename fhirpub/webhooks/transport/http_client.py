"""One attempt to deliver an event or to get a document, by aiohttp, whatever the other side does.

D-174 to D-176 list what ends it.
"""

from __future__ import annotations

import asyncio
import math
import socket
import ssl
import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

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
from fhirpub.runtime.clock import Clock
from fhirpub.webhooks.policy.outcome import Outcome, Reason, Wish
from fhirpub.webhooks.transport.message import Message
from fhirpub.webhooks.transport.name_lookup import NameLookup, address_in
from fhirpub.webhooks.transport.response import Retrieved, as_kept, retry_after, wish_in
from fhirpub.webhooks.transport.url_policy import Target, TargetRules

MAX_READ_BYTES = 65_536
MAX_KEPT_BYTES = 4_096
_MAX_HEADER_BYTES = 8_190
_MAX_HEADERS = 100
_KEPT_SECONDS = 1.0
"""How long a connection waits for the next message: shorter than servers wait for it."""
_IDLE_SECONDS = 30.0


class HttpClient:
    """The connections of a sender, which are kept for the next message of the same endpoint."""

    def __init__(
        self,
        settings: WebhooksConfig,
        rules: TargetRules,
        lookup: NameLookup,
        *,
        clock: Clock,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._rules = rules
        self._seconds = settings.timeout_seconds
        self._connect_seconds = settings.connect_seconds
        self._clock = clock
        self._tls = tls or ssl.create_default_context()
        self._lookup = lookup
        self._lines: dict[tuple[str, str], _Line] = {}

    async def close(self) -> None:
        """Close the connections."""
        for line in self._lines.values():
            await line.session.close()
        self._lines.clear()

    async def attempt(self, message: Message, headers: Mapping[str, str]) -> Outcome:
        """Send a message once, as `Sender.attempt` describes."""
        begun = time.monotonic()
        exchange = _Exchange(self._rules)
        _current.set(exchange)
        reason: Reason | None = None
        try:
            async with asyncio.timeout(self._seconds):
                await self._send(message, headers, exchange)
        except (InvalidContent, ClientError, OSError) as problem:
            reason = None if exchange.status else exchange.reason_of(problem)
        return Outcome(
            reason=reason,
            status=exchange.status,
            retry_after=exchange.retry_after,
            wish=exchange.wish,
            duration=round((time.monotonic() - begun) * 1000),
            dialled=tuple(exchange.dialled),
            private=exchange.private,
            answer=as_kept(exchange.body, message.token)[:MAX_KEPT_BYTES],
        )

    async def get(self, target: Target, headers: Mapping[str, str]) -> Retrieved:
        """Get a document once, as `Sender.retrieve` describes."""
        exchange = _Exchange(self._rules)
        exchange.line = line = _Line(target, URL(target.url, encoded=True), self._session(""))
        _current.set(exchange)
        try:
            async with (
                asyncio.timeout(self._seconds),
                line.session,
                line.session.get(line.url, headers=headers, allow_redirects=False) as answer,
            ):
                if answer.status != HTTPStatus.OK:
                    return Retrieved(problem=f"status {answer.status}")
                await exchange.take_body(answer)
        except (ClientError, OSError) as problem:
            return Retrieved(problem=exchange.reason_of(problem))
        if len(exchange.body) == MAX_READ_BYTES:
            return Retrieved(problem="too long")
        control = ", ".join(answer.headers.getall("Cache-Control", []))
        return Retrieved(body=exchange.body, cache_control=control)

    async def _send(
        self, message: Message, headers: Mapping[str, str], exchange: _Exchange
    ) -> None:
        line = await self._line(message)
        line.under_way += 1
        exchange.line = line
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
            target = self._rules.target(message.url, tenant=message.tenant)
            line = _Line(target, URL(target.url, encoded=True), self._session(message.endpoint))
            if message.endpoint:
                self._lines[key] = line
            await self._close_idle()
        return line

    def _session(self, endpoint: str) -> ClientSession:
        keep: dict[str, Any] = {"keepalive_timeout": _KEPT_SECONDS}
        connector = _Connector(
            resolver=_Resolver(self._lookup),
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


@dataclass(slots=True)
class _Line:
    """The connections to one endpoint, and when the last of them was used.

    ``private``: one of them was opened to an address that needs an entry of ``allow_networks``.
    """

    target: Target
    url: URL
    session: ClientSession
    private: bool = False
    under_way: int = 0
    used: float = field(default_factory=time.monotonic)


class _BlockedAddress(OSError):
    """An address that webhooks are not sent to; the connector goes on to the next."""


class _Exchange:
    """What is known of one attempt so far."""

    def __init__(self, rules: TargetRules) -> None:
        self._rules = rules
        self.line: _Line | None = None
        self._dials_private = False
        self.dialled: list[str] = []
        self.status = 0
        self.retry_after: float | None = None
        self.wish: Wish | None = None
        self.body = b""

    @property
    def private(self) -> bool:
        """Whether an entry was needed for a connection: a new one, or any that was kept."""
        return self._dials_private if self.dialled else self.line is not None and self.line.private

    def open_socket(self, found: AddrInfoType) -> socket.socket:
        """Return a socket for an address that may be dialled.

        Every address comes through here, those in the URL itself too, which no resolver sees. An
        attempt dials private addresses or public ones, not both: otherwise a receiver at the last
        address of a name could see how the others fail.
        """
        family, kind, protocol, _name, _place = found
        address, line = address_in(found), self.line
        if line is None or not self._rules.permits(address, line.target):
            raise _BlockedAddress
        private = self._rules.needs_entry(address, line.target)
        if self.dialled and private != self._dials_private:
            raise _BlockedAddress
        self._dials_private = private
        line.private = line.private or private
        self.dialled.append(address)
        return socket.socket(family, kind, protocol)

    def take_headers(self, answer: ClientResponse, now: int) -> None:
        self.retry_after = retry_after(answer.headers.get("Retry-After", ""), now)
        self.wish = wish_in(answer.headers.get("webhook-delivery", ""))
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


class _Resolver(AbstractResolver):
    """Gives the addresses of a host to the connector."""

    def __init__(self, lookup: NameLookup) -> None:
        self._lookup = lookup

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._lookup.resolve((host, port, family))
        return [
            ResolveResult(
                hostname=host,
                host=address_in(item),
                port=port,
                family=item[0],
                proto=item[2],
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for item in found
        ]

    async def close(self) -> None:
        """Do nothing: a connector may close it, and the next still needs the threads."""
