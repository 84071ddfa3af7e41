"""One abuse beside the neighbour: the service, the processes around it, and the phases."""

from __future__ import annotations

import base64
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pymongo import MongoClient

from bench.abuses.catalogue import Abuse
from bench.children import Child
from bench.core_waits import CoreWaits
from bench.memory_sampler import MemorySampler
from bench.neighbour_load import PATIENCE_SECONDS
from bench.neighbour_report import Run
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Integrator

RATE = 20.0
"""Requests a second of each kind."""
LARGE_RATES = (20.0, 10.0, 5.0, 2.0)
"""Registrations of 1 MB a second: the first that the idle machine sustains."""
_SUSTAINED_P99_MS = 1_000.0
_SUSTAINED_GROWTH = 3.0
_CALIBRATION_SECONDS = 5.0
_PREPARE_SECONDS = 180.0
_PAUSE_SECONDS = 1.0
_PROBES_OF_A_WORKER = 2
_ENDED = "worker died"
_SCOPES = ("system/*.cruds", "system/AuditEvent.rs", "webhooks.read", "webhooks.write")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The choices of one call."""

    seconds: float
    settle: float
    workers: int
    storage_url: Callable[[], str] | None
    large_rate: float = LARGE_RATES[0]


class Stage:
    """A running service with its tenants, the neighbour and the probe."""

    def __init__(self, stack: ExitStack, plan: Plan) -> None:
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fhirpub-")))
        self._stack = stack
        self.service = stack.enter_context(_service(self.folder, plan))
        self.pids = [self.service.pid, *(self.service.workers if plan.workers > 1 else ())]
        self.abuser = self.service.integrator("Abuser", scopes=_SCOPES)
        neighbour = self.service.integrator("Neighbour")
        rates = {"rate": RATE, "large_rate": plan.large_rate}
        setup = {"port": self.service.port, "token": neighbour.token, **rates}
        self.neighbour = self.child("bench.neighbour_load", setup)
        connections = 1 if plan.workers == 1 else plan.workers * _PROBES_OF_A_WORKER
        address = {"port": self.service.port, "service": self.service.pid}
        setup = {**address, "connections": connections}
        self.probe = self.child("bench.loop_probe", setup)
        self.neighbour.await_ready(_PREPARE_SECONDS)
        self.probe.await_ready(_PREPARE_SECONDS)

    def child(self, module: str, setup: dict[str, Any]) -> Child:
        """Start a process that ends with this stage."""
        return self._stack.enter_context(Child(module, setup, self.folder / f"{module}.log"))

    def measured(self, seconds: float, *others: Child) -> list[Any]:
        """Run one phase of the neighbour, the probe and others side by side."""
        children = (self.neighbour, self.probe, *others)
        for child in children:
            child.begin(seconds)
        return [child.result(seconds + 2 * PATIENCE_SECONDS) for child in children]

    def core_waits(self) -> CoreWaits:
        """Begin to count how long the service and the neighbour wait for a core."""
        workers = {f"worker {n}": pid for n, pid in enumerate(self.pids[1:], start=1)}
        served = workers or {"service": self.service.pid}
        return CoreWaits({**served, "neighbour": self.neighbour.pid})

    @property
    def log(self) -> str:
        return self.service.errors.read_text(errors="replace")


@contextmanager
def _service(folder: Path, plan: Plan) -> Generator[ServiceProcess]:
    """Run the service with its default limits; webhooks may be sent to this machine."""
    keys = folder / "keys"
    keys.write_bytes(base64.b64encode(secrets.token_bytes(32)) + b"\n")
    settings: dict[str, dict[str, Any]] = {
        "webhooks": {"allow_networks": ["127.0.0.1/32"], "keys_file": str(keys)}
    }
    url = plan.storage_url() if plan.storage_url else ""
    if url:
        settings["storage"] = {"url": url}
    try:
        with ServiceProcess(folder, workers=plan.workers, settings=settings) as service:
            yield service
    finally:
        if url:
            with MongoClient[dict[str, Any]](url) as client:
                client.drop_database(client.get_default_database().name)


def _credentials(abuser: Integrator) -> dict[str, Any]:
    return {
        "port": abuser.service.port,
        "token": abuser.token,
        "client_id": abuser.client_id,
        "audience": abuser.service.config.auth.audience,
    }


def measure(abuse: Abuse, plan: Plan) -> Run:
    """Run one abuse beside the neighbour, on a service of its own."""
    with ExitStack() as stack:
        stage = Stage(stack, plan)
        setup = {"name": abuse.name, **_credentials(stage.abuser)}
        abuser = stage.child("bench.abuses", setup)
        abuser.await_ready(_PREPARE_SECONDS)
        time.sleep(_PAUSE_SECONDS)
        waits = stage.core_waits()
        idle, idle_probe = stage.measured(plan.seconds)
        idle_waits = waits.shares()
        load_average = os.getloadavg()[0]
        with MemorySampler(stage.pids) as memory:
            idle_mib = memory.now
            waits = stage.core_waits()
            beside, probe, abused = stage.measured(plan.seconds, abuser)
            beside_waits = waits.shares()
            time.sleep(plan.settle)
            after_mib = memory.now
        log = stage.log
        return Run(
            idle=idle,
            beside=beside,
            idle_probe=idle_probe,
            probe=probe,
            abuser=abused,
            idle_core_waits=idle_waits,
            core_waits=beside_waits,
            idle_mib=idle_mib,
            peak_mib=memory.peak,
            peak_of_a_process_mib=memory.peak_of_a_process,
            after_mib=after_mib,
            errors_logged=log.count("[error"),
            load_average=round(load_average, 1),
            problems=list(_problems(abuse, abused, log)),
        )


def _problems(abuse: Abuse, abused: dict[str, Any], log: str) -> Generator[str]:
    outcomes = abused["statuses"]
    unexpected = {name: count for name, count in outcomes.items() if name not in abuse.expected}
    if not outcomes:
        yield f"none of {abused['requests']} requests of the abuser was answered in time"
    elif not any(name in abuse.expected for name in outcomes):
        yield f"abuse without effect: {outcomes}"
    elif sum(unexpected.values()) > sum(outcomes.values()) / 2:
        yield f"abuse was refused: {outcomes}"
    if _ENDED in log:
        yield "a worker ended"


def sustained_rate(plan: Plan, progress: Callable[[str], None]) -> float:
    """Return the highest rate of 1 MB registrations that the idle service sustains."""
    for rate in LARGE_RATES[:-1]:
        with ExitStack() as stack:
            stage = Stage(stack, replace(plan, large_rate=rate))
            found, _probe = stage.measured(_CALIBRATION_SECONDS)
        large = list(found["kinds"].values())[-1]
        said = f"p50 {large['p50_ms']:.0f} ms, p99 {large['p99_ms']:.0f} ms"
        progress(f"  1 MB at {rate:g} a second: {said}")
        steady = large["late_p50_ms"] <= _SUSTAINED_GROWTH * max(large["p50_ms"], 10.0)
        if large["p99_ms"] <= _SUSTAINED_P99_MS and steady and not large["refused"]:
            return rate
    return LARGE_RATES[-1]
