"""Operations in this process, on a store of their own, and what they leave in the audit trail."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from fhirpub.administration.context import Administration
from fhirpub.administration.execution import execute
from fhirpub.administration.operation import Operation
from fhirpub.app.administration import create_endpoint_service
from fhirpub.app.context import create_context
from fhirpub.app.stores import open_store
from fhirpub.audit.record import Agent
from fhirpub.config.settings import Config
from fhirpub.interactions.context import Context
from fhirpub.plugin_host.loader import load
from fhirpub.storage.store import Store
from fhirpub.testing.clock import HandClock
from fhirpub.webhooks.management.endpoints import EndpointService
from fhirpub.webhooks.transport.sender import Sender

AGENT = Agent(user="ana", environment="sandbox", address="192.0.2.7", request="r-1")
URL = "https://93.184.216.34/hooks"
"""Where no webhook is sent in these tests."""


@dataclass(kw_only=True)
class Office:
    """What an operator works with."""

    administration: Administration
    clock: HandClock

    @property
    def store(self) -> Store:
        return self.administration.store

    async def run(self, operation: Operation, **given: Any) -> Any:
        """Run an operation as a request does."""
        return await execute(operation, self.administration, given)

    async def records(self) -> list[tuple[str, str, int, list[str]]]:
        """Return the chain, the action, the status and the names of each record, in order."""
        unsealed = await self.store.unsealed_audit(limit=10_000)
        return [
            (one.tenant, line["action"], line["status"], line.get("what", []))
            for one in unsealed.entries
            for line in map(orjson.loads, one.records.splitlines())
        ]

    def under(self, agent: Agent) -> Administration:
        """Return what an operation of another agent works with."""
        return replace(self.administration, agent=agent)

    def with_config(self, **parts: Any) -> Office:
        """Return the same under other settings."""
        config = replace(self.administration.config, **parts)
        return replace(self, administration=replace(self.administration, config=config))


@asynccontextmanager
async def opened(folder: Path) -> AsyncGenerator[Office]:
    """Open a store for operations until the block ends."""
    usual, clock = Config(), HandClock()
    url = f"sqlite:///{folder}/fhirpub.db"
    config = replace(usual, storage=replace(usual.storage, url=url))
    async with open_store(config) as store, Sender(config.webhooks, clock=clock) as sender:

        @cache
        def made() -> tuple[EndpointService, Context]:
            types = load(config.plugins.enabled)
            service = create_endpoint_service(config, store, sender, types, clock)
            return service, replace(create_context(config, clock=clock), resources=store)

        async def endpoints() -> EndpointService:
            return made()[0]

        async def context() -> Context:
            return made()[1]

        administration = Administration(
            config=config,
            store=store,
            agent=AGENT,
            clock=clock,
            endpoints=endpoints,
            context=context,
        )
        yield Office(administration=administration, clock=clock)
