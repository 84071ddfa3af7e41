"""The neighbour: five kinds of requests at a steady pace, as an open loop.

A child (see ``bench.children``). Each request has a scheduled start, and its latency is counted
from there, also if it had to wait for a connection or for this process. A slow service therefore
does not get fewer requests, as it would in the closed loop of ``bench.load``.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import math
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any
from urllib.parse import quote

from bench.baseline import LOOPBACK
from bench.children import READY, read_phase, read_setup, write
from bench.connection import Connection, Tally
from bench.loop_probe import percentile_ms
from bench.payloads import (
    MEGABYTE,
    REPORTS,
    SMALL_DOCUMENT,
    Caller,
    RegisterRequests,
    Request,
    read_request,
)
from bench.wire import Wire
from fhirpub.fhir.strict_json import dumps
from tests.bodies import SYSTEM, organization, parameters, patient, report

PATIENCE_SECONDS = 20.0
"""A request without a response after this time is given up and counts as a refusal."""
KINDS = ("read", "search by id", "search by patient", "register 3 KB", "register 1 MB")
_ADDRESS = "127.0.0.1"
_PATIENTS, _REPORTS_OF_A_PATIENT = 100, 4
_PATIENT_SYSTEM = "https://lab.example/patients"
_CONNECTIONS = 256
_LOCATION = re.compile(rb"\r\nlocation: *[^\r]*/DiagnosticReport/([^/\r]+)", re.IGNORECASE)

_Opened = tuple[asyncio.Transport, Connection]


class NotSeeded(Exception):
    """The service did not register the reports that the neighbour reads."""


class Turn(Tally):
    """One request, whose latency begins at its scheduled start."""

    def __init__(self, status: int, scheduled: float) -> None:
        super().__init__(status=status, seconds=math.inf, most=1)
        self._scheduled = scheduled

    def answered(self, status: int, since: float, head: bytes) -> None:
        del since
        super().answered(status, self._scheduled, head)


@dataclass
class Kind:
    """Requests of one kind, and what came of those of the current phase."""

    status: int
    rate: float
    requests: Iterator[Request]
    latencies: list[float] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)

    def result(self) -> dict[str, Any]:
        return {
            "rate": self.rate,
            "answered": len(self.latencies),
            "p50_ms": percentile_ms(self.latencies, 0.5),
            "p99_ms": percentile_ms(self.latencies, 0.99),
            "max_ms": percentile_ms(self.latencies, 1.0),
            "late_p50_ms": percentile_ms(self.latencies[-len(self.latencies) // 3 :], 0.5),
            "refused": dict(self.refused),
        }


class Pool:
    """Keep-alive connections, of which the one that was used last is used next."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[_Opened] = []
        self._free = asyncio.Semaphore(_CONNECTIONS)

    async def send(self, kind: Kind, request: Request, scheduled: float) -> None:
        """Send one request and count what comes of it."""
        async with self._free:
            while not await self._sent(kind, request, scheduled):
                pass  # the service had closed the idle connection: take another one

    async def _sent(self, kind: Kind, request: Request, scheduled: float) -> bool:
        turn = Turn(kind.status, scheduled)
        is_new = not self._idle
        try:
            transport, connection = self._idle.pop() if self._idle else await self._open()
        except OSError:
            kind.refused["not connected"] += 1
            return True
        connection.start(iter([request]), turn)
        left = PATIENCE_SECONDS - (perf_counter() - scheduled)
        try:
            await asyncio.wait_for(turn.finished.wait(), max(0.1, left))
        except TimeoutError:
            transport.abort()
            turn.abandon()
        if not turn.statuses and not is_new:
            return False
        kind.latencies += turn.latencies
        kind.refused.update(turn.errors or ({} if turn.statuses else {"not connected": 1}))
        if not transport.is_closing():
            self._idle.append((transport, connection))
        return True

    async def _open(self) -> _Opened:
        loop = asyncio.get_running_loop()
        return await loop.create_connection(
            Connection, LOOPBACK, self._port, local_addr=(_ADDRESS, 0)
        )


class Neighbour:
    """All kinds of requests of one tenant."""

    def __init__(self, setup: dict[str, Any], ids: list[str]) -> None:
        caller = Caller(f"{LOOPBACK}:{setup['port']}", setup["token"])
        small, large = (RegisterRequests(caller, size) for size in (SMALL_DOCUMENT, MEGABYTE))
        rate, serials = float(setup["rate"]), itertools.count(1)
        endless = [
            (200, rate, _drawn([read_request(caller, report_id) for report_id in ids])),
            (200, rate, _drawn(_searches(caller, "identifier", SYSTEM, len(ids)))),
            (200, rate, _drawn(_searches(caller, "patient.identifier", _PATIENT_SYSTEM))),
            (201, rate, map(small.request, serials)),
            (201, float(setup["large_rate"]), map(large.request, serials)),
        ]
        self.kinds = {name: Kind(*kind) for name, kind in zip(KINDS, endless, strict=True)}
        self._pool = Pool(setup["port"])
        self._lags: list[float] = []

    async def phase(self, seconds: float) -> dict[str, Any]:
        """Send at the steady pace, then wait for the last responses."""
        self._lags = []
        for kind in self.kinds.values():
            kind.latencies, kind.refused = [], Counter()
        begun = perf_counter()
        async with asyncio.TaskGroup() as group:
            for number, kind in enumerate(self.kinds.values()):
                shift = number / (kind.rate * len(self.kinds))  # not all at the same moment
                group.create_task(self._keep_pace(kind, begun + shift, begun + seconds))
        return {
            "kinds": {name: kind.result() for name, kind in self.kinds.items()},
            "lag_p99_ms": percentile_ms(self._lags, 0.99),
        }

    async def _keep_pace(self, kind: Kind, first: float, until: float) -> None:
        async with asyncio.TaskGroup() as group:
            for number in itertools.count():
                scheduled = first + number / kind.rate
                if scheduled >= until:
                    return
                await asyncio.sleep(max(0.0, scheduled - perf_counter()))
                self._lags.append(perf_counter() - scheduled)
                group.create_task(self._pool.send(kind, next(kind.requests), scheduled))


def _drawn(requests: list[Request]) -> Iterator[Request]:
    return itertools.cycle(random.sample(requests, len(requests)))


def _searches(caller: Caller, name: str, system: str, count: int = _PATIENTS) -> list[Request]:
    tokens = [quote(f"{system}|{number}", safe="") for number in range(count)]
    return [(caller.head("GET", f"{REPORTS}?{name}={token}"),) for token in tokens]


async def _seed(setup: dict[str, Any]) -> list[str]:
    """Register some reports of each patient; return the ids."""
    caller = Caller(f"{LOOPBACK}:{setup['port']}", setup["token"])
    ids = []
    with await Wire.open(setup["port"], source=_ADDRESS) as wire:
        for number in range(_PATIENTS * _REPORTS_OF_A_PATIENT):
            known = [{"system": _PATIENT_SYSTEM, "value": str(number % _PATIENTS)}]
            entries = {
                "patient": patient(identifier=known),
                "organization": organization(),
                "diagnosticReport": report(str(number)),
            }
            body = dumps(parameters(**entries))
            await wire.send(caller.head("POST", f"{REPORTS}/$register", length=len(body)), body)
            status, head = await wire.answer()
            found = _LOCATION.search(head)
            if status != 201 or found is None:
                raise NotSeeded(f"status {status}")
            ids.append(found[1].decode())
    return ids


async def run() -> None:
    setup = read_setup()
    neighbour = Neighbour(setup, await _seed(setup))
    gc.collect()
    gc.disable()
    write(READY)
    while (seconds := await asyncio.to_thread(read_phase)) is not None:
        write(await neighbour.phase(seconds))


if __name__ == "__main__":
    asyncio.run(run())
