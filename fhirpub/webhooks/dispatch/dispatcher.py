"""Sends the deliveries of the endpoints that this process has leased.

Three periodic tasks run concurrently: one refreshes endpoints and leases, one loads queues from
the store, one starts attempts. Each attempt runs in its own task (D-194 to D-199).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice

from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.runtime.clock import Clock
from fhirpub.runtime.faults import where
from fhirpub.runtime.logging import logger
from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import Delivery, Endpoint, QueuedDelivery
from fhirpub.webhooks.dispatch.attempts import Attempts
from fhirpub.webhooks.dispatch.endpoint_worker import EndpointWorker
from fhirpub.webhooks.dispatch.leases import EndpointAssignments
from fhirpub.webhooks.dispatch.periodic import PeriodicTask, gather_all
from fhirpub.webhooks.dispatch.queue_loader import (
    QueueLoader,
    divide_memory,
    needs_refill,
    queued,
)
from fhirpub.webhooks.dispatch.timer_queue import TimerQueue
from fhirpub.webhooks.policy.retry_policy import BreakerState

_LOOK_SECONDS = 1.0
_READ_FOR_MS = 600_000
_BUSY_SECONDS, _IDLE_SECONDS = 0.025, 0.1
_BUSY_FOR_SECONDS = 2.0
_INFORMED_SECONDS = 1.0
_MAX_NAP = 0.1
_BATCH_SIZE = 128
_SHARE_OF_FREE = 0.25
_TENANTS_TO_FREE = 3
"""A tenant's attempts in flight are at most this multiple of the slots that are then left free."""

_log = logger()


class Dispatcher:
    """Sends deliveries for the endpoints leased by this process.

    ``line_of`` creates the worker of an endpoint.
    """

    def __init__(
        self,
        store: Store,
        *,
        attempts: Attempts,
        shares: EndpointAssignments,
        settings: WebhooksConfig,
        line_of: Callable[..., EndpointWorker],
        clock: Clock,
    ) -> None:
        self._store = store
        self._attempts = attempts
        self._shares = shares
        self._settings = settings
        self._line_of = line_of
        self._clock = clock
        self.heard = True
        """Whether there is any endpoint, as of the last refresh."""
        self.informed = False
        """Whether :meth:`enqueue` receives every new delivery: the relay runs in this process."""
        self._lease_ms = round((settings.timeout_seconds + settings.lease_seconds) * 1000)
        self._lines: dict[str, EndpointWorker] = {}
        self._awake: dict[str, None] = {}
        self._loader = QueueLoader(store, clock=clock)
        self._alarms = TimerQueue()
        self._under_way: set[asyncio.Task[None]] = set()
        self._tenants: Counter[str] = Counter()
        self._busy_until = 0.0
        self._polled = 0.0
        self._looking = PeriodicTask("look after endpoints", self._refresh_endpoints)
        self._loading = PeriodicTask("read what waits", self._load)
        self._beginning = PeriodicTask("begin attempts", self._begin)

    async def run(self) -> None:
        """Run until :meth:`stop`; attempts may then still be in flight."""
        rounds = (self._looking, self._loading, self._beginning)
        await asyncio.gather(*(periodic_task.run() for periodic_task in rounds))

    def stop(self) -> None:
        """Start no more attempts."""
        for periodic_task in (self._looking, self._loading, self._beginning):
            periodic_task.stop()

    async def drain(self, until: float) -> None:
        """Wait for attempts in flight until a time of the loop's clock, then cancel the rest.

        The outcome of a cancelled attempt is unknown; it is retried when its lease expires.
        """
        if self._under_way:
            left = until - asyncio.get_running_loop().time()
            await asyncio.wait(self._under_way, timeout=max(0.0, left))
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def flush(self) -> None:
        """Store the outcomes of the attempts, after :meth:`drain`. Raises StoreUnavailable."""
        await self._attempts.drain()
        await self._save_health()

    def enqueue(self, deliveries: Sequence[Delivery]) -> None:
        """Add deliveries of one endpoint that were just created to its queue."""
        line = self._lines.get(deliveries[0].endpoint) if deliveries else None
        if line is None:
            return
        # Another process may have stored deliveries before or between these.
        follows = deliveries[-1].sequence == line.queue.last + len(deliveries)
        known = not (line.stale or line.reading or line.behind)
        has_room = len(line.queue) + len(deliveries) <= line.most_queued
        if known and follows and has_room:
            line.queue.add(queued(delivery) for delivery in deliveries)
            self._wake(line)
        else:
            line.behind = True
            self._loading.wake()

    # Metrics of the endpoints that this process has leased.

    def depth(self) -> int:
        """Return how many deliveries are queued or in flight."""
        return sum(len(line.queue) for line in self._lines.values())

    def oldest(self) -> int | None:
        """Return when the oldest of them was created, or None."""
        firsts = (line.queue.oldest for line in self._lines.values())
        return min((first for first in firsts if first is not None), default=None)

    def breakers(self, state: BreakerState) -> int:
        """Return how many endpoints have their breaker in this state."""
        return sum(line.condition.breaker.state == state for line in self._lines.values())

    def waiting_since(self) -> dict[str, int]:
        """Return for each tenant since when deliveries wait for time of this process."""
        now, found = self._clock(), dict[str, int]()
        for name in [*islice(self._awake, _BATCH_SIZE)]:
            line = self._lines.get(name)
            since = line.waits_for_process(now) if line else None
            if line is not None and since is not None:
                tenant = line.endpoint.tenant
                found[tenant] = min(since, found.get(tenant, since))
        return found

    # Endpoints and leases.

    async def _refresh_endpoints(self) -> float:
        endpoints = await self._endpoints()
        self.heard = bool(endpoints)
        active = {endpoint.id for endpoint in endpoints.values() if endpoint.state == "active"}
        await self._shares.give_up(self._shares.owned - endpoints.keys())
        surplus = await self._shares.update(active)
        owned = self._shares.owned
        if not owned <= self._lines.keys():
            # The previous owner may have stored an endpoint's health since they were read.
            endpoints |= await self._endpoints()
        for name in [line for line in self._lines if line not in owned]:
            del self._lines[name]
        for name in owned:
            if name in self._lines:
                self._lines[name].update(endpoints[name])
            else:
                self._lines[name] = self._line_of(endpoints[name])
            self._wake(self._lines[name])
        divide_memory(self._lines.values())
        self._reload_stalest()
        resting = self._choose_surplus(surplus)
        for name in resting:
            self._lines[name].reset_health()
        await self._save_health()  # before another process takes over
        for name in resting:
            del self._lines[name]
        await self._shares.give_up(resting)
        self._loading.wake()
        return min(_LOOK_SECONDS, self._settings.lease_seconds / 4)

    async def _endpoints(self) -> dict[str, Endpoint]:
        return {endpoint.id: endpoint for endpoint in await self._store.all_endpoints()}

    def _reload_stalest(self) -> None:
        """Mark the queue with the oldest load for a reload, once that load is old.

        A process that reopened deliveries may have died before it recorded that on the endpoint.
        """
        oldest = min(self._lines.values(), key=lambda each: each.read, default=None)
        if oldest is not None and oldest.read < self._clock() - _READ_FOR_MS:
            oldest.read = 0

    def _choose_surplus(self, surplus: int) -> list[str]:
        """Mark inactive endpoints, and ``surplus`` others, as leaving; return the idle ones."""
        ordered = sorted(
            self._lines.values(),
            key=lambda each: (each.endpoint.state == "active", not each.leaving, each.queue.taken),
        )
        inactive = sum(worker.endpoint.state != "active" for worker in ordered)
        surplus = max(surplus, inactive)
        for number, line in enumerate(ordered):
            line.leaving = number < surplus
        return [worker.endpoint.id for worker in ordered[:surplus] if not worker.queue.taken]

    async def _save_health(self) -> None:
        changed = [
            (line, written)
            for line in self._lines.values()
            if (written := line.condition.serialize()) != line.saved
        ]
        work = (self._store.save_health(line.endpoint.id, new) for line, new in changed)
        await gather_all(*work)
        for line, written in changed:
            line.saved = written

    # Loading queues.

    async def _load(self) -> float:
        now = asyncio.get_running_loop().time()
        pause = self._pause(now)
        if self._lines and now >= self._polled + pause:
            self._polled = now
            ends = await self._store.last_sequences(list(self._lines))
            for name, end in ends.items():
                line = self._lines.get(name)
                if line is not None and end > line.queue.last:
                    line.behind = True
                    self._busy_until = now + _BUSY_FOR_SECONDS
        hungry = [worker for worker in self._lines.values() if needs_refill(worker)]
        await gather_all(*map(self._fill, hungry))
        return 0.0 if any(map(needs_refill, self._lines.values())) else self._pause(now)

    def _pause(self, now: float) -> float:
        if self.informed:
            return _INFORMED_SECONDS
        return _BUSY_SECONDS if now < self._busy_until else _IDLE_SECONDS

    async def _fill(self, line: EndpointWorker) -> None:
        await self._loader.fill(line)
        self._wake(line)

    # Starting attempts.

    async def _begin(self) -> float:
        now = self._clock()
        chosen = self._choose(now)
        if chosen:
            await self._begin_attempts(chosen, now)
            return 0.0
        earliest = self._alarms.earliest
        if earliest is None:
            return _MAX_NAP if self._awake else _LOOK_SECONDS
        return min(_MAX_NAP, max(0.001, (earliest - self._clock()) / 1000))

    def _choose(self, now: int) -> list[tuple[EndpointWorker, QueuedDelivery]]:
        """Dequeue from the endpoints round robin, from each at most its share of free slots."""
        for name in self._alarms.pop_due(now):
            if name in self._lines:
                self._wake(self._lines[name])
                self._lines[name].alarm = None
        chosen: list[tuple[EndpointWorker, QueuedDelivery]] = []
        tenants = self._tenants.copy()
        for name in list(self._awake):
            free = self._settings.in_flight - len(self._under_way) - len(chosen)
            if free <= 0 or len(chosen) >= _BATCH_SIZE:
                break
            del self._awake[name]
            line = self._lines.get(name)
            if line is not None and self._shares.holds(name):
                tenant = line.endpoint.tenant
                taken = line.dequeue(now, _part(free, line.queue.taken, tenants[tenant]))
                tenants[tenant] += len(taken)
                chosen += [(line, delivery) for delivery in taken]
                self._schedule_wake_up(line, now)
        return chosen

    def _schedule_wake_up(self, line: EndpointWorker, now: int) -> None:
        """Schedule when to look at the endpoint again."""
        name, moment = line.endpoint.id, line.next_moment(now)
        if moment is None:
            return
        if moment <= now:
            self._awake[name] = None
        elif line.alarm is None or moment < line.alarm:
            line.alarm = moment
            self._alarms.add(moment, name)

    def _wake(self, line: EndpointWorker) -> None:
        self._awake[line.endpoint.id] = None
        self._beginning.wake()

    async def _begin_attempts(
        self, chosen: Sequence[tuple[EndpointWorker, QueuedDelivery]], now: int
    ) -> None:
        keys = [(item.endpoint, item.event_id) for _, item in chosen]
        begun: dict[tuple[str, str], Delivery] = {}
        try:
            taken = await self._store.begin(keys, now=now, until=now + self._lease_ms)
            begun = {item.key: item for item in taken}
        finally:
            for line, waiting in chosen:
                delivery = begun.get((waiting.endpoint, waiting.event_id))
                if delivery is not None:
                    self._start(line, delivery)
                    continue
                # Another process has or had it, or it was started although the reply was lost.
                line.requeue_and_reload(waiting, now)
                self._loading.wake()

    def _start(self, line: EndpointWorker, delivery: Delivery) -> None:
        task = asyncio.create_task(self._attempts.deliver(line, delivery))
        self._under_way.add(task)
        self._tenants[delivery.tenant] += 1
        task.add_done_callback(lambda done: self._on_attempt_done(line, delivery, done))

    def _on_attempt_done(
        self, line: EndpointWorker, delivery: Delivery, task: asyncio.Task[None]
    ) -> None:
        self._under_way.discard(task)
        self._tenants -= Counter([delivery.tenant])
        if not task.cancelled() and (problem := task.exception()) is not None:
            _log.error("outcome of a webhook lost", event_id=delivery.event_id, **where(problem))
            due = self._clock() + self._lease_ms
            line.queue.back(delivery.event_id, due=due, number=delivery.number)
        if self._lines.get(line.endpoint.id) is line:
            self._wake(line)


def _part(free: int, of_endpoint: int, of_tenant: int) -> int:
    """Return how many more attempts an endpoint may start, so that slots stay free for others."""
    part = max(1, int(free * _SHARE_OF_FREE)) - of_endpoint
    most = (_TENANTS_TO_FREE * free - of_tenant) // (_TENANTS_TO_FREE + 1)
    return min(part, most if of_tenant else max(1, most))
