"""What commands need to manage webhook endpoints, without serving requests."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import (
    asynccontextmanager,
)
from dataclasses import dataclass

from fhirpub.app.stores import open_store
from fhirpub.config.settings import Config
from fhirpub.plugin_api import ResourceType
from fhirpub.plugin_host.loader import load
from fhirpub.runtime.clock import Clock, now_ms
from fhirpub.storage.store import Store
from fhirpub.webhooks.management.delivery_log import DeliveryLog
from fhirpub.webhooks.management.endpoints import EndpointService
from fhirpub.webhooks.management.event_types import EventTypes
from fhirpub.webhooks.transport.sender import Sender


@dataclass(frozen=True, slots=True)
class AdminContext:
    """The services that endpoint commands work with, and their store."""

    store: Store
    endpoints: EndpointService
    deliveries: DeliveryLog


@asynccontextmanager
async def open_admin(config: Config) -> AsyncGenerator[AdminContext, None]:
    """Open the store and the endpoint services until the block ends.

    Raises ConfigurationError, PluginError, StoreUnavailable.
    """
    types = load(config.plugins.enabled)
    async with open_store(config) as store, Sender(config.webhooks, clock=now_ms) as sender:
        yield AdminContext(
            store=store,
            endpoints=create_endpoint_service(config, store, sender, types, now_ms),
            deliveries=DeliveryLog(store, clock=now_ms),
        )


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
