"""Sends webhooks: the rules about where to, the headers, and attempts by one HTTP client."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Self

from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.errors import InvalidContent
from fhirpub.plugin_api.sinks import EventSink
from fhirpub.runtime.clock import Clock
from fhirpub.webhooks.policy.outcome import Outcome
from fhirpub.webhooks.transport.message import Message
from fhirpub.webhooks.transport.name_lookup import LookUp, NameLookup, address_in
from fhirpub.webhooks.transport.pull_url import check_pull, is_pull
from fhirpub.webhooks.transport.response import Retrieved
from fhirpub.webhooks.transport.signing import signed_headers
from fhirpub.webhooks.transport.sinks import SCHEME, Sinks
from fhirpub.webhooks.transport.url_policy import Target, TargetRules, refuse_url

if TYPE_CHECKING:
    from fhirpub.webhooks.transport.http_client import HttpClient

_PLAIN_JSON = {"Accept": "application/json", "Accept-Encoding": "identity"}


class Sender:
    """Sends messages; safe to use from many tasks of one event loop. Close it in the end.

    Connections are kept for the next message of the same endpoint, for a second. No two
    endpoints share one, so that nothing is shared between tenants. ``tls`` is for receivers whose
    authority the machine does not know, ``look_up`` for names that it does not know. ``blocked``
    is called when a host led to no address but those that are refused. ``sinks`` serve endpoints
    whose URLs name them.
    """

    def __init__(
        self,
        settings: WebhooksConfig,
        *,
        clock: Clock,
        tls: ssl.SSLContext | None = None,
        look_up: LookUp = socket.getaddrinfo,
        blocked: Callable[[], None] = lambda: None,
        sinks: Sequence[EventSink] = (),
    ) -> None:
        self._rules = TargetRules(allow_networks=settings.allow_networks, ports=settings.ports)
        self._connect_seconds = settings.connect_seconds
        self._agent = f"{settings.service_name}-Webhooks/1.0"
        self._clock = clock
        self._lookup = NameLookup(look_up, patience_seconds=settings.connect_seconds)
        self._blocked = blocked
        self._open_client = partial(
            _open_client, settings, self._rules, self._lookup, clock=clock, tls=tls
        )
        self._client: HttpClient | None = None
        self._sinks = Sinks(sinks, timeout_seconds=settings.timeout_seconds)
        self._opening = asyncio.Lock()

    async def close(self) -> None:
        """Close the connections and release the threads; their pending lookups are abandoned."""
        if self._client:
            await self._client.close()
        await self._sinks.close()
        self._lookup.stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    async def address(self, url: str, *, tenant: str, trusted: bool) -> str:
        """Return the URL of an endpoint in canonical form.

        It may be that of a sink if ``trusted``: of an endpoint that the operator adds. One that is
        read by its client has no address. Raises InvalidContent.
        """
        if is_pull(url):
            return check_pull(url)
        if trusted and url.startswith(SCHEME):
            return self._sinks.check(url)
        return (await self.target(url, tenant=tenant)).url

    async def target(self, url: str, *, tenant: str) -> Target:
        """Return a URL that a tenant may register, in canonical form, once its host is looked up.

        Raises InvalidContent, which does not reveal whether the host is unknown or blocked.
        """
        target = self._rules.target(url, tenant=tenant)
        try:
            async with asyncio.timeout(self._connect_seconds):
                found = await self._lookup.resolve_unknown(target.host, target.port)
        except (OSError, TimeoutError):
            found = []
        if not any(self._rules.permits(address_in(item), target) for item in found):
            if found:
                self._blocked()
            raise refuse_url("has a host that leads to no address to which webhooks are sent")
        return target

    async def attempt(self, message: Message) -> Outcome:
        """Send a message once and return what came of it, whatever the receiver does.

        It ends within ``timeout_seconds``, connecting within ``connect_seconds``. An answer counts
        as soon as its headers are complete; whatever its body does then changes nothing. A
        connection that an earlier attempt left open and that breaks is a failure like any other:
        it is unknown whether the receiver has read the message. Raises BadSecret and ValueError
        for a message that cannot be signed.
        """
        if message.url.startswith(SCHEME):
            return await self._sinks.attempt(message, self._event_headers(message))
        headers = self._headers(message)
        client = self._client or await self._open()
        outcome = await client.attempt(message, headers)
        if outcome.reason == "E_BLOCKED_ADDRESS":
            self._blocked()
        return outcome

    async def retrieve(self, url: str, tenant: str) -> Retrieved:
        """Get a document that a tenant publishes, such as a key set, by the rules for webhooks.

        It ends within ``timeout_seconds``. Redirects are not followed; 64 KiB are too much.
        """
        try:
            target = self._rules.target(url, tenant=tenant)
        except InvalidContent:
            return Retrieved(problem="E_BLOCKED_ADDRESS")
        client = self._client or await self._open()
        found = await client.get(target, {"User-Agent": self._agent, **_PLAIN_JSON})
        if found.problem == "E_BLOCKED_ADDRESS":
            self._blocked()
        return found

    async def _open(self) -> HttpClient:
        async with self._opening:
            if self._client:
                return self._client
            self._client = opened = await asyncio.to_thread(self._open_client)
            return opened

    def _headers(self, message: Message) -> dict[str, str]:
        return {
            "Content-Type": "application/json",
            "User-Agent": self._agent,
            "Accept-Encoding": "identity",
            "Authorization": f"Bearer {message.token}",
            **self._event_headers(message),
        }

    def _event_headers(self, message: Message) -> dict[str, str]:
        """Return the headers that describe and sign the event, however it is sent."""
        now = self._clock() // 1000
        trace = {"traceparent": message.traceparent} if message.traceparent else {}
        return {
            "X-Webhook-Event": message.event_type,
            "X-Webhook-Attempt": str(message.number),
            "X-Webhook-Sequence": str(message.sequence),
            **trace,
            **signed_headers(message.event_id, now, message.body, secrets=message.secrets),
        }


def _open_client(
    settings: WebhooksConfig,
    rules: TargetRules,
    lookup: NameLookup,
    *,
    clock: Clock,
    tls: ssl.SSLContext | None,
) -> HttpClient:
    """Open a client, in a thread: to load it and what it trusts takes a quarter of a second.

    Processes that send nothing, such as most commands, do without.
    """
    from fhirpub.webhooks.transport.http_client import HttpClient  # noqa: PLC0415

    return HttpClient(settings, rules, lookup, clock=clock, tls=tls)
