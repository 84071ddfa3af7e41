"""The processes that send are killed again and again: all is told, in order, and explained.

With FHIRPUB_TEST_FULL set, 20,000 events and 20 kills instead of 1,000 and 5.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import random
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fhirpub.app import opened_store
from fhirpub.config import Config, StorageConfig, variable
from fhirpub.fhir.strict_json import dumps
from fhirpub.storage.webhook_contract import Delivery, Untold
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.receiver import Received, Receiver, Reply
from fhirpub.testing.service import Integrator
from fhirpub.webhooks import verify
from fhirpub.webhooks.envelope import events_of
from tests.bodies import register_body
from tests.faults.nemesis import kill_one_worker
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

EVENTS, KILLS = (20_000, 20) if variable("FHIRPUB_TEST_FULL") else (1_000, 5)
THREADS = 8
UPDATES = 3
SETTINGS: dict[str, Any] = {
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


@pytest.fixture
def settings(tmp_path: Path, store_url: str) -> dict[str, dict[str, Any]]:
    keys = tmp_path / "keys"
    keys.write_bytes(base64.b64encode(b"k" * 32))
    return {"storage": {"url": store_url}, "webhooks": {**SETTINGS, "keys_file": str(keys)}}


@pytest.fixture
def service(tmp_path: Path, settings: dict[str, dict[str, Any]]) -> Iterator[ServiceProcess]:
    with ServiceProcess(tmp_path, workers=2, settings=settings) as process:
        yield process


@dataclass
class Moody:
    """Fails one time in ten, in one of three ways; remembers what it has taken."""

    random: random.Random
    taken: list[str] = field(default_factory=list)

    def reply(self, received: Received) -> Reply:
        if self.random.random() < 0.1:
            return self.random.choice(
                [Reply(status=500), Reply(misbehaviour="reset"), Reply(misbehaviour="closed")]
            )
        self.taken.append(received.headers["webhook-id"])
        return Reply()


class Reporter:
    """Registers reports and updates each some times, until there are so many events."""

    def __init__(self, lab: Integrator, name: str, events: int) -> None:
        self.events = 0
        self._lab = lab
        self._name = name
        self._most = events
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while self.events < self._most:
            number += 1
            try:
                port = self._lab.service.port
                with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as one:
                    self._report(one, f"{self._name}-{number}")
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)

    def _report(self, connection: http.client.HTTPConnection, value: str) -> None:
        body = dumps(register_body(value))
        path = self._send(connection, "POST", "/fhir/r4/DiagnosticReport/$register", body)
        for number in range(UPDATES):
            patch = {"resourceType": "DiagnosticReport", "conclusion": f"{number}"}
            self._send(connection, "PATCH", path, dumps(patch))

    def _send(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes
    ) -> str:
        head = {
            "Authorization": f"Bearer {self._lab.token}",
            "Content-Type": "application/fhir+json",
        }
        connection.request(method, path, body, head)
        answer = connection.getresponse()
        said = answer.read()
        assert answer.status in (201, 204, 503), said
        if answer.status == 503:
            raise ConnectionError
        self.events += 1
        location = answer.headers.get("Location", "").partition("/_history")[0]
        return location[location.find("/fhir/") :]


def kill_while(reporters: Sequence[Reporter], service: ServiceProcess) -> None:
    """Kill workers, and all of them at once, spread over the work."""
    seconds = random.Random(20261121)
    for kill in range(1, KILLS + 1):
        wait_for(reporters, EVENTS * kill // (KILLS + 1))
        time.sleep(seconds.uniform(0.0, 0.3))
        if kill % 2:
            service.kill()
            service.start()
        else:
            kill_one_worker(service, kill // 2 % 2)


def wait_for(reporters: Sequence[Reporter], events: int) -> None:
    assert wait_until(lambda: sum(each.events for each in reporters) >= events, seconds=600)


@dataclass
class Truth:
    """What the store says in the end."""

    events: set[str]
    deliveries: dict[str, list[Delivery]]


def truth_of(url: str) -> Truth:
    return asyncio.run(_truth_of(url))


async def _truth_of(url: str) -> Truth:
    async with opened_store(Config(storage=StorageConfig(url=url))) as store:
        while any([await store.waiting(each.id, limit=1) for each in await store.all_endpoints()]):
            await asyncio.sleep(0.2)
        assert await store.unrelayed(limit=1) == []
        events: set[str] = set()
        place = ("", 0)
        while versions := await store.walk(after=place, limit=500):
            for _, version in versions:
                events |= {each.id for each in events_of(Untold.of(version), fhir_url="")}
            place = (versions[-1][1].id, versions[-1][1].version)
        deliveries: dict[str, list[Delivery]] = defaultdict(list)
        place = ("", 0)
        while found := await store.walk_deliveries(after=place, limit=500):
            for each in found:
                deliveries[each.endpoint].append(each)
            place = (found[-1].endpoint, found[-1].sequence)
        return Truth(events, deliveries)


def unknown_of(delivery: Delivery) -> int:
    """Return of how many attempts nobody knows whether the receiver took the event."""
    return sum(each.ended is None or each.reason != "" for each in delivery.attempts)


@dataclass
class Told:
    """An endpoint, and whoever receives there."""

    endpoint: str
    secret: str
    receiver: Receiver
    mood: Moody

    def check(self, truth: Truth) -> int:
        """Assert that it was told everything; return how many were told twice."""
        deliveries = {each.event_id: each for each in truth.deliveries[self.endpoint]}
        assert set(deliveries) == truth.events
        assert {each.state for each in deliveries.values()} == {"delivered"}
        numbers = [each.sequence for each in deliveries.values()]
        assert numbers == list(range(1, len(truth.events) + 1))
        taken = Counter(self.mood.taken)
        assert set(taken) == truth.events
        for event, number in taken.items():
            assert number - 1 <= unknown_of(deliveries[event])
        _check_order(self.receiver.received)
        for each in self.receiver.received[:: len(taken) // 100]:
            now = int(each.headers["webhook-timestamp"])
            verify(each.headers, each.body, self.secret, now=now)
        return taken.total() - len(taken)


def _check_order(received: Sequence[Received]) -> None:
    versions: dict[str, list[int]] = defaultdict(list)
    for each in received:
        data = each.json["data"]
        versions[data["id"]].append(int(data["version_id"]))
    assert all(a <= b for each in versions.values() for a, b in pairwise(each))


def told_by(service: ServiceProcess, lab: Integrator, receiver: Receiver, *, seed: int) -> Told:
    mood = Moody(random.Random(seed))
    receiver.answer_by(mood.reply)
    words = ("--tenant", lab.tenant.id, "--url", receiver.url, "--event", "*")
    added = service.command("endpoint", "add", *words)
    return Told(added["id"], added["signing_secret"], receiver, mood)


def test_what_was_committed_is_told_in_order_whoever_is_killed(
    service: ServiceProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = service.integrator()
    with Receiver() as first, Receiver() as second:
        two = [told_by(service, lab, each, seed=n) for n, each in enumerate((first, second))]
        begun = time.monotonic()
        reporters = [Reporter(lab, f"r{n}", EVENTS // THREADS) for n in range(THREADS)]
        kill_while(reporters, service)
        for each in reporters:
            each.join()
        truth = truth_of(service.config.storage.url)
        took = time.monotonic() - begun
        service.terminate()
        service.wait()

    assert len(truth.events) >= EVENTS
    duplicates = sum(each.check(truth) for each in two)
    requests = len(first.received) + len(second.received)
    figures = f"{requests} requests, {KILLS} kills, {took:.0f} s, {duplicates} taken twice"
    with capsys.disabled():
        sys.stdout.write(f"\n{len(truth.events)} events, {figures}\n")
