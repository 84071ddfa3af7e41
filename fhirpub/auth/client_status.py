"""Whether the client and the tenant behind a token may still act, at most half a minute ago."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass

from fhirpub.auth import refusals
from fhirpub.auth.clients import is_person
from fhirpub.auth.networks import Network, parse_networks
from fhirpub.fhir.strict_json import loads_stored
from fhirpub.runtime.clock import Clock
from fhirpub.storage.contract import Client, CredentialStore
from fhirpub.tenant import Tenant

_FRESH_MS = 30_000
_MAX_CLIENTS = 10_000


@dataclass(frozen=True, slots=True)
class ClientStatus:
    """A client, its tenant and its revoked tokens as they were, valid until a moment."""

    client: Client | None
    tenant: Tenant | None
    read: int
    until: int
    revoked: frozenset[str] = frozenset()
    """The `jti` of the tokens that the client has revoked."""

    @property
    def scopes(self) -> tuple[str, ...]:
        """Those of the client, which its older tokens may go beyond."""
        return () if self.client is None else self.client.scopes

    @property
    def networks(self) -> tuple[Network, ...]:
        """Those from which the client may call; none: from everywhere."""
        return () if self.client is None else parse_networks(self.client.networks)

    @property
    def is_person(self) -> bool:
        """Whether the client is a person, whose scopes always count."""
        return self.client is not None and is_person(self.client)

    def is_elsewhere(self, environment: str) -> bool:
        """Return whether the client belongs to another environment than this."""
        return self.client is not None and self.client.environment != environment

    def admit(self, jti: str, environment: str, *, tenant_id: str = "", kid: str = "") -> Tenant:
        """Return the tenant for which the client may act by a token, by default its own.

        ``kid`` is the key of its own by which the client got it, which it must still have. Raises
        NotAuthenticated.
        """
        if self.is_elsewhere(environment):
            raise refusals.misdirected("client of another environment", "environment")
        own = self.client.tenant if self.client is not None else ""
        tenant = self.tenant_for(tenant_id or own, environment=environment)
        if tenant is None:
            raise refusals.disabled()
        if jti in self.revoked or (kid and not self.has_key(kid)):
            raise refusals.revoked()
        return tenant

    def has_key(self, kid: str) -> bool:
        """Return whether the client has a key; one that publishes its keys may change them."""
        if self.client is None or self.client.jwks_url:
            return self.client is not None
        stored = loads_stored(self.client.jwks.encode())["keys"] if self.client.jwks else ()
        return any(key["kid"] == kid for key in stored)

    def tenant_for(self, tenant_id: str, *, environment: str) -> Tenant | None:
        """Return the tenant if the client may act for it in this environment."""
        client, tenant = self.client, self.tenant
        if client is None or client.disabled or client.environment != environment:
            return None
        if tenant is None or tenant.disabled or tenant.id != tenant_id:
            return None
        return tenant


class ClientStatusCache:
    """Reads standings from the store, once for all requests for a client at the same time."""

    def __init__(self, access: CredentialStore, *, clock: Clock) -> None:
        self._access = access
        self._clock = clock
        self._known: OrderedDict[str, ClientStatus] = OrderedDict()
        self._reading: dict[str, asyncio.Task[ClientStatus]] = {}

    async def of(self, client_id: str) -> ClientStatus:
        """Return a client's standing; raises StoreUnavailable rather than trust an old one."""
        known = self._known.get(client_id)
        if known is not None and known.read <= self._clock() < known.until:
            return known
        reading = self._reading.get(client_id)
        if reading is None:
            reading = asyncio.create_task(self._read(client_id))
            self._reading[client_id] = reading
            reading.add_done_callback(lambda task: self._end(client_id, task))
        return await asyncio.shield(reading)

    async def with_key(self, client_id: str, kid: str) -> ClientStatus:
        """Return a client's standing, read again if it has not the key: that may be new."""
        standing = await self.of(client_id)
        if kid and not standing.has_key(kid):
            self.forget(client_id)
            standing = await self.of(client_id)
        return standing

    def forget(self, client_id: str) -> None:
        """Read a client again for the next caller, even if a read of it is in progress."""
        self._known.pop(client_id, None)
        self._reading.pop(client_id, None)

    async def _read(self, client_id: str) -> ClientStatus:
        standing = await self._look_up(client_id, self._clock())
        if self._reading.get(client_id) is asyncio.current_task():  # else it was forgotten
            self._keep(client_id, standing)
        return standing

    async def _look_up(self, client_id: str, now: int) -> ClientStatus:
        client = await self._access.client(client_id)
        if client is None:
            return ClientStatus(None, None, now, now + _FRESH_MS)
        tenant = await self._access.tenant(client.tenant)
        tokens = await self._access.revoked_tokens(client_id)
        revoked = frozenset(token.jti for token in tokens)
        return ClientStatus(client, tenant, now, now + _FRESH_MS, revoked)

    def _keep(self, client_id: str, standing: ClientStatus) -> None:
        self._known[client_id] = standing
        self._known.move_to_end(client_id)
        if len(self._known) > _MAX_CLIENTS:
            self._known.popitem(last=False)

    def _end(self, client_id: str, task: asyncio.Task[ClientStatus]) -> None:
        if self._reading.get(client_id) is task:
            del self._reading[client_id]
        if not task.cancelled():
            task.exception()  # the waiters have it, unless they went away


class TenantStatusCache(ClientStatusCache):
    """Reads tenants alike, by their own ids, for callers that are no clients of the store."""

    async def _look_up(self, client_id: str, now: int) -> ClientStatus:
        tenant = await self._access.tenant(client_id)
        return ClientStatus(None, tenant, now, now + _FRESH_MS)
