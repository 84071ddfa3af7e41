"""Measures the service and the floor in turns, and compares them."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import NoReturn

from bench.cpu import children_named
from bench.load import Result
from bench.memory import memory
from bench.report import Conditions, Outcome, document, machine, results_file, table, today
from bench.smoke_check import WrongAnswer, prove
from bench.targets import (
    DEFAULT_COMMAND,
    DEFAULT_STORAGE_URL,
    Target,
    TargetFailed,
    ceiling,
    floor,
    mongodb,
    service,
)
from bench.workloads import WORKS

SERIALS_OF_A_RUN = 10_000_000
_WARM_UP_SECONDS = 0.3
_PASSWORD = re.compile(r"//[^/@\s]+@")
_BESIDES_SECONDS = 200.0
"""The time that a run may take beyond its own: start, seeding, and the last responses."""


class LoadFailed(Exception):
    """The generator did not finish a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The options of one call, and the serial numbers that keep its reports distinct."""

    seconds: float
    connections: int
    rounds: int
    stock: int
    command: Sequence[str]
    storage_url: str
    workers: int = 1
    serials: itertools.count[int] = field(
        default_factory=lambda: itertools.count(SERIALS_OF_A_RUN, SERIALS_OF_A_RUN)
    )

    @property
    def storage(self) -> str:
        """The kind of storage, which selects the aims."""
        return self.storage_url.partition(":")[0].partition("+")[0]

    def load(
        self, target: Target, work: str, *, on_floor: bool, seconds: float | None = None
    ) -> Result:
        """Run the generator once, in a process of its own."""
        seconds = self.seconds if seconds is None else seconds
        arguments = [
            *("--url", target.url, "--work", work),
            *("--seconds", str(seconds), "--connections", str(self.connections)),
            *("--first", str(next(self.serials)), "--stock", str(self.stock)),
            *(["--floor"] if on_floor else []),
            *("--server", str(target.pid)),
            *(f"--database={pid}" for pid in children_named("mongod")),
        ]
        return _generated("bench.load", arguments, secret=target.token, seconds=seconds)

    def drive(self, work: str) -> Result | None:
        """Run MongoDB's driver alone, if the workload is compared with it."""
        operation = WORKS[work].driver
        if self.storage != "mongodb" or not operation:
            return None
        arguments = [
            *("--operation", operation, "--seconds", str(self.seconds)),
            *("--tasks", str(self.connections), "--stock", str(self.stock)),
        ]
        url = self.storage_url.format(work=work, directory="")
        return _generated("bench.driver", arguments, secret=url, seconds=self.seconds)


def _generated(module: str, arguments: list[str], *, secret: str, seconds: float) -> Result:
    """Run a generator; ``secret`` goes to its standard input."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        input=secret,
        capture_output=True,
        text=True,
        timeout=seconds + _BESIDES_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise LoadFailed(done.stderr[-2000:])
    return Result(**json.loads(done.stdout))


def measure_ceiling(bench: Bench) -> dict[str, float]:
    """Return the generator's own limit by workload."""
    with ceiling() as target:
        measure = partial(bench.load, target, on_floor=True, seconds=1.0)
        return {work: measure(work).rate for work in ("register", "read")}


def measure(bench: Bench, work: str) -> Outcome:
    """Run service and floor in turns, on a fresh store; each comes first in half the rounds."""
    with (
        service(
            work, command=bench.command, storage_url=bench.storage_url, workers=bench.workers
        ) as own,
        floor(own.token) as bare,
    ):
        prove(own, next(bench.serials))
        idle = memory(own.pid)
        on_floor = partial(bench.load, bare, work, on_floor=True)
        on_service = partial(bench.load, own, work, on_floor=False)
        for target in (on_floor, on_service):
            target(seconds=_WARM_UP_SECONDS)
        on_driver = partial(bench.drive, work)
        rounds = [_round(n, on_floor, on_service, on_driver) for n in range(bench.rounds)]
        bare_rounds, own_rounds, driver_rounds = zip(*rounds, strict=True)
        return Outcome(
            work=work,
            storage=bench.storage,
            connections=bench.connections,
            workers=bench.workers,
            floor=bare_rounds,
            service=own_rounds,
            driver=[drive for drive in driver_rounds if drive is not None],
            idle=idle,
            after=memory(own.pid),
        )


def _round(
    number: int,
    on_floor: Callable[[], Result],
    on_service: Callable[[], Result],
    on_driver: Callable[[], Result | None],
) -> tuple[Result, Result, Result | None]:
    if number % 2:
        own, bare = on_service(), on_floor()
    else:
        bare, own = on_floor(), on_service()
    driver = on_driver()
    figures = f"{own.rate:,.0f}/s, floor {bare.rate:,.0f}/s, generator {own.busy:.0%} busy"
    figures += f", CPU {own.server_us:,.0f} us a request"
    figures += f" and {own.database_us:,.0f} us of MongoDB" if own.database_us else ""
    figures += f", driver {driver.rate:,.0f}/s" if driver else ""
    progress(f"  round {number + 1}: {figures}" + (f", errors {own.errors}" if own.errors else ""))
    return bare, own, driver


def progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _bench(arguments: argparse.Namespace) -> Bench:
    return Bench(
        seconds=arguments.seconds,
        connections=arguments.connections,
        rounds=arguments.rounds,
        stock=arguments.stock,
        command=arguments.command,
        storage_url=arguments.storage_url,
        workers=arguments.workers,
    )


def _run(arguments: argparse.Namespace) -> bool:
    """Measure the chosen workloads, print the results, and return whether none had errors."""
    with ExitStack() as stack:
        if arguments.mongodb:
            # Each workload has a database of its own.
            arguments.storage_url = stack.enter_context(mongodb()).url("bench-{work}")
        return _measure_all(arguments, _bench(arguments))


def _measure_all(arguments: argparse.Namespace, bench: Bench) -> bool:
    progress("the load generator's own ceiling")
    limits = measure_ceiling(bench)
    progress("  " + ", ".join(f"{name} {rate:,.0f}/s" for name, rate in limits.items()))
    outcomes = []
    for number, work in enumerate(arguments.only, start=1):
        progress(f"{WORKS[work].title} ({number} of {len(arguments.only)})")
        outcomes.append(measure(bench, work))
    conditions = Conditions(
        date=today(), machine=machine(), command=arguments.command_line, ceiling=limits
    )
    _print_results(outcomes, conditions, as_json=arguments.json)
    if arguments.write:
        text = document(outcomes, conditions)
        results_file(bench.storage).write_text(text, encoding="utf-8")
    return not any(outcome.errors for outcome in outcomes)


def _print_results(outcomes: Sequence[Outcome], conditions: Conditions, *, as_json: bool) -> None:
    if as_json:
        works = [outcome.to_json() for outcome in outcomes]
        print(json.dumps({"conditions": dataclasses.asdict(conditions), "works": works}))
        return
    print(table(outcomes))


def _works(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in WORKS]
    if unknown:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}; known: {', '.join(WORKS)}")
    return names


def _between(least: float, most: float, kind: type[int | float]) -> Callable[[str], float]:
    def number(text: str) -> float:
        value = kind(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"must be {least} to {most}")
        return value

    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--only", type=_works, default=list(WORKS), help=f"of {','.join(WORKS)}")
    parser.add_argument("--seconds", type=_between(0.5, 60, float), default=3.0, help="of a run")
    parser.add_argument("--rounds", type=_between(1, 20, int), default=5)
    parser.add_argument("--connections", type=_between(1, 512, int), default=32)
    parser.add_argument(
        "--workers", type=_between(1, 64, int), default=1, help="processes of the service"
    )
    parser.add_argument(
        "--stock",
        type=_between(1, 100_000, int),
        default=2_000,
        help="reports registered before a run that reads, searches or resubmits",
    )
    parser.add_argument(
        "--storage-url",
        default=DEFAULT_STORAGE_URL,
        help="{directory} is a new directory, {work} the name of the work (default: %(default)s)",
    )
    parser.add_argument(
        "--mongodb", action="store_true", help="measure on the MongoDB server that the tests use"
    )
    parser.add_argument(
        "--command",
        type=shlex.split,
        default=DEFAULT_COMMAND,
        help="what plays `fhirpub`, such as the one of another clone",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--write", action="store_true", help="write the file of results")
    return parser


def _ended(number: int, _frame: object) -> NoReturn:
    """Turn a signal into an exception, so that everything started is stopped."""
    sys.exit(128 + number)


def main() -> None:
    arguments = _parser().parse_args()
    arguments.command_line = _PASSWORD.sub("//", shlex.join(["scripts/bench", *sys.argv[1:]]))
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _ended)
    try:
        right = _run(arguments)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except (TargetFailed, WrongAnswer, LoadFailed, subprocess.TimeoutExpired) as problem:
        sys.exit(f"bench: {problem}")
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
