"""Sending processes and primaries of the store are lost again and again.

Every event is delivered, in order, and each repeat is explained. With FHIRPUB_TEST_FULL set, there
are 20,000 events, 20 kills and 50 failovers instead of 400, 3 and 3.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fhirpub.config.loader import variable
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.receiver import Receiver
from tests.faults.nemesis import failovers
from tests.faults.stores import mostly_on
from tests.faults.webhook_checks import (
    Reporters,
    impatient,
    kill_while,
    subscribe,
    truth_of,
)
from tests.mongod.replica_set import SHORTER_THAN_AN_ELECTION_SECONDS, ReplicaSet

pytestmark = pytest.mark.slow

EVENTS, KILLS = (20_000, 20) if variable("FHIRPUB_TEST_FULL") else (300, 2)
STEP_DOWNS, LOST_PRIMARIES, PAUSES = (20, 20, 10) if variable("FHIRPUB_TEST_FULL") else (1, 1, 1)


@pytest.fixture
def settings(tmp_path: Path, store_url: str) -> dict[str, dict[str, Any]]:
    return {"storage": {"url": store_url}, "webhooks": impatient(tmp_path)}


@pytest.fixture
def service(tmp_path: Path, settings: dict[str, dict[str, Any]]) -> Iterator[ServiceProcess]:
    with ServiceProcess(tmp_path, workers=2, settings=settings) as process:
        yield process


@pytest.fixture
def service_on_three(tmp_path: Path, set_of_three: ReplicaSet) -> Iterator[ServiceProcess]:
    storage = {
        "url": set_of_three.url("webhooks"),
        "deadline_seconds": SHORTER_THAN_AN_ELECTION_SECONDS,
    }
    settings = {"storage": storage, "webhooks": impatient(tmp_path)}
    with ServiceProcess(tmp_path, workers=2, settings=settings) as process:
        yield process


def figures_of_delivery(
    service: ServiceProcess,
    do_harm: Callable[[Reporters], None],
    *,
    seed: int,
    reporters: int,
) -> str:
    """Assert that two receivers get all events while harm is done; return the figures."""
    lab = service.integrator()
    begun = time.monotonic()
    with Receiver() as first, Receiver() as second:
        two = [
            subscribe(service, lab, receiver, seed=seed + n)
            for n, receiver in enumerate((first, second))
        ]
        with Reporters(lab, reporters) as reporting:
            do_harm(reporting)
        truth = truth_of(service.config.storage.url)
        took = time.monotonic() - begun
        service.terminate()
        service.wait()

    assert len(truth.events) >= reporting.events
    duplicates = sum(subscriber.check(truth) for subscriber in two)
    requests = len(first.received) + len(second.received)
    figures = f"{requests} requests, {took:.0f} s, {duplicates} taken twice"
    return f"\n{len(truth.events)} events, {figures}\n"


@mostly_on("sqlite")
def test_committed_events_are_delivered_in_order_whichever_process_is_killed(
    service: ServiceProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    def do_harm(reporting: Reporters) -> None:
        kill_while(reporting, service, events=EVENTS, kills=KILLS, random=Random(20261121))

    figures = figures_of_delivery(service, do_harm, seed=0, reporters=8)

    with capsys.disabled():
        sys.stdout.write(figures)


def test_committed_events_are_delivered_in_order_whichever_member_is_primary(
    service_on_three: ServiceProcess,
    set_of_three: ReplicaSet,
    seed: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    losses = {"step_downs": STEP_DOWNS, "kills": LOST_PRIMARIES, "pauses": PAUSES}
    nemesis = failovers(set_of_three, Random(seed), **losses)

    figures = figures_of_delivery(
        service_on_three, lambda _made: asyncio.run(nemesis()), seed=seed, reporters=4
    )

    with capsys.disabled():
        sys.stdout.write(figures)
