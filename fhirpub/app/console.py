"""What commands need to read and change resources, without serving requests."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from fhirpub.app.context import create_context
from fhirpub.app.stores import open_store
from fhirpub.auth.tenants import require_tenant
from fhirpub.config.settings import Config
from fhirpub.errors import ConfigurationError
from fhirpub.interactions.context import Context
from fhirpub.interactions.reindex import is_indexed
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.store import Store
from fhirpub.tenant import Tenant

_NOT_INDEXED = (
    "the search index of the store was made with other settings or by another release: start the "
    "service with these settings once, then repeat the command"
)


@dataclass(frozen=True, slots=True)
class TenantConsole:
    """The store, what interactions work with, and the tenant whose resources are meant."""

    store: Store
    context: Context
    tenant: Tenant


@asynccontextmanager
async def open_console(config: Config, tenant_id: str) -> AsyncGenerator[TenantConsole, None]:
    """Open the store for work on a tenant's resources until the block ends.

    The service may run: it publishes the events of what is added.
    Raises ConfigurationError, PluginError, NoSuchRecord, StoreUnavailable.
    """
    storeless = create_context(config, clock=now_ms)
    async with open_store(config, create=False) as store:
        tenant = await require_tenant(store, tenant_id)
        if not await is_indexed(store, storeless.searched):
            raise ConfigurationError(_NOT_INDEXED)
        yield TenantConsole(store, replace(storeless, resources=store), tenant)
