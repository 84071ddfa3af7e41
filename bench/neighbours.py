"""Whether one tenant can slow down another: abuses beside a neighbour with a steady load.

For each abuse a new service is started with two tenants. The neighbour sends five kinds of
requests at a steady pace; the abuser runs one abuse. Each has a process of its own, and a third
one probes the event loop. ``scripts/bench --neighbours`` runs it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import NoReturn

from bench.abuses.catalogue import ABUSES, Abuse
from bench.children import ChildFailed
from bench.neighbour_report import RESULTS, Circumstances, Outcome, Run, document, section, table
from bench.neighbour_stage import RATE, Plan, measure, sustained_rate
from bench.report import machine, today
from bench.targets import mongodb


def measure_all(names: Sequence[str], plan: Plan, *, retries: int) -> Iterator[Outcome]:
    """Run the abuses one after the other, those that fail again."""
    for number, name in enumerate(names, start=1):
        abuse = ABUSES[name]
        outcome = Outcome(name=name, sentence=abuse.sentence)
        for _ in range(1 + retries):
            outcome.runs.append(_measured(abuse, plan))
            if outcome.passed:
                break
        progress(f"{number}/{len(names)} {name}: {outcome.verdict}")
        yield outcome


def _measured(abuse: Abuse, plan: Plan) -> Run:
    """Run one abuse; a process that ended is a problem of this run alone."""
    try:
        return measure(abuse, plan)
    except (ChildFailed, RuntimeError, KeyError, OSError, subprocess.SubprocessError) as problem:
        return _failed_run(f"{type(problem).__name__}: {problem}")


def _failed_run(reason: str) -> Run:
    refused = {"kinds": {"all": {"refused": {"not measured": 1}, "p50_ms": 0.0, "p99_ms": 0.0}}}
    return Run(
        idle={},
        beside=refused,
        idle_probe={},
        probe={},
        abuser={},
        idle_core_waits={},
        core_waits={},
        idle_mib=0.0,
        peak_mib=0.0,
        peak_of_a_process_mib=0.0,
        after_mib=0.0,
        errors_logged=0,
        load_average=round(os.getloadavg()[0], 1),
        problems=[reason],
    )


def progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _run(arguments: argparse.Namespace) -> bool:
    with ExitStack() as stack:
        url = _databases(stack) if arguments.mongodb else None
        plan = Plan(
            seconds=arguments.seconds,
            settle=arguments.settle,
            workers=arguments.workers,
            storage_url=url,
        )
        load_average = os.getloadavg()
        rate = arguments.large_rate or sustained_rate(plan, progress)
        plan = replace(plan, large_rate=rate)
        circumstances = Circumstances(
            date=today(),
            machine=machine(),
            command=arguments.command_line,
            storage="mongodb" if arguments.mongodb else "sqlite",
            workers=plan.workers,
            seconds=plan.seconds,
            rate=RATE,
            large_rate=rate,
            load_average=load_average,
        )
        outcomes = []
        for outcome in measure_all(arguments.only, plan, retries=arguments.retries):
            outcomes.append(outcome)
            _keep(outcomes, circumstances, arguments)
    _report(outcomes, circumstances, arguments)
    return all(outcome.passed for outcome in outcomes)


def _databases(stack: ExitStack) -> Callable[[], str]:
    """Start a replica set of one member; return a function that names a new database."""
    database = stack.enter_context(mongodb())
    numbers = itertools.count()
    return lambda: database.url(f"neighbours-{next(numbers)}")


def _keep(
    outcomes: Sequence[Outcome], under: Circumstances, arguments: argparse.Namespace
) -> None:
    """Write the results so far, so that an interrupted run is not lost."""
    if arguments.json:
        raw = {
            "circumstances": asdict(under),
            "abuses": [outcome.to_json() for outcome in outcomes],
        }
        arguments.json.write_text(json.dumps(raw, indent=1), encoding="utf-8")


def _report(
    outcomes: Sequence[Outcome], under: Circumstances, arguments: argparse.Namespace
) -> None:
    if arguments.write:
        before = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
        sentences = {name: abuse.sentence for name, abuse in ABUSES.items()}
        text = document(section(outcomes, under), under, before, sentences)
        RESULTS.write_text(text, encoding="utf-8")
    found = "as chosen" if arguments.large_rate else "which this machine sustains idle"
    print(f"the neighbour registers 1 MB {under.large_rate:g} times a second, {found}")
    print(table(outcomes))


def _names(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in ABUSES]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; see --list")
    return names


def _between(least: float, most: float) -> Callable[[str], float]:
    def number(text: str) -> float:
        value = float(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"must be {least:g} to {most:g}")
        return value

    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench --neighbours", description=__doc__)
    parser.add_argument("--only", type=_names, default=list(ABUSES), help="NAME,NAME")
    parser.add_argument("--list", action="store_true", help="print the abuses and end")
    parser.add_argument("--seconds", type=_between(1, 60), default=10.0, help="of each phase")
    parser.add_argument(
        "--settle",
        type=_between(0, 120),
        default=10.0,
        help="seconds after an abuse until the memory is read again",
    )
    parser.add_argument("--workers", type=int, choices=range(1, 9), default=1)
    parser.add_argument(
        "--mongodb", action="store_true", help="run on the MongoDB server that the tests use"
    )
    parser.add_argument(
        "--large-rate",
        type=_between(0.5, 50),
        help="1 MB registrations per second of the neighbour; found by trial if absent",
    )
    parser.add_argument(
        "--retries", type=int, choices=range(4), default=0, help="of an abuse that fails"
    )
    parser.add_argument("--json", type=Path, help="file for all results, written after each abuse")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    return parser


def _ended(number: int, _frame: object) -> NoReturn:
    """Turn a signal into an exception, so that everything started is stopped."""
    sys.exit(128 + number)


def main() -> None:
    arguments = _parser().parse_args()
    if arguments.list:
        for abuse in ABUSES.values():
            print(f"{abuse.name:36}{abuse.sentence}")
        return
    arguments.command_line = shlex.join(["scripts/bench", "--neighbours", *sys.argv[1:]])
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _ended)
    try:
        passed = _run(arguments)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
