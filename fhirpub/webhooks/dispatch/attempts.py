"""One delivery attempt: send it, store its outcome, emit events, update the queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from random import Random

from fhirpub.audit.record import Access, Agent, encode, name_of
from fhirpub.runtime.clock import Clock
from fhirpub.runtime.faults import where
from fhirpub.runtime.logging import logger
from fhirpub.runtime.metrics import Metrics
from fhirpub.runtime.tracing.context import TraceContext
from fhirpub.runtime.tracing.spans import Attributes, Tracer
from fhirpub.storage.batching import GroupCommit
from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import (
    Attempt,
    AttemptResult,
    Delivery,
    DeliveryState,
    Endpoint,
)
from fhirpub.webhooks.dispatch.appender import Appender
from fhirpub.webhooks.dispatch.endpoint_worker import EndpointWorker
from fhirpub.webhooks.dispatch.periodic import retry_until_stored
from fhirpub.webhooks.management.disclosure import disclose
from fhirpub.webhooks.management.operational_events import (
    ServiceEvents,
    is_service_event,
    subscribers_of,
)
from fhirpub.webhooks.policy.endpoint_health import EndpointHealth
from fhirpub.webhooks.policy.outcome import Outcome
from fhirpub.webhooks.policy.retry_policy import FailurePolicy, Next, Schedule, State, decide_retry
from fhirpub.webhooks.transport.envelope import WebhookEvent, time_of
from fhirpub.webhooks.transport.message import Message
from fhirpub.webhooks.transport.sender import Sender

_STATES: dict[State, DeliveryState] = {
    "delivered": "delivered",
    "retrying": "retrying",
    "dead": "dead",
    "held": "retrying",  # until the endpoint is active again
}
_DEADLINE_SECONDS = 10.0

_log = logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How long an attempt may take, in seconds, and what failures lead to."""

    timeout_seconds: float
    schedule: Schedule
    patience: FailurePolicy
    environment: str
    is_audited: bool


@dataclass(frozen=True, slots=True)
class _Finished:
    """The outcome of an attempt to store, with its audit record."""

    result: AttemptResult
    tenant: str
    record: bytes


class Attempts:
    """Makes attempts. ``enqueue`` is handed the deliveries of the service's own events."""

    def __init__(  # noqa: PLR0913 - what it works with, all of it by name
        self,
        store: Store,
        sender: Sender,
        *,
        rules: Rules,
        appender: Appender,
        service_events: ServiceEvents,
        metrics: Metrics,
        clock: Clock,
        tracer: Tracer | None,
    ) -> None:
        self._store = store
        self._sender = sender
        self._rules = rules
        self._appender = appender
        self._service_events = service_events
        self._metrics = metrics
        self._clock = clock
        self._tracer = tracer
        self._random = Random()  # noqa: S311 - spreads attempts, keeps no secret
        self._finishing: GroupCommit[_Finished, bool] = GroupCommit(
            self._finish, deadline_seconds=_DEADLINE_SECONDS
        )
        self.enqueue: Callable[[Sequence[Delivery]], None] = lambda _made: None
        """Is handed the deliveries that this makes: the service's own events."""

    async def deliver(self, line: EndpointWorker, delivery: Delivery) -> None:
        """Make the attempt that was begun, and return when its outcome is stored.

        It is not made if it could outlast its lease because the store or the machine was slow:
        another process may have sent this one and the next by then. Nor is it made if the endpoint
        is no longer active, or has a new URL that is not verified. It is then begun again.
        """
        attempted = await self._send_in_slot(line, delivery)
        if attempted is None:
            line.queue.back(delivery.event_id, due=delivery.leased, number=delivery.number)
            return
        outcome, url = attempted
        self._metrics.attempts.labels(outcome.word).inc()
        now = self._clock()
        shown, ended = self._disclose(delivery, outcome, now)
        then = decide_retry(
            outcome,
            attempt=delivery.number,
            schedule=self._rules.schedule,
            now=ended,
            chance=self._random.random(),
        )
        if outcome.reason != "E_INTERNAL":
            self._metrics.attempt_seconds.observe(outcome.duration / 1000)
            if line.endpoint.url == url:  # else it is the history of another receiver
                line.condition = line.condition.record(
                    outcome, then, now, self._rules.patience, ended=ended
                )
        await self._have_consequences(line, delivery, outcome, then, url=url)
        state, due = _STATES[then.state], then.due or ended
        attempt = _completed(delivery.attempts[-1], shown, ended)
        result = AttemptResult(key=delivery.key, attempt=attempt, state=state, due=due)
        finished = _Finished(result, delivery.tenant, self._record_of(delivery, outcome, ended))
        if not await retry_until_stored("finish", lambda: self._finishing.add(finished)):
            # It outlasted its lease; another process may be sending it now.
            line.requeue_and_reload(delivery, self._clock())
        elif state == "retrying":
            line.queue.back(delivery.event_id, due=due, number=delivery.number)
        else:
            line.queue.remove(delivery.event_id)
            self._count_ended(delivery, outcome, now)

    def _record_of(self, delivery: Delivery, outcome: Outcome, ended: int) -> bytes:
        """Return the audit record of an attempt; empty if there is no audit trail."""
        if not self._rules.is_audited:
            return b""
        what = tuple(filter(None, (delivery.resource, name_of("Endpoint", delivery.endpoint))))
        status = outcome.status or HTTPStatus.GATEWAY_TIMEOUT
        access = Access(action="event.deliver", status=int(status), what=what)
        return encode(access, Agent(environment=self._rules.environment), at=ended)

    async def _finish(self, batch: Sequence[_Finished]) -> Sequence[bool]:
        """Store outcomes, each after its audit record: what is sent has one, or is sent again."""
        records: dict[str, bytes] = {}
        for each in batch:
            if each.record:
                records[each.tenant] = records.get(each.tenant, b"") + each.record + b"\n"
        await self._store.add_audit_records(records)
        return await self._store.finish([each.result for each in batch])

    async def _send_in_slot(
        self, line: EndpointWorker, delivery: Delivery
    ) -> tuple[Outcome, str] | None:
        """Send it once a slot is free; return the outcome with the URL, or None if not sent."""
        latest = delivery.leased - round(self._rules.timeout_seconds * 1000)
        async with line.window.slots:
            if self._clock() > latest or line.endpoint.state != "active":
                return None
            url = line.endpoint.url
            outcome = await self._send(line, delivery)
        line.window.note_attempt(outcome.duration, delivered=outcome.delivered)
        return outcome, url

    def _disclose(self, delivery: Delivery, outcome: Outcome, now: int) -> tuple[Outcome, int]:
        """Return the outcome for the log, and when the attempt ended according to it.

        A failure that is withheld is logged, and retried, as one that took the longest time.
        """
        longest = round(self._rules.timeout_seconds * 1000)
        shown = disclose(
            outcome,
            endpoint=delivery.endpoint,
            event_id=delivery.event_id,
            verified=True,  # nothing is delivered to an endpoint that is not
            milliseconds=longest,
        )
        return shown, now if shown is outcome else delivery.attempts[-1].begun + longest

    def _count_ended(self, delivery: Delivery, outcome: Outcome, now: int) -> None:
        state = "delivered" if outcome.delivered else "dead"
        self._metrics.deliveries.labels(state, outcome.word).inc()
        replayed = len(delivery.attempts) > delivery.number
        if outcome.delivered and not replayed:
            seconds = max(0, now - time_of(delivery.body)) / 1000
            self._metrics.delivery_seconds.observe(seconds)

    async def drain(self) -> None:
        """Return when what was handed to the store is there."""
        await self._finishing.drain()

    async def _send(self, line: EndpointWorker, delivery: Delivery) -> Outcome:
        message = line.message(delivery, self._clock())
        span = None
        if self._tracer is not None:
            parent = TraceContext.parse([message.traceparent])
            span = self._tracer.start("deliver", "client", parent)
        if span is None:
            return await self._send_message(message)
        outcome = Outcome(reason="E_INTERNAL")
        try:
            traced = replace(message, traceparent=span.context.header)
            outcome = await self._send_message(traced)
            return outcome
        finally:
            span.end(_attributes(message, outcome), failed=not outcome.delivered)

    async def _send_message(self, message: Message) -> Outcome:
        try:
            return await self._sender.attempt(message)
        except Exception as problem:  # noqa: BLE001 - one delivery must not stop the others
            _log.error(
                "webhook could not be sent",
                endpoint=message.endpoint,
                event_id=message.event_id,
                **where(problem),
            )
            return Outcome(reason="E_INTERNAL")

    async def _have_consequences(
        self, line: EndpointWorker, delivery: Delivery, outcome: Outcome, then: Next, *, url: str
    ) -> None:
        """Emit operational events before persisting the result, so that a crash cannot lose them.

        ``url`` is where the delivery was sent, which may not be the endpoint's any more.
        """
        now = self._clock()
        health = line.condition.health(now, self._rules.patience)
        if then.state == "dead" and not is_service_event(delivery.event_type):
            event = self._service_events.emit_exhausted(line.endpoint, delivery, now=now)
            await self._emit(line.endpoint, event)
        if then.disable:
            await self._disable(line, "gone" if outcome.status == 410 else "asked", url)
        elif health == "given-up":
            await self._disable(line, "given-up", url)
        elif health == "failing":
            await self._warn(line)

    async def _warn(self, line: EndpointWorker) -> None:
        since = line.condition.streak.since
        if line.condition.warned == since:
            return
        event = self._service_events.failing(line.endpoint, since=since, now=self._clock())
        await self._emit(line.endpoint, event)
        # Unless another attempt has recorded it since, or the failures have ended.
        if line.condition.streak.since == since != line.condition.warned:
            line.condition = replace(line.condition, warned=since)
            _log.warning("endpoint is failing", endpoint=line.endpoint.id, since=since)

    async def _disable(self, line: EndpointWorker, why: str, url: str) -> None:
        """Disable the endpoint, unless its state or URL has changed in the meantime.

        Its failures count no more once it was enabled, which this process may not know yet: of
        another revision they are looked at again with its next failure.
        """
        if line.disabling:
            return
        line.disabling = True
        tenant, name, known = line.endpoint.tenant, line.endpoint.id, line.endpoint.revision
        while True:
            current = await retry_until_stored(
                "disable", partial(self._store.endpoint, tenant, name)
            )
            if current is None or current.state != "active":
                return
            is_known = why != "given-up" or current.revision == known
            if current.url != url or not is_known:
                line.disabling = False
                return
            event = self._service_events.emit_disabled(current, why, now=self._clock())
            await self._emit(current, event)
            disabled = replace(current, state="disabled", why=why, revision=current.revision + 1)
            if await retry_until_stored(
                "disable", partial(self._store.put_endpoint, tenant, disabled)
            ):
                self._metrics.endpoints_disabled.inc()
                _log.warning("endpoint disabled", endpoint=name, why=why)
                # Once it is enabled again, its old failures count no more.
                line.condition = EndpointHealth()
                return

    async def _emit(self, endpoint: Endpoint, event: WebhookEvent) -> None:
        """Emit an event to the tenant's other endpoints."""
        ours = await retry_until_stored(
            "emit", partial(self._store.all_endpoints, of=[endpoint.tenant])
        )
        for subscriber in subscribers_of(endpoint, event.type, ours):
            made = await retry_until_stored(
                "emit", partial(self._appender.append, subscriber, [event])
            )
            self.enqueue(made)


def _attributes(message: Message, outcome: Outcome) -> Attributes:
    return {
        "http.request.method": "POST",
        "http.response.status_code": int(outcome.status or 0),
        "fhirpub.outcome": outcome.word,
        "fhirpub.endpoint": message.endpoint,
        "fhirpub.event_id": message.event_id,
        "fhirpub.event_type": message.event_type,
        "fhirpub.attempt": message.number,
        "fhirpub.tenant": message.tenant,
    }


def _completed(attempt: Attempt, outcome: Outcome, ended: int) -> Attempt:
    return replace(
        attempt,
        ended=ended,
        status=outcome.status,
        reason=outcome.reason or "",
        duration=outcome.duration,
        dialled=outcome.dialled,
        answer=outcome.answer,
    )
