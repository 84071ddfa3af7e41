"""Reporters, unreliable receivers, and the check that the receivers got every committed event."""

from __future__ import annotations

import asyncio
import base64
import http.client
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, Self

from fhirpub.app.stores import open_store
from fhirpub.config.settings import Config, StorageConfig
from fhirpub.fhir.strict_json import dumps
from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import Delivery, OutboxEntry
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.receiver import Received, Receiver, Reply
from fhirpub.testing.service import Integrator
from fhirpub.webhooks import verify
from fhirpub.webhooks.transport.envelope import events_of
from tests.bodies import register_body
from tests.faults.nemesis import kill_one_worker
from tests.waiting import wait_until

_UPDATES = 3
_MAX_SECONDS = 600.0
_IMPATIENT: dict[str, Any] = {
    "allow_networks": ["127.0.0.1/32"],
    "connect_seconds": 0.5,
    "timeout_seconds": 1.0,
    "retry_seconds": [0.2, 0.5],
    "retry_forever": True,
    "rate_per_endpoint": 10_000.0,
    "breaker_failures": 1_000_000,
    "breaker_share": 1.0,
    "lease_seconds": 1.0,
}


def impatient(folder: Path) -> dict[str, Any]:
    """Return webhook settings that retry soon and for ever; their key file is in the folder."""
    keys = folder / "keys"
    keys.write_bytes(base64.b64encode(b"k" * 32))
    return {**_IMPATIENT, "keys_file": str(keys)}


@dataclass
class Moody:
    """Fails one time in ten, in one of three ways; remembers the events that it has accepted."""

    random: Random
    accepted: list[str] = field(default_factory=list)

    def reply(self, received: Received) -> Reply:
        if self.random.random() < 0.1:
            return self.random.choice(
                [Reply(status=500), Reply(misbehaviour="reset"), Reply(misbehaviour="closed")]
            )
        self.accepted.append(received.headers["webhook-id"])
        return Reply()


class Reporters:
    """Register reports and update each several times, in threads; a context manager."""

    def __init__(self, lab: Integrator, number: int) -> None:
        self._lab = lab
        self._events = [0] * number
        self._enough = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(item,), name=f"reporter {item}")
            for item in range(number)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._enough.set()
        for thread in self._threads:
            thread.join()

    @property
    def events(self) -> int:
        """The number of events that are known to be committed."""
        return sum(self._events)

    def wait_for(self, events: int) -> None:
        """Return once this number of events is committed."""
        assert wait_until(lambda: self.events >= events, seconds=_MAX_SECONDS)

    def _run(self, reporter: int) -> None:
        report = 0
        while not self._enough.is_set():
            report += 1
            try:
                port = self._lab.service.port
                with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as one:
                    self._report(one, reporter, report)
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)

    def _report(self, connection: http.client.HTTPConnection, reporter: int, report: int) -> None:
        body = dumps(register_body(f"r{reporter}-{report}"))
        path = self._send(connection, "POST", "/fhir/r4/DiagnosticReport/$register", body)
        self._events[reporter] += 1
        for number in range(_UPDATES):
            patch = {"resourceType": "DiagnosticReport", "conclusion": f"{number}"}
            self._send(connection, "PATCH", path, dumps(patch))
            self._events[reporter] += 1

    def _send(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes
    ) -> str:
        head = {
            "Authorization": f"Bearer {self._lab.token}",
            "Content-Type": "application/fhir+json",
        }
        connection.request(method, path, body, head)
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status in (201, 204, 503), content
        if answer.status == 503:
            raise ConnectionError
        location = answer.headers.get("Location", "").partition("/_history")[0]
        return location[location.find("/fhir/") :]


def kill_while(
    reporters: Reporters, service: ServiceProcess, *, events: int, kills: int, random: Random
) -> None:
    """Kill all workers and single ones in turn, spread over the work, until all is committed."""
    for kill in range(1, kills + 1):
        reporters.wait_for(events * kill // (kills + 1))
        time.sleep(random.uniform(0.0, 0.3))
        if kill % 2:
            service.kill()
            service.start()
        else:
            kill_one_worker(service, kill // 2 % 2)
    reporters.wait_for(events)


@dataclass
class Truth:
    """The contents of the store at the end."""

    events: set[str]
    deliveries: dict[str, list[Delivery]]


def truth_of(url: str) -> Truth:
    """Return the contents of the store once all committed events have been delivered."""
    return asyncio.run(_truth_of(url))


async def _truth_of(url: str) -> Truth:
    async with open_store(Config(storage=StorageConfig(url=url))) as store:
        async with asyncio.timeout(_MAX_SECONDS):
            while await _is_pending(store):
                await asyncio.sleep(0.2)
        events: set[str] = set()
        place = ("", 0)
        while versions := await store.scan(after=place, limit=500):
            for _, version in versions:
                events |= {event.id for event in events_of(OutboxEntry.of(version), fhir_url="")}
            place = (versions[-1][1].id, versions[-1][1].version)
        deliveries: dict[str, list[Delivery]] = defaultdict(list)
        place = ("", 0)
        while found := await store.scan_deliveries(after=place, limit=500):
            for delivery in found:
                deliveries[delivery.endpoint].append(delivery)
            place = (found[-1].endpoint, found[-1].sequence)
        return Truth(events, deliveries)


async def _is_pending(store: Store) -> bool:
    """Return whether any committed event still has to be delivered."""
    endpoints = await store.all_endpoints()
    waiting = [await store.waiting(endpoint.id, limit=1) for endpoint in endpoints]
    return any([*waiting, await store.pending_outbox(limit=1)])


def unknown_of(delivery: Delivery) -> int:
    """Return the number of attempts of which the receiver may have taken the event."""
    return sum(attempt.ended is None or attempt.reason != "" for attempt in delivery.attempts)


@dataclass
class Subscriber:
    """An endpoint and its receiver."""

    endpoint: str
    secret: str
    receiver: Receiver
    mood: Moody

    def check(self, truth: Truth) -> int:
        """Assert that it received everything; return the number of repeats."""
        deliveries = {delivery.event_id: delivery for delivery in truth.deliveries[self.endpoint]}
        assert set(deliveries) == truth.events
        assert {delivery.state for delivery in deliveries.values()} == {"delivered"}
        numbers = [delivery.sequence for delivery in deliveries.values()]
        assert numbers == list(range(1, len(truth.events) + 1))
        accepted = Counter(self.mood.accepted)
        assert set(accepted) == truth.events
        for event, number in accepted.items():
            assert number - 1 <= unknown_of(deliveries[event])
        _check_order(self.receiver.received)
        for received in self.receiver.received[:: max(1, len(accepted) // 100)]:
            now = int(received.headers["webhook-timestamp"])
            verify(received.headers, received.body, self.secret, now=now)
        return accepted.total() - len(accepted)


def _check_order(received: Sequence[Received]) -> None:
    versions: dict[str, list[int]] = defaultdict(list)
    for item in received:
        data = item.json["data"]
        versions[data["id"]].append(int(data["version_id"]))
    assert all(a <= b for version in versions.values() for a, b in pairwise(version))


def subscribe(
    service: ServiceProcess, lab: Integrator, receiver: Receiver, *, seed: int
) -> Subscriber:
    """Subscribe an unreliable receiver to all events."""
    mood = Moody(Random(seed))
    receiver.answer_by(mood.reply)
    words = ("--tenant", lab.tenant.id, "--url", receiver.url, "--event", "*")
    added = service.command("endpoint", "add", *words)
    return Subscriber(added["id"], added["signing_secret"], receiver, mood)
