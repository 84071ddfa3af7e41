"""The webhook worker of one process: relay, dispatcher and sweeper."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import partial
from random import Random

from fhirpub.config.settings import Config
from fhirpub.encryption.cipher import SecretCipher
from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.clock import DAY_MS, Clock
from fhirpub.runtime.logging import logger
from fhirpub.runtime.metrics import Metrics
from fhirpub.runtime.tracing.spans import Tracer
from fhirpub.storage.leases import Leases
from fhirpub.storage.store import Store
from fhirpub.webhooks.dispatch.appender import Appender
from fhirpub.webhooks.dispatch.attempts import Attempts, Rules
from fhirpub.webhooks.dispatch.dispatcher import Dispatcher
from fhirpub.webhooks.dispatch.endpoint_worker import EndpointWorker
from fhirpub.webhooks.dispatch.leases import EndpointAssignments
from fhirpub.webhooks.dispatch.periodic import PeriodicTask
from fhirpub.webhooks.dispatch.relay import BATCH_SIZE, BATCH_SIZE_WITHOUT_ENDPOINTS, Relay
from fhirpub.webhooks.management.operational_events import ServiceEvents
from fhirpub.webhooks.management.pull_endpoints import remove_unread
from fhirpub.webhooks.policy.outcome import FAILURES
from fhirpub.webhooks.policy.retry_policy import BREAKER_STATES, FailurePolicy, Schedule
from fhirpub.webhooks.transport.sender import Sender

_SWEEP_SECONDS = 600.0
_BUSY_SECONDS, _IDLE_SECONDS = 0.025, 0.1
_BUSY_FOR_SECONDS = 2.0
_UNHEARD_SECONDS = 0.25
"""Between rounds while there is no endpoint: the first one may hear of its events so late."""
_LAST_SECONDS = 3.0
"""Time to store outcomes and release leases at the end, so that others need not wait."""

_log = logger()


class WebhookWorker:
    """Relays and sends as long as :meth:`running`; any number of processes may do so."""

    def __init__(  # noqa: PLR0913 - what it works with, all of it by name
        self,
        store: Store,
        *,
        config: Config,
        seal: SecretCipher,
        metrics: Metrics,
        clock: Clock,
        sender: Sender,
        tracer: Tracer | None = None,
    ) -> None:
        settings = config.webhooks
        self._store = store
        self._settings = settings
        self._clock = clock
        self._drain_seconds = config.server.drain_seconds
        self._leases = Leases(
            store, owner=secrets.token_hex(8), seconds=settings.lease_seconds, clock=clock
        )
        appender = Appender(store, clock=clock)
        rules = _rules(config)
        attempts = Attempts(
            store,
            sender,
            rules=rules,
            appender=appender,
            service_events=ServiceEvents(config.base_url),
            metrics=metrics,
            clock=clock,
            tracer=tracer,
        )
        self._dispatcher = Dispatcher(
            store,
            attempts=attempts,
            shares=EndpointAssignments(self._leases, Random()),  # noqa: S311 - no secret
            settings=settings,
            line_of=partial(EndpointWorker, settings=settings, patience=rules.patience, seal=seal),
            clock=clock,
        )
        attempts.enqueue = self._dispatcher.enqueue
        self._relay = Relay(
            store,
            appender=appender,
            leases=self._leases,
            fhir_url=f"{config.base_url}/fhir/r4",
            enqueue=self._dispatcher.enqueue,
            tracer=tracer,
        )
        self._relaying = PeriodicTask("relay", self._relay_some)
        self._sweeping = PeriodicTask("sweep", self._sweep)
        self._busy_until = 0.0
        self._show(metrics)

    def ring(self) -> None:
        """Report that a version was committed: its events are relayed at once.

        A relay elsewhere looks for itself.
        """
        if self.relays_at_once:
            self._relaying.wake()

    def lags(self) -> dict[str, float]:
        """Return for each tenant for how many seconds events wait for time of this process."""
        since = dict(self._relay.oldest_by_tenant)
        for tenant, moment in self._dispatcher.waiting_since().items():
            since[tenant] = min(moment, since.get(tenant, moment))
        return {tenant: self._age(moment) for tenant, moment in since.items()}

    @property
    def relays_at_once(self) -> bool:
        """Whether this process relays events, and there is an endpoint that may want them."""
        return self._relay.leading and self._dispatcher.heard

    def pause_for(self, _tenant: str) -> float:
        """Return 0: on one event loop a pause would not help the deliveries."""
        return 0.0

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Run until the block ends; then finish what is in flight, within ``drain_seconds``.

        An unavailable store does not delay that: what is not stored is safe to repeat.
        """
        work = asyncio.gather(self._relaying.run(), self._sweeping.run(), self._dispatcher.run())
        try:
            yield
        finally:
            for item in (self._relaying, self._sweeping, self._dispatcher):
                item.stop()
            until = asyncio.get_running_loop().time() + self._drain_seconds
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    await work
            await self._dispatcher.drain(until)
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_SECONDS):
                    await self._note_last()

    async def _note_last(self) -> None:
        with suppress(StoreUnavailable):
            await self._dispatcher.flush()
        with suppress(StoreUnavailable):
            await self._relay.finish()
        with suppress(StoreUnavailable):
            await self._leases.release_all()

    def _show(self, metrics: Metrics) -> None:
        """Make the gauges read the state in memory at each scrape."""
        dispatcher, relay = self._dispatcher, self._relay
        metrics.queue_depth.set_function(dispatcher.depth)
        metrics.oldest_pending.set_function(lambda: self._age(dispatcher.oldest()))
        metrics.relay_lag.set_function(lambda: self._age(relay.oldest))
        metrics.relay_leading.set_function(lambda: relay.leading)
        for reason in FAILURES:
            metrics.deliveries.labels("dead", reason)  # 0: else an alarm misses the first of them
        for state in BREAKER_STATES:
            metrics.breakers.labels(state).set_function(partial(dispatcher.breakers, state))

    def _age(self, moment: int | None) -> float:
        """Return how many seconds ago a moment was, 0 for none."""
        return 0.0 if moment is None else max(0, self._clock() - moment) / 1000

    async def _relay_some(self) -> float:
        now = asyncio.get_running_loop().time()
        heard = self._dispatcher.heard
        relayed = await self._relay.relay(
            most=BATCH_SIZE if heard else BATCH_SIZE_WITHOUT_ENDPOINTS
        )
        self._dispatcher.informed = relayed is not None
        if relayed is None:
            return self._settings.lease_seconds / 5
        if not heard:
            return 0.0 if relayed >= BATCH_SIZE_WITHOUT_ENDPOINTS else _UNHEARD_SECONDS
        if relayed:
            self._busy_until = now + _BUSY_FOR_SECONDS
            return 0.0
        return _BUSY_SECONDS if now < self._busy_until else _IDLE_SECONDS

    async def _sweep(self) -> float:
        if not self._relay.leading:
            return self._settings.lease_seconds
        now, settings = self._clock(), self._settings
        held = now - round(settings.held_days * DAY_MS)
        await remove_unread(self._store, before=held)
        swept = await self._store.sweep_deliveries(
            delivered=now - round(settings.delivered_days * DAY_MS),
            dead=now - round(settings.dead_days * DAY_MS),
            open_=held,
        )
        if swept:
            _log.info("swept", deliveries=swept)
        return _SWEEP_SECONDS


def _rules(config: Config) -> Rules:
    settings = config.webhooks
    return Rules(
        timeout_seconds=settings.timeout_seconds,
        schedule=Schedule(waits=settings.retry_seconds, forever=settings.retry_forever),
        patience=FailurePolicy(
            in_a_row=settings.breaker_failures,
            share=settings.breaker_share,
            open_seconds=settings.breaker_seconds,
            open_seconds_max=settings.breaker_seconds_max,
            failing_hours=settings.failing_hours,
            given_up_hours=settings.give_up_hours,
            given_up_failures=settings.give_up_failures,
        ),
        environment=config.auth.environment,
        is_audited=config.audit.enabled,
    )
