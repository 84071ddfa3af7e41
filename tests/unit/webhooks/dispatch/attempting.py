"""One attempt to send a delivery: over a real store, to a receiver whose outcome is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import orjson

from fhirpub.config.settings import Config
from fhirpub.runtime.metrics import Metrics
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.webhook_contract import AttemptResult, Delivery, DeliveryQuery, Endpoint
from fhirpub.testing.clock import HandClock
from fhirpub.testing.contracts.webhooks.records import NOW, a_delivery
from fhirpub.testing.samples import LAB
from fhirpub.webhooks.dispatch.appender import Appender
from fhirpub.webhooks.dispatch.attempts import Attempts, Rules
from fhirpub.webhooks.dispatch.endpoint_worker import EndpointWorker
from fhirpub.webhooks.management.operational_events import ServiceEvents
from fhirpub.webhooks.policy.outcome import Outcome
from fhirpub.webhooks.policy.retry_policy import FailurePolicy, Schedule
from fhirpub.webhooks.transport.message import Message
from fhirpub.webhooks.transport.sender import Sender
from tests.unit.runtime.tracing.traces import Traces
from tests.unit.webhooks.dispatch.test_endpoint_worker import endpoint_with_secrets, worker_of

BODY = b'{"timestamp":"2023-11-14T22:13:20Z"}'
TIMEOUT = 15.0
LEASED = NOW + 30_000
FAILED, ACCEPTED = Outcome(status=503, duration=40), Outcome(status=204, duration=40)


class Recorded(SqliteStore):
    """A store that remembers in which order it was written to."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, deadline_seconds=10)
        self.records: list[tuple[str, dict[str, Any]]] = []
        self.order: list[str] = []

    async def add_audit_records(self, records: Mapping[str, bytes]) -> None:
        self.order += ["record"] * len(records)
        self.records += [
            (tenant, orjson.loads(line))
            for tenant, lines in records.items()
            for line in lines.splitlines()
        ]

    async def finish(self, outcomes: Any) -> Any:
        self.order.append("finish")
        results: list[AttemptResult] = outcomes
        return await super().finish(results)


@dataclass
class Receiver:
    """A receiver of which the outcome of each attempt is known."""

    outcome: Outcome | Exception = ACCEPTED
    sent: list[Message] = field(default_factory=list)

    async def attempt(self, message: Message) -> Outcome:
        self.sent.append(message)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class Desk:
    """An endpoint with one delivery, and what attempts to send it."""

    def __init__(self, store: Recorded) -> None:
        self.store, self.clock, self.receiver = store, HandClock(NOW), Receiver()
        self.rules = Rules(
            timeout_seconds=TIMEOUT,
            schedule=Schedule(waits=[5.0]),
            patience=FailurePolicy(),
            environment="sandbox",
            is_audited=True,
        )
        self.tracer: Traces | None = None
        self.metrics = Metrics(serves=False, sends=True)
        self.enqueued: list[Delivery] = []
        self.endpoint: Endpoint
        self.line: EndpointWorker

    async def add(self, **changes: Any) -> None:
        self.endpoint = replace(endpoint_with_secrets(), condition=b"{}")
        await self.store.put_endpoint(LAB, self.endpoint)
        await self.store.append(
            [replace(a_delivery(self.endpoint.id, due=NOW, body=BODY), **changes)]
        )
        self.line = worker_of(self.endpoint)
        self.line.queue.add(await self.store.waiting(self.endpoint.id))

    async def deliver(self, outcome: Outcome | Exception) -> Delivery:
        """Make an attempt with an outcome, and return the delivery as it is stored then."""
        self.receiver.outcome = outcome
        (begun,) = await self.begin("evt_1")
        await self.attempts().deliver(self.line, begun)
        return await self.stored()

    async def begin(self, *events: str) -> Sequence[Delivery]:
        """Begin attempts, and return their deliveries."""
        self.line.queue.take(self.clock(), len(events))
        keys = [(self.endpoint.id, event) for event in events]
        return await self.store.begin(keys, now=self.clock(), until=LEASED)

    def attempts(self) -> Attempts:
        """Return what makes attempts."""
        made = Attempts(
            self.store,
            cast("Sender", self.receiver),
            rules=self.rules,
            appender=Appender(self.store, clock=self.clock),
            service_events=ServiceEvents(Config().base_url),
            metrics=self.metrics,
            clock=self.clock,
            tracer=self.tracer,
        )
        made.enqueue = self.enqueued.extend
        return made

    async def stored(self) -> Delivery:
        (found,) = await self.store.deliveries(LAB, DeliveryQuery(endpoint=self.endpoint.id))
        return found

    async def state(self) -> tuple[str, str, int]:
        found = await self.store.endpoint(LAB, self.endpoint.id)
        assert found is not None
        return found.state, found.why, found.revision
