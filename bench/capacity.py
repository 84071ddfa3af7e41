"""What one machine carries: registrations and reads a second, with 1 to 8 workers, on both stores.

The generator and MongoDB share the machine with the service, so that the rate is that of a machine
of its size with everything on it. The CPU time of a request does not depend on that: from it
follows what more cores carry. ``python -m bench.capacity``
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from bench.load import Result
from bench.memory import family
from bench.memory_sampler import MemorySampler
from bench.run import Bench, progress
from bench.targets import DEFAULT_COMMAND, DEFAULT_STORAGE_URL, mongodb, service

_WORKS = ("register", "read")
_WARM_UP_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What was measured with one number of workers.

    Attributes:
        store: The store.
        workers: The number of workers.
        work: The workload.
        rate: Requests a second.
        p99_ms: The response time that 99 of 100 requests do not exceed, in milliseconds.
        cpu_us: CPU time of the service for a request, in microseconds.
        database_us: CPU time of the database server for a request, in microseconds.
        memory: The highest sum of the memory of all processes of the service, in MiB.
    """

    store: str
    workers: int
    work: str
    rate: float
    p99_ms: float
    cpu_us: float
    database_us: float
    memory: float

    def __str__(self) -> str:
        database = f"{self.database_us:,.0f}" if self.database_us else ""
        return (
            f"| {self.store} | {self.workers} | {self.work} | {self.rate:,.0f} | "
            f"{self.p99_ms:,.0f} | {self.cpu_us:,.0f} | {database} | {self.memory:,.0f} |"
        )


def measure(bench: Bench, store: str, work: str) -> Row:
    """Run a workload several times on a fresh store."""
    with service(
        work, command=bench.command, storage_url=bench.storage_url, workers=bench.workers
    ) as target:
        bench.load(target, work, on_floor=False, seconds=_WARM_UP_SECONDS)
        with MemorySampler(family(target.pid)) as memory:
            runs = [bench.load(target, work, on_floor=False) for _ in range(bench.rounds)]
    errors = [run.errors for run in runs if run.errors]
    if errors:
        raise RuntimeError(f"{work} on {store}: {errors}")
    middle = sorted(runs, key=_rate)[len(runs) // 2]
    return Row(
        store=store,
        workers=bench.workers,
        work=work,
        rate=middle.rate,
        p99_ms=middle.p99_ms,
        cpu_us=statistics.median(run.server_us for run in runs),
        database_us=statistics.median(run.database_us for run in runs),
        memory=memory.peak,
    )


def _rate(run: Result) -> float:
    return run.rate


def _rows(arguments: argparse.Namespace, store: str, url: str) -> Iterator[Row]:
    for workers in arguments.workers:
        for work in _WORKS:
            bench = Bench(
                seconds=arguments.seconds,
                connections=arguments.connections,
                rounds=arguments.rounds,
                stock=1_000,
                command=DEFAULT_COMMAND,
                storage_url=url.format(work=f"{work}-{workers}", directory="{directory}"),
                workers=workers,
            )
            row = measure(bench, store, work)
            progress(str(row))
            yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=32)
    arguments = parser.parse_args()
    rows = [*_rows(arguments, "SQLite", DEFAULT_STORAGE_URL)]
    with mongodb() as server:
        rows += _rows(arguments, "MongoDB", server.url("capacity-{work}"))
    print(f"{os.cpu_count()} virtual cores, {arguments.connections} connections")
    print("| store | workers | work | /s | p99 ms | CPU µs | database µs | MiB |")
    print("|---|---|---|---|---|---|---|---|")
    print(*rows, sep="\n")


if __name__ == "__main__":
    main()
