"""Quotas of two workers are shared, changed while they run, and kept when they are killed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Integrator
from tests.bodies import register_body
from tests.faults.stores import mostly_on
from tests.quick_service import QUICK
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

UNKNOWN = "/fhir/r4/DiagnosticReport/00000000-0000-4000-8000-000000000000"
EXCHANGED_SECONDS = 3.0
"""After this time every process knows what the others had counted before."""
DAY = 86_400


@pytest.fixture
def process(tmp_path: Path, store_url: str) -> Iterator[ServiceProcess]:
    settings: dict[str, dict[str, Any]] = {
        "storage": {"url": store_url},
        "quotas": {"tenant_registrations_per_day": 40, "client_requests_at_a_time": 50},
    }
    with ServiceProcess(tmp_path, workers=2, settings=settings, module=QUICK) as running:
        yield running


def registered(lab: Integrator, names: range) -> Counter[int]:
    """Register reports over many connections, and count the statuses."""
    with ThreadPoolExecutor(4) as threads:
        answers = threads.map(lambda name: lab.register(register_body(f"R-{name}")), names)
        return Counter(answer.status for answer in answers)


def state_of(process: ServiceProcess, lab: Integrator, name: str) -> dict[str, Any]:
    shown = process.command("quota", "show", "--tenant", lab.tenant.id)
    (found,) = [item for item in shown["quotas"] if item["quota"] == name]
    assert isinstance(found, dict)
    return found


def wait_for_midnight() -> None:
    """Wait if the day ends so soon that the counts would begin again during the test."""
    left = DAY - time.time() % DAY  # noqa: TID251 - of the other processes
    if left < 90:
        time.sleep(left + 1)


@mostly_on("mongodb")
def test_two_workers_share_the_registrations_of_a_day_and_keep_them_when_killed(
    process: ServiceProcess,
) -> None:
    wait_for_midnight()
    lab, other = process.integrator(), process.integrator("Other")
    assert registered(lab, range(30)) == {201: 30}
    assert wait_until(lambda: state_of(process, lab, "registrations_per_day")["used"] == 30)

    process.kill()
    process.start()
    # Each new worker has to hear of the tenant once.
    Counter(lab.get(UNKNOWN).status for _ in range(20))
    time.sleep(EXCHANGED_SECONDS)

    statuses = registered(lab, range(100, 130))
    assert statuses[201] + statuses[429] == 30
    # Two workers may both admit what they have not exchanged yet.
    assert 10 <= statuses[201] <= 20
    time.sleep(EXCHANGED_SECONDS)
    assert registered(lab, range(200, 205)) == {429: 5}
    assert registered(lab, range(30)) == {201: 30}
    assert registered(other, range(5)) == {201: 5}


@mostly_on("sqlite")
def test_a_limit_that_is_set_while_the_service_runs_is_applied_by_every_worker(
    process: ServiceProcess,
) -> None:
    lab, other = process.integrator(), process.integrator("Other")
    assert Counter(lab.get(UNKNOWN).status for _ in range(20)) == {404: 20}

    done = process.command("quota", "set", "--client", lab.client_id, "--requests-per-minute", "1")
    begun = time.monotonic()

    assert done["requests_per_minute"] == 1
    # New connections reach either worker.
    assert wait_until(lambda: {lab.get(UNKNOWN).status for _ in range(12)} == {429}, 30)
    assert time.monotonic() - begun < 30
    assert other.get(UNKNOWN).status == 404

    process.command("quota", "set", "--client", lab.client_id, "--requests-per-minute", "default")
    assert wait_until(lambda: {lab.get(UNKNOWN).status for _ in range(12)} == {404}, 30)


@mostly_on("sqlite")
def test_a_service_that_stops_leaves_what_was_used(process: ServiceProcess) -> None:
    lab = process.integrator()
    assert lab.register(register_body("A")).status == 201

    process.terminate()
    assert process.wait() == 0

    shown = process.command("quota", "show", "--tenant", lab.tenant.id)
    (client,) = shown["clients"]
    tenants, clients = (
        {item["quota"]: item["used"] for item in owner["quotas"]} for owner in (shown, client)
    )
    assert tenants["registrations_per_day"] == 1
    assert tenants["stored_bytes"] > 1000
    assert tenants["requests_per_minute"] is None
    assert clients["requests_at_a_time"] == 0
