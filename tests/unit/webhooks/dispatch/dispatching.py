"""A dispatcher over a real store, whose rounds a test makes one by one."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random
from typing import Any, cast

from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.storage.leases import Leases
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.webhook_contract import Delivery, Endpoint
from fhirpub.testing.clock import HandClock
from fhirpub.testing.contracts.webhooks.records import NOW, a_delivery
from fhirpub.webhooks.dispatch.attempts import Attempts
from fhirpub.webhooks.dispatch.dispatcher import Dispatcher
from fhirpub.webhooks.dispatch.endpoint_worker import EndpointWorker
from fhirpub.webhooks.dispatch.leases import EndpointAssignments
from tests.unit.webhooks.dispatch.test_endpoint_worker import endpoint_with_secrets, worker_of


class Sent:
    """Attempts that are noted, and end when the gate is open."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.problem: Exception | None = None
        self.drained = 0

    async def deliver(self, line: EndpointWorker, delivery: Delivery) -> None:
        self.events.append(delivery.event_id)
        await self.gate.wait()
        if self.problem:
            raise self.problem
        line.queue.remove(delivery.event_id)

    async def drain(self) -> None:
        self.drained += 1


class Process:
    """A process that sends, with the leases of its own."""

    def __init__(self, store: SqliteStore, name: str = "a", **settings: Any) -> None:
        self.store, self.clock, self.sent = store, HandClock(NOW), Sent()
        self.settings = WebhooksConfig(**settings)
        leases = Leases(store, owner=name, seconds=30, clock=self.clock)
        self.shares = EndpointAssignments(leases, Random(1))
        self.dispatcher = Dispatcher(
            store,
            attempts=cast("Attempts", self.sent),
            shares=self.shares,
            settings=self.settings,
            line_of=worker_of,
            clock=self.clock,
        )

    async def add(self, **changes: Any) -> Endpoint:
        """Store an endpoint without failures, whose secrets are usable."""
        usual = {"condition": b"{}"}
        made = replace(endpoint_with_secrets(), **usual | changes)
        await self.store.put_endpoint(made.tenant, made)
        return made

    async def change(self, endpoint: Endpoint, **changes: Any) -> Endpoint:
        changed = replace(endpoint, revision=endpoint.revision + 1, **changes)
        assert await self.store.put_endpoint(changed.tenant, changed)
        return changed

    async def store_deliveries(self, endpoint: Endpoint, *sequences: int) -> list[Delivery]:
        made = [
            a_delivery(
                endpoint.id,
                one,
                tenant=endpoint.tenant,
                resource=f"DiagnosticReport/{one}",
                due=NOW,
                created=NOW + one,
            )
            for one in sequences
        ]
        assert await self.store.append(made) == len(made)
        return made

    async def look(self) -> float:
        return await self.dispatcher._refresh_endpoints()

    async def load(self) -> float:
        return await self.dispatcher._load()

    async def begin(self) -> float:
        return await self.dispatcher._begin()

    async def ready(self, endpoint: Endpoint, *sequences: int) -> EndpointWorker:
        """Store deliveries of an endpoint, and load them."""
        await self.store_deliveries(endpoint, *sequences)
        await self.look()
        await self.load()
        await self.load()  # until it is known that there are no more
        return self.line(endpoint)

    def line(self, endpoint: Endpoint) -> EndpointWorker:
        return self.dispatcher._lines[endpoint.id]

    @property
    def lines(self) -> set[str]:
        return {*self.dispatcher._lines}

    async def settle(self) -> None:
        """Let the attempts that were begun end."""
        await asyncio.gather(*self.dispatcher._under_way, return_exceptions=True)
        await asyncio.sleep(0)
