"""Relay and dispatcher over a real store, with committing tenants and real receivers."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from fhirpub.app.stores import open_store
from fhirpub.config.settings import Config, ServerConfig, StorageConfig
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.encryption.cipher import SecretCipher
from fhirpub.fhir.strict_json import dumps
from fhirpub.plugin_api import EventSink
from fhirpub.plugin_host.loader import load
from fhirpub.runtime.clock import Clock
from fhirpub.runtime.metrics import Metrics
from fhirpub.storage.contract import Version
from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import Delivery, DeliveryQuery, Endpoint
from fhirpub.webhooks.dispatch.worker import WebhookWorker
from fhirpub.webhooks.management.endpoints import EndpointService, EndpointWithSecrets
from fhirpub.webhooks.management.event_types import EventTypes
from fhirpub.webhooks.policy.outcome import Outcome
from fhirpub.webhooks.transport.message import Message
from fhirpub.webhooks.transport.sender import Sender

TENANT = "11111111-1111-4111-8111-111111111111"
KEY = b"k" * 32
SEAL = SecretCipher([KEY])
SETTINGS = WebhooksConfig(
    allow_networks=["127.0.0.1/32"],
    # However slow the machine is, no attempt ends early and none outlasts its lease.
    connect_seconds=20.0,
    timeout_seconds=20.0,
    lease_seconds=10.0,
    rate_per_endpoint=10_000.0,
    retry_seconds=[0.05, 0.1, 0.2],
)


@dataclass
class WebhookHarness:
    """A store and its webhook worker; ``versions`` has each resource's latest number."""

    store: Store
    config: Config
    clock: Clock
    administration: EndpointService
    sending: WebhookWorker
    sender: Sender
    metrics: Metrics
    versions: dict[str, int] = field(default_factory=dict)

    async def endpoint(
        self, url: str, *, tenant: str = TENANT, **fields: Any
    ) -> EndpointWithSecrets:
        """Add an active endpoint."""
        fields = {"url": url, "event_types": ["*"], **fields}
        return await self.administration.add(tenant, fields, trusted=True)

    async def commit(
        self, resource: str = "", *, tenant: str = TENANT, events: bytes | None = None
    ) -> Version:
        """Commit the next version of a resource, by default the first of a new one."""
        resource = resource or str(uuid.uuid4())
        number = self.versions.get(resource, 0) + 1
        self.versions[resource] = number
        name = f"diagnostic_report.{'created' if number == 1 else 'updated'}"
        stored = [{"id": f"{resource}.{number}.1", "type": name, "data": {"status": "final"}}]
        version = Version(
            id=resource,
            version=number,
            type="DiagnosticReport",
            system="urn:s",
            value=resource,
            status="final",
            created=self.clock(),
            updated=self.clock(),
            body=b"{}",
            events=dumps(stored) if events is None else events,
        )
        assert await self.store.add(tenant, version)
        self.sending.ring()
        return version

    async def commits(self, number: int, resource: str = "", *, tenant: str = TENANT) -> None:
        """Commit this number of versions; those of one resource one after the other."""
        if resource:
            for _ in range(number):
                await self.commit(resource, tenant=tenant)
        else:
            await asyncio.gather(*(self.commit(tenant=tenant) for _ in range(number)))

    async def deliveries(self, endpoint: EndpointWithSecrets | Endpoint) -> Sequence[Delivery]:
        """Return all deliveries of an endpoint, finished or not."""
        one = endpoint.endpoint if isinstance(endpoint, EndpointWithSecrets) else endpoint
        query = DeliveryQuery(endpoint=one.id, limit=100_000)
        return await self.store.deliveries(one.tenant, query)

    async def state(self, endpoint: EndpointWithSecrets) -> str:
        """Return the stored state of an endpoint."""
        one = await self.store.endpoint(endpoint.endpoint.tenant, endpoint.endpoint.id)
        assert one is not None
        return one.state

    def is_done(self, endpoint: EndpointWithSecrets) -> bool:
        """Return whether what may be sent to an endpoint at this time of the clock was sent.

        No attempt is in flight then, and the outcome of each is stored.
        """
        dispatcher, name, now = self.sending._dispatcher, endpoint.endpoint.id, self.clock()
        line = dispatcher._lines.get(name)
        if line is None or not dispatcher._shares.holds(name):
            return False
        if line.stale or line.reading or line.behind or line.queue.taken:
            return False
        moment = line.next_moment(now)
        return moment is None or moment > now

    async def until_states(
        self, endpoint: EndpointWithSecrets, *, seconds: float = 30.0, **expected: int
    ) -> None:
        """Wait until the deliveries have exactly these states in these numbers."""
        one = endpoint.endpoint
        await until(
            lambda: self.store.count_deliveries(one.tenant, one.id),
            lambda found: found == expected,
            seconds=seconds,
        )

    @asynccontextmanager
    async def another(
        self, store: Store | None = None, *, sinks: Sequence[EventSink] = (), **settings: Any
    ) -> AsyncGenerator[None, None]:
        """Run another sending process until the block ends."""
        config = replace(self.config, webhooks=replace(self.config.webhooks, **settings))
        async with (
            Sender(config.webhooks, clock=self.clock, sinks=sinks) as sender,
            WebhookWorker(
                store or self.store,
                config=config,
                seal=SEAL,
                metrics=Metrics(serves=False, sends=True),
                clock=self.clock,
                sender=sender,
            ).running(),
        ):
            yield


def hold_outcomes(
    sender: Sender, patch: pytest.MonkeyPatch
) -> tuple[asyncio.Event, asyncio.Event]:
    """Keep the outcome of each attempt to itself until the second event is set.

    The first is set once a receiver has answered.
    """
    attempt, answered, go_on = sender.attempt, asyncio.Event(), asyncio.Event()

    async def late(message: Message) -> Outcome:
        outcome = await attempt(message)
        answered.set()
        await go_on.wait()
        return outcome

    patch.setattr(sender, "attempt", late)
    return answered, go_on


async def until(
    read: Callable[[], Any], true: Callable[[Any], bool], *, seconds: float = 30.0
) -> None:
    """Wait until ``true`` holds for the result of ``read``."""
    async with asyncio.timeout(seconds):
        while not true(await read()):
            await asyncio.sleep(0.01)


@asynccontextmanager
async def open_harness(
    url: str,
    *,
    clock: Clock,
    settings: WebhooksConfig = SETTINGS,
    sends: bool = True,
    sinks: Sequence[EventSink] = (),
    drain_seconds: float = 1.0,
) -> AsyncGenerator[WebhookHarness, None]:
    """Open a harness over a store; it sends in the background only if ``sends``."""
    config = Config(
        webhooks=settings,
        storage=StorageConfig(url=url),
        server=ServerConfig(drain_seconds=drain_seconds),
    )
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(config))
        sender = await stack.enter_async_context(Sender(settings, clock=clock, sinks=sinks))
        metrics = Metrics(serves=False, sends=True)
        sending = WebhookWorker(
            store, config=config, seal=SEAL, metrics=metrics, clock=clock, sender=sender
        )
        administration = EndpointService(
            store=store,
            sender=sender,
            seal=SEAL,
            event_types=EventTypes.of(load(config.plugins.enabled).values()),
            config=config,
            clock=clock,
        )
        if sends:
            await stack.enter_async_context(sending.running())
        yield WebhookHarness(store, config, clock, administration, sending, sender, metrics)
