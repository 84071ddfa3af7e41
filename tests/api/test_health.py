"""Readiness, as a proxy checks it: it recovers without a restart."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

from fhirpub.errors import StoreUnavailable
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Integrator, RunningService
from tests.bodies import register_body
from tests.mongod.replica_set import ProxiedSet
from tests.mongod.server import eventually


def ready(service: ServiceProcess) -> int:
    return service.request("GET", "/health/ready").status


def client_of(service: ServiceProcess) -> Integrator | None:
    """Return a client, or None if a busy machine was not in time."""
    try:
        return service.integrator()
    except (RuntimeError, StoreUnavailable):
        return None


def test_the_service_is_not_ready_while_the_primary_is_gone_and_ready_again_afterwards(
    proxied_set: ProxiedSet, tmp_path: Path
) -> None:
    (member,) = proxied_set.members
    settings: dict[str, dict[str, Any]] = {
        "storage": {"url": proxied_set.url("health"), "deadline_seconds": 1.0},
        "logs": {"format": "json"},
    }
    with ServiceProcess(tmp_path, settings=settings) as service:
        eventually(lambda: ready(service) == 200 or None)
        lab = eventually(lambda: client_of(service))

        member.kill()
        eventually(lambda: ready(service) == 503 or None)
        refused = lab.register(register_body("A-1"))
        alive = service.request("GET", "/health/live").status
        member.start()
        eventually(lambda: ready(service) == 200 or None)
        eventually(lambda: lab.register(register_body("A-1")).status in (200, 201) or None)

    assert alive == 200
    assert (refused.status, refused.headers["retry-after"]) == (503, "1")
    lines = [json.loads(line) for line in service.errors.read_text().splitlines()]
    ours = [line for line in lines if line.get("request_id") == refused.headers["x-request-id"]]
    assert [our["reason"] for our in ours if our["level"] == "warning"]


def test_a_service_starts_although_the_store_answers_later_than_requests_wait(
    proxied_set: ProxiedSet, tmp_path: Path
) -> None:
    (member,) = proxied_set.members
    storage = {"url": proxied_set.url("late"), "deadline_seconds": 0.5}
    member.pause()
    resumed = threading.Timer(3, member.resume)
    resumed.start()

    with ServiceProcess(tmp_path, settings={"storage": storage}):
        resumed.join()


def test_a_probe_uses_the_good_answer_of_the_last_second_and_no_older_one(
    tmp_path: Path,
) -> None:
    with RunningService(tmp_path) as service:
        begun = time.monotonic()
        before = service.request("GET", "/health/ready").status
        service.call(service.services.store.stop())
        soon = service.request("GET", "/health/ready").status
        took = time.monotonic() - begun
        time.sleep(1.1)
        later = [service.request("GET", "/health/ready").status for _ in range(2)]

    assert (before, soon) == (200, 200 if took < 1 else soon)
    assert later == [503, 503]
