"""The load generator: a closed loop over keep-alive connections, in a process of its own.

The token is read from standard input, so that it is in no list of processes. The output is one
JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import gc
import itertools
import json
import re
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from time import process_time
from urllib.parse import urlsplit

from bench.connection import Connection, Tally
from bench.cpu import cpu_seconds
from bench.payloads import SMALL_DOCUMENT, Caller
from bench.workloads import WORKS, Session, Stock, Work, registering

GRACE_SECONDS = 60.0
SEEDING_SECONDS = 60.0
_LOCATION = re.compile(rb"\r\nlocation: *[^\r]*/DiagnosticReport/([^/\r]+)", re.IGNORECASE)


class SeedingFailed(Exception):
    """The service did not register the reports that a workload needs before it can start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The parameters of one run of the generator."""

    host: str
    port: int
    work: str
    seconds: float
    connections: int
    first: int
    stock: int
    on_floor: bool
    token: str
    servers: Sequence[int] = ()
    databases: Sequence[int] = ()
    """The processes whose CPU time is measured, with their children."""

    @property
    def caller(self) -> Caller:
        return Caller(f"{self.host}:{self.port}", self.token)

    @property
    def stock_size(self) -> int:
        """The number of reports that must exist before the clock starts."""
        sizes = {"none": 0, "many": self.stock, "one a connection": self.connections}
        return sizes[WORKS[self.work].stock]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one run.

    Attributes:
        busy: The share of one core that the generator itself used.
        server_us: The CPU time of the server for a request, in microseconds; 0 if not measured.
        database_us: The same of the database server.
    """

    requests: int
    seconds: float
    rate: float
    p50_ms: float
    p99_ms: float
    statuses: dict[str, int]
    errors: dict[str, int]
    busy: float
    server_us: float = 0.0
    database_us: float = 0.0


async def run(job: Job) -> Result:
    """Open the connections, register the needed reports, then measure."""
    work = WORKS[job.work]
    connections = await _connect(job)
    stock = await _stock(job, connections)
    fresh = itertools.count(job.first + job.stock_size)
    session = Session(job.caller, job.on_floor, stock, fresh)
    gc.collect()
    gc.disable()
    before = cpu_seconds(*job.servers), cpu_seconds(*job.databases)
    tally = await _drive(connections, session, _expected(work, on_floor=job.on_floor), job.seconds)
    result = result_of(tally, busy_seconds=process_time() - tally.started_cpu)
    after = cpu_seconds(*job.servers), cpu_seconds(*job.databases)
    server, database = (
        round((now - then) * 1e6 / max(1, result.requests), 1)
        for then, now in zip(before, after, strict=True)
    )
    return dataclasses.replace(result, server_us=server, database_us=database)


async def _connect(job: Job) -> list[Connection]:
    loop = asyncio.get_running_loop()
    pairs = [
        await loop.create_connection(Connection, job.host, job.port)
        for _ in range(job.connections)
    ]
    return [connection for _, connection in pairs]


def _expected(work: Work, *, on_floor: bool) -> Work:
    """On the floor an update is a POST like any other."""
    return dataclasses.replace(work, status=201) if on_floor and work.status == 204 else work


async def _stock(job: Job, connections: list[Connection]) -> Stock:
    """Register the reports that the workload needs; the floor has none and needs only names."""
    serials = range(job.first, job.first + job.stock_size)
    if job.on_floor or not serials:
        return Stock(serials, [str(uuid.UUID(int=serial)) for serial in serials])
    session = Session(job.caller, on_floor=False, stock=Stock(range(0), []), fresh=iter(serials))
    seeding = Work("seed", 201, "POST", registering(SMALL_DOCUMENT), most=len(serials))
    tally = await _drive(connections, session, seeding, SEEDING_SECONDS, keep_heads=True)
    found = [_LOCATION.search(head) for head in tally.heads]
    ids = [match[1].decode() for match in found if match is not None]
    if len(set(ids)) != len(serials):
        raise SeedingFailed(f"{len(set(ids))} of {len(serials)}: {dict(tally.statuses)}")
    return Stock(serials, ids)


async def _drive(
    connections: list[Connection],
    session: Session,
    work: Work,
    seconds: float,
    *,
    keep_heads: bool = False,
) -> Tally:
    streams = work.streams(session, len(connections))
    tally = Tally(status=work.status, seconds=seconds, most=work.most, keep_heads=keep_heads)
    for connection, stream in zip(connections, streams, strict=True):
        connection.start(stream, tally)
    try:
        await asyncio.wait_for(tally.finished.wait(), seconds + GRACE_SECONDS)
    except TimeoutError:
        tally.abandon()
    return tally


def result_of(tally: Tally, *, busy_seconds: float) -> Result:
    """Return the result of a finished run."""
    latencies = sorted(tally.latencies)
    seconds = max(tally.ended - tally.started, 1e-9)
    return Result(
        requests=len(latencies),
        seconds=round(seconds, 3),
        rate=round(len(latencies) / seconds, 1),
        p50_ms=_percentile_ms(latencies, 0.50),
        p99_ms=_percentile_ms(latencies, 0.99),
        statuses=dict(tally.statuses),
        errors=tally.errors,
        busy=round(busy_seconds / seconds, 2),
    )


def _percentile_ms(ordered: list[float], share: float) -> float:
    if not ordered:
        return 0.0
    place = min(int(share * len(ordered)), len(ordered) - 1)
    return round(ordered[place] * 1000, 3)


def _job(arguments: argparse.Namespace, token: str) -> Job:
    url = urlsplit(arguments.url)
    return Job(
        host=url.hostname or "127.0.0.1",
        port=url.port or 80,
        work=arguments.work,
        seconds=arguments.seconds,
        connections=arguments.connections,
        first=arguments.first,
        stock=arguments.stock,
        on_floor=arguments.floor,
        token=token,
        servers=arguments.server,
        databases=arguments.database,
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True, help="http://127.0.0.1:8080")
    parser.add_argument("--work", choices=WORKS, required=True)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--first", type=int, default=0, help="first serial of new identifiers")
    parser.add_argument("--stock", type=int, default=2_000, help="reports to read or resubmit")
    parser.add_argument("--floor", action="store_true", help="the target answers constants")
    for name in ("--server", "--database"):
        parser.add_argument(
            name, type=int, action="append", default=[], help="a process whose CPU is measured"
        )
    return parser.parse_args()


def main() -> None:
    job = _job(_arguments(), sys.stdin.readline().strip())
    try:
        result = asyncio.run(run(job))
    except (SeedingFailed, OSError) as problem:
        sys.exit(f"{job.work}: {problem}")
    print(json.dumps(dataclasses.asdict(result)))


if __name__ == "__main__":
    main()
