"""What operations of operators work with, in a command or in a process that serves."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from fhirpub.administration.changes import local_agent
from fhirpub.administration.context import Administration
from fhirpub.administration.http.callers import Callers
from fhirpub.administration.http.interface import Interface
from fhirpub.administration.http.listener import serve_admin
from fhirpub.app.context import create_context
from fhirpub.app.stores import open_store
from fhirpub.audit.record import Agent
from fhirpub.config.settings import Config
from fhirpub.errors import ConfigurationError
from fhirpub.http.own_ports import bind_own_port
from fhirpub.interactions.context import Context
from fhirpub.interactions.reindex import is_indexed, reindex_if_needed
from fhirpub.plugin_api import ResourceType
from fhirpub.plugin_host.loader import load
from fhirpub.plugin_host.sinks import load_event_sinks
from fhirpub.runtime.clock import Clock, now_ms
from fhirpub.storage.store import Store
from fhirpub.web.services import Services
from fhirpub.webhooks.management.endpoints import EndpointService
from fhirpub.webhooks.management.event_types import EventTypes
from fhirpub.webhooks.transport.sender import Sender

_NOT_INDEXED = (
    "the search index of the store was made with other settings or by another release: start the "
    "service with these settings once, then repeat the command"
)


@asynccontextmanager
async def open_administration(
    config: Config, *, create: bool = True
) -> AsyncGenerator[Administration, None]:
    """Open the store for operations of an operator until the block ends.

    ``create`` a missing SQLite file. The service may run: it publishes the events of what is
    added. Raises ConfigurationError, PluginError, StoreUnavailable.
    """
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(config, create=create))
        parts = _Parts(config, store, stack)
        yield Administration(
            config=config,
            store=store,
            agent=local_agent(config),
            clock=now_ms,
            endpoints=parts.endpoints,
            context=parts.context,
        )


@dataclass(slots=True)
class _Parts:
    """What few operations need, made when one asks for it: plugins take most of a second."""

    config: Config
    store: Store
    stack: AsyncExitStack
    _endpoints: EndpointService | None = None
    _context: Context | None = None

    async def endpoints(self) -> EndpointService:
        if self._endpoints is None:
            sender = Sender(
                self.config.webhooks, clock=now_ms, sinks=load_event_sinks(self.config)
            )
            await self.stack.enter_async_context(sender)
            types = load(self.config.plugins.enabled)
            self._endpoints = create_endpoint_service(
                self.config, self.store, sender, types, now_ms
            )
        return self._endpoints

    async def context(self) -> Context:
        if self._context is None:
            storeless = create_context(self.config, clock=now_ms)
            if not await is_indexed(self.store, storeless.searched):
                if await self.store.count():
                    raise ConfigurationError(_NOT_INDEXED)
                await reindex_if_needed(self.store, storeless.searched)  # of nothing, at once
            self._context = replace(storeless, resources=self.store)
        return self._context


def create_endpoint_service(
    config: Config,
    store: Store,
    sender: Sender,
    types: Mapping[str, ResourceType],
    clock: Clock,
) -> EndpointService:
    """Create the service through which HTTP and commands manage endpoints."""
    return EndpointService(
        store=store,
        sender=sender,
        seal=store.cipher,
        event_types=EventTypes.of(types.values()),
        config=config,
        clock=clock,
    )


@asynccontextmanager
async def administering(services: Services) -> AsyncGenerator[None, None]:
    """Serve administration over HTTP until the block ends, if the settings name a port for it.

    Raises ConfigurationError.
    """
    config = services.config
    if not config.admin.port:
        yield
        return
    sockets = bind_own_port("admin", config.admin, reuse_port=config.server.workers > 1)
    async with serve_admin(create_interface(services), sockets, config, services.body_timeout):
        yield


def create_interface(services: Services) -> Interface:
    """Create the interface by which operators administer a service that runs."""
    config = services.config

    async def endpoints() -> EndpointService:
        return services.endpoints

    async def context() -> Context:
        return services.context

    def open_(agent: Agent) -> Administration:
        return Administration(
            config=config,
            store=services.store,
            agent=agent,
            clock=services.clock,
            endpoints=endpoints,
            context=context,
        )

    callers = Callers(config.admin, services.tokens.ring, services.store, clock=services.clock)
    return Interface(config, callers, open_, audit=services.audit)
