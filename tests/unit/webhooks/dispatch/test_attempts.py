"""What one attempt leaves: in the log, in the queue, in the audit trail, and with the endpoint."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from fhirpub.config.settings import Config
from fhirpub.runtime.metrics import Metrics
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.webhook_contract import AttemptResult, Delivery, DeliveryQuery, Endpoint
from fhirpub.testing.clock import HandClock
from fhirpub.testing.contracts.webhooks.records import NOW, a_delivery, an_endpoint
from fhirpub.testing.samples import LAB, OTHER
from fhirpub.webhooks.dispatch.appender import Appender
from fhirpub.webhooks.dispatch.attempts import Attempts, Rules
from fhirpub.webhooks.dispatch.endpoint_worker import EndpointWorker
from fhirpub.webhooks.management.operational_events import ServiceEvents
from fhirpub.webhooks.policy.outcome import Outcome
from fhirpub.webhooks.policy.retry_policy import FailurePolicy, Schedule
from fhirpub.webhooks.transport.message import Message
from fhirpub.webhooks.transport.sender import Sender
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
        self.line.queue.take(self.clock(), 1)
        begun = await self.store.begin(
            [(self.endpoint.id, "evt_1")], now=self.clock(), until=LEASED
        )
        attempts = Attempts(
            self.store,
            cast("Sender", self.receiver),
            rules=self.rules,
            appender=Appender(self.store, clock=self.clock),
            service_events=ServiceEvents(Config().base_url),
            metrics=Metrics(serves=False, sends=True),
            clock=self.clock,
            tracer=None,
        )
        attempts.enqueue = self.enqueued.extend
        await attempts.deliver(self.line, begun[0])
        return await self.stored()

    async def stored(self) -> Delivery:
        (found,) = await self.store.deliveries(LAB, DeliveryQuery(endpoint=self.endpoint.id))
        return found

    async def state(self) -> tuple[str, str, int]:
        found = await self.store.endpoint(LAB, self.endpoint.id)
        assert found is not None
        return found.state, found.why, found.revision


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    store = Recorded(tmp_path / "fhirpub.db")
    await store.start()
    made = Desk(store)
    await made.add()
    yield made
    await store.stop()


async def test_what_was_accepted_is_delivered_and_leaves_the_queue(desk: Desk) -> None:
    found = await desk.deliver(ACCEPTED)

    assert (found.state, found.ended, found.leased) == ("delivered", NOW, 0)
    assert desk.line.queue.next_moment() is None
    (attempt,) = found.attempts
    assert (attempt.number, attempt.status, attempt.duration, attempt.ended) == (1, 204, 40, NOW)


async def test_what_failed_is_tried_again_after_its_wait(desk: Desk) -> None:
    found = await desk.deliver(FAILED)

    assert found.state == "retrying"
    assert NOW + 5_000 <= found.due <= NOW + 6_000
    assert desk.line.queue.next_moment() == found.due


async def test_what_used_up_its_attempts_is_dead(desk: Desk) -> None:
    await desk.deliver(FAILED)
    desk.clock.forward(seconds=10)

    found = await desk.deliver(FAILED)

    assert (found.state, found.number) == ("dead", 2)
    assert desk.line.queue.next_moment() is None


async def test_a_fault_is_a_failure_that_does_not_count_against_the_receiver(desk: Desk) -> None:
    found = await desk.deliver(RuntimeError("a fault"))

    assert (found.attempts[0].reason, found.state) == ("E_INTERNAL", "retrying")
    assert desk.line.condition.streak.failures == 0


async def test_a_failure_counts_against_the_receiver(desk: Desk) -> None:
    await desk.deliver(FAILED)

    assert desk.line.condition.streak.failures == 1


@pytest.mark.parametrize(("late", "sent"), [(0, 1), (1, 0)])
async def test_nothing_is_sent_that_could_outlast_its_lease(
    desk: Desk, late: int, sent: int
) -> None:
    latest = LEASED - round(TIMEOUT * 1000)
    begin = desk.store.begin

    async def slowly(*keys: Any, **named: Any) -> Any:
        begun = await begin(*keys, **named)
        desk.clock.now = latest + late
        return begun

    desk.store.begin = slowly  # type: ignore[method-assign]
    await desk.deliver(ACCEPTED)

    assert len(desk.receiver.sent) == sent


async def test_nothing_is_sent_to_an_endpoint_that_is_paused(desk: Desk) -> None:
    desk.line.endpoint = replace(desk.endpoint, state="paused")

    found = await desk.deliver(ACCEPTED)

    assert (desk.receiver.sent, found.state, desk.store.order) == ([], "pending", [])
    assert desk.line.queue.next_moment() == LEASED


async def test_the_record_of_an_attempt_comes_before_its_outcome(desk: Desk) -> None:
    await desk.deliver(FAILED)

    assert desk.store.order == ["record", "finish"]
    ((tenant, record),) = desk.store.records
    assert (tenant, record["action"], record["status"], record["at"]) == (
        LAB,
        "event.deliver",
        503,
        NOW,
    )
    assert record["what"] == ["DiagnosticReport/1", f"Endpoint/{desk.endpoint.id}"]
    assert record["environment"] == "sandbox"


async def test_without_a_response_the_record_has_504(desk: Desk) -> None:
    await desk.deliver(Outcome(reason="E_TIMEOUT", duration=15_000))

    assert desk.store.records[0][1]["status"] == 504


async def test_without_an_audit_trail_there_is_no_record(desk: Desk) -> None:
    desk.rules = replace(desk.rules, is_audited=False)

    await desk.deliver(ACCEPTED)

    assert desk.store.records == []


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (Outcome(status=410), "gone"),
        (Outcome(status=503, wish="disable"), "asked"),
        (Outcome(status=200, wish="disable"), "asked"),
    ],
)
async def test_a_receiver_that_wants_no_more_is_disabled(
    desk: Desk, outcome: Outcome, why: str
) -> None:
    await desk.deliver(outcome)

    assert await desk.state() == ("disabled", why, 2)


async def test_what_a_disabled_endpoint_did_not_take_is_held(desk: Desk) -> None:
    found = await desk.deliver(Outcome(status=410))

    assert (found.state, found.due) == ("retrying", NOW)


async def test_an_endpoint_with_another_url_is_not_disabled(desk: Desk) -> None:
    moved = replace(desk.endpoint, url="https://new.example", revision=2)
    await desk.store.put_endpoint(LAB, moved)

    await desk.deliver(Outcome(status=410))

    assert await desk.state() == ("active", "", 2)
    assert not desk.line.disabling


async def test_an_endpoint_that_was_changed_is_disabled_as_it_is(desk: Desk) -> None:
    changed = replace(desk.endpoint, description="d", revision=2)
    await desk.store.put_endpoint(LAB, changed)

    await desk.deliver(Outcome(status=410))

    found = await desk.store.endpoint(LAB, desk.endpoint.id)
    assert found is not None
    assert (found.state, found.description, found.revision) == ("disabled", "d", 3)


async def test_a_dead_delivery_is_reported_to_the_other_endpoints_of_the_tenant(
    desk: Desk,
) -> None:
    events = ("message.exhausted",)
    others = [an_endpoint(tenant=tenant, events=events) for tenant in (LAB, OTHER)]
    for each in others:
        await desk.store.put_endpoint(each.tenant, each)

    await desk.deliver(Outcome(status=400, wish="abort-message"))

    assert [(one.endpoint, one.event_type) for one in desk.enqueued] == [
        (others[0].id, "message.exhausted")
    ]


async def test_a_dead_report_of_the_service_is_not_reported(desk: Desk) -> None:
    await desk.store.put_endpoint(LAB, an_endpoint(events=("message.exhausted",)))
    await desk.add(event_type="message.exhausted")

    await desk.deliver(Outcome(status=400, wish="abort-message"))

    assert desk.enqueued == []


async def test_an_outcome_of_an_attempt_that_was_overtaken_is_looked_up_again(
    desk: Desk,
) -> None:
    begin = desk.store.begin

    async def twice(*keys: Any, **named: Any) -> Any:
        begun = await begin(*keys, **named)
        await begin(*keys, now=LEASED, until=LEASED + 30_000)
        return begun

    desk.store.begin = twice  # type: ignore[method-assign]
    desk.line.read = 7

    found = await desk.deliver(ACCEPTED)

    assert (found.state, desk.line.read) == ("pending", 0)
    assert desk.line.queue.next_moment() == NOW + 1_000
