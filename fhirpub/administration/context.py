"""What operations work with: the store, the agent, and what is made only when it is needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from fhirpub.administration import changes
from fhirpub.administration.changes import OperatorAccess
from fhirpub.administration.naming import id_of_key
from fhirpub.audit.record import Agent
from fhirpub.audit.trail import SERVICE
from fhirpub.config.settings import Config
from fhirpub.errors import NoSuchRecord, NotPossible
from fhirpub.interactions.context import Context
from fhirpub.runtime.clock import Clock
from fhirpub.storage.contract import Client
from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import Endpoint
from fhirpub.tenant import Tenant
from fhirpub.webhooks.management.delivery_log import DeliveryLog
from fhirpub.webhooks.management.endpoints import EndpointService


@dataclass(frozen=True, slots=True, kw_only=True)
class Administration:
    """What one operation works with.

    Attributes:
        config: The settings of the service.
        store: Its store.
        agent: The acting person or client, for the audit trail.
        clock: The time.
        endpoints: Returns the service that manages endpoints.
        context: Returns what interactions work with.
    """

    config: Config
    store: Store
    agent: Agent
    clock: Clock
    endpoints: Callable[[], Awaitable[EndpointService]]
    context: Callable[[], Awaitable[Context]]

    @property
    def deliveries(self) -> DeliveryLog:
        """What was sent to endpoints."""
        return DeliveryLog(self.store, clock=self.clock)

    @property
    def operator(self) -> str:
        """The name of the acting operator."""
        return self.agent.user

    def recorded(
        self, action: str, *what: tuple[str, str], tenant: str = SERVICE
    ) -> AbstractAsyncContextManager[OperatorAccess]:
        """Record a change, as `changes.recorded` does."""
        return changes.recorded(
            self.config, self.store, action, *what, tenant=tenant, agent=self.agent
        )

    async def record_read(self, action: str, *what: tuple[str, str], tenant: str) -> None:
        """Record what is shown, as `changes.record_read` does."""
        await changes.record_read(
            self.config, self.store, action, *what, tenant=tenant, agent=self.agent
        )

    async def tenant(self, named: str) -> Tenant:
        """Return the tenant with an id, a key or a name.

        Raises:
            NoSuchRecord: There is none.
            NotPossible: Several have the name.
        """
        found = await self.store.tenant(named) or await self.store.tenant(
            id_of_key("tenant", named)
        )
        if found is not None:
            return found
        tenants = await self.store.tenants()
        id_ = only_one("tenant", named, [one.id for one in tenants if one.name == named])
        return next(one for one in tenants if one.id == id_)

    async def client(self, named: str) -> Client:
        """Return the client with an id or a name. Raises as :meth:`tenant` does."""
        found = await self.store.client(named)
        if found is not None:
            return found
        clients = await self.store.clients()
        id_ = only_one("client", named, [one.id for one in clients if one.name == named])
        return next(one for one in clients if one.id == id_)

    async def endpoint(self, named: str) -> Endpoint:
        """Return the endpoint of any tenant with an id or a description, also a deleted one.

        Raises as :meth:`tenant` does.
        """
        endpoints = await self.store.all_endpoints()
        for endpoint in endpoints:
            if endpoint.id == named:
                return endpoint
        for tenant in await self.store.tenants():  # a deleted one, which has only an id
            found = await self.store.endpoint(tenant.id, named)
            if found is not None:
                return found
        described = [one.id for one in endpoints if one.description == named]
        id_ = only_one("endpoint", named, described)
        return next(one for one in endpoints if one.id == id_)


def only_one(kind: str, named: str, ids: Iterable[str]) -> str:
    """Return the only id. Raises NoSuchRecord, NotPossible."""
    found = sorted(ids)
    if not found or not named:
        raise NoSuchRecord(kind, named)
    if len(found) > 1:
        raise NotPossible(f"several {kind}s have the name {named}: {', '.join(found)}")
    return found[0]
