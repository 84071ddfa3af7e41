"""The report of a run: the aims, the table, and the file of results."""

from __future__ import annotations

import dataclasses
import os
import platform
import sysconfig
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from bench.load import Result
from bench.memory import Memory
from bench.workloads import WORKS

AIMS = {
    ("sqlite", "register"): 0.58,
    ("sqlite", "resubmit"): 0.80,
    ("sqlite", "read"): 1.00,
    ("sqlite", "patch-if-match"): 0.65,
    ("sqlite", "register-1mb"): 0.42,
    ("sqlite", "register-5mb"): 0.42,
    ("mongodb", "register"): 0.40,
    ("mongodb", "resubmit"): 0.65,
    ("mongodb", "read"): 0.85,
    ("mongodb", "patch-if-match"): 0.50,
    ("mongodb", "register-1mb"): 0.35,
    ("mongodb", "register-5mb"): 0.35,
}
"""Lowest ratio to the floor, by storage and workload, for one process and 32 connections."""
AIM_CONNECTIONS = 32
_SATURATED = 0.9
_COLUMNS = (
    "work", "requests/s", "p50 ms", "p99 ms", "floor's requests/s", "ratio to the floor",
    "lowest - highest", "CPU us/request: service", "database", "floor",
    "memory MiB: idle", "after", "peak", "aim",
)  # fmt: skip
_DRIVER_COLUMNS = ("driver's requests/s", "ratio to the driver")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One workload: each round has a run of the floor and a run of the service.

    On MongoDB some workloads have a run of the bare driver in each round, too.
    """

    work: str
    storage: str
    connections: int
    workers: int
    floor: Sequence[Result]
    service: Sequence[Result]
    driver: Sequence[Result]
    idle: Memory
    after: Memory

    @property
    def ratios(self) -> list[float]:
        """The service's rate divided by the floor's, round by round."""
        return _ratios(self.service, self.floor)

    @property
    def ratio(self) -> float:
        """The median of the rounds, in each of which both ran on the same machine."""
        return median(self.ratios)

    @property
    def errors(self) -> dict[str, int]:
        """Unexpected responses, of the floor too: with any, the numbers mean little."""
        counts: dict[str, int] = {}
        for source, results in (("", self.service), ("floor ", self.floor)):
            for name, number in (pair for result in results for pair in result.errors.items()):
                counts[source + name] = counts.get(source + name, 0) + number
        return counts

    @property
    def verdict(self) -> str:
        """Whether the aim is met, or the reason why this is unknown."""
        if self.errors:
            listed = ", ".join(f"{number} x {name}" for name, number in self.errors.items())
            return f"not valid: {listed}"
        aim = AIMS.get((self.storage, self.work))
        if aim is None:
            return "-"
        if self.connections != AIM_CONNECTIONS:
            return f">= {aim:.2f} at {AIM_CONNECTIONS} connections: not tried"
        return f">= {aim:.2f}: {'met' if self.ratio >= aim else 'not met'}"

    @property
    def saturated(self) -> bool:
        """Whether the generator was at its own limit, so that the server may be faster."""
        return max(run.busy for run in (*self.service, *self.floor)) >= _SATURATED

    def to_json(self) -> dict[str, Any]:
        fields = dataclasses.asdict(self)
        return {**fields, "ratio": round(self.ratio, 3), "verdict": self.verdict}


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Where, when and how a run was made."""

    date: str
    machine: str
    command: str
    ceiling: dict[str, float]
    """The generator's rate by workload against a server that costs next to nothing."""


def machine() -> str:
    """Describe the machine and the versions that the numbers depend on."""
    cores = len(os.sched_getaffinity(0))
    return (
        f"{cores} cores ({platform.machine()}), Python {platform.python_version()} "
        f"({_build_of_python()}), tornado {version('tornado')}"
    )


def _build_of_python() -> str:
    """State how the interpreter was built: these optimizations make it 10 to 16 % faster."""
    arguments = sysconfig.get_config_var("CONFIG_ARGS") or ""
    has = {"PGO": "--enable-optimizations" in arguments, "LTO": "--with-lto" in arguments}
    return ", ".join(f"{'with' if there else 'without'} {name}" for name, there in has.items())


def today() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


def table(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes as a Markdown table whose columns also line up as plain text."""
    rows = [_COLUMNS, *(_row(outcome) for outcome in outcomes)]
    if any(outcome.driver for outcome in outcomes):
        driver_rows = [_DRIVER_COLUMNS, *(_driver_row(outcome) for outcome in outcomes)]
        rows = [row + more for row, more in zip(rows, driver_rows, strict=True)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        + " |"
        for row in rows
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def results_file(storage: str) -> Path:
    """Return the file of the results on a kind of storage."""
    name = "RESULTS.md" if storage == "sqlite" else f"RESULTS-{storage}.md"
    return Path(__file__).with_name(name)


def document(outcomes: Sequence[Outcome], conditions: Conditions) -> str:
    """Return the text of the file of results."""
    ceiling = ", ".join(f"{rate:,.0f}/s {name}" for name, rate in conditions.ceiling.items())
    storages = ", ".join(sorted({outcome.storage for outcome in outcomes}))
    workers = {outcome.workers for outcome in outcomes}
    processes = "one process" if workers == {1} else f"{max(workers)} processes"
    lines = [
        "# Results",
        "",
        "Written by `scripts/bench --write`; [README.md](README.md) says how to read it.",
        "Only the ratios carry over to another machine.",
        "",
        f"- Date: {conditions.date}",
        f"- Machine: {conditions.machine}; servers and load generator share it",
        f"- Command: `{conditions.command}`",
        f"- Storage: {storages}; the service is {processes}",
        f"- Load generator's own ceiling: {ceiling}",
        "",
        table(outcomes),
        *_remarks(outcomes),
    ]
    return "\n".join(lines) + "\n"


def _remarks(outcomes: Sequence[Outcome]) -> list[str]:
    saturated = [WORKS[outcome.work].title for outcome in outcomes if outcome.saturated]
    if not saturated:
        return []
    return [
        "",
        f"The generator was at its limit, the server may be faster: {', '.join(saturated)}.",
    ]


def _row(outcome: Outcome) -> tuple[str, ...]:
    service, ratios = outcome.service, outcome.ratios
    return (
        WORKS[outcome.work].title,
        _number(median(run.rate for run in service)),
        f"{median(run.p50_ms for run in service):.1f}",
        f"{median(run.p99_ms for run in service):.1f}",
        _number(median(run.rate for run in outcome.floor)),
        f"{outcome.ratio:.2f}",
        f"{min(ratios):.2f} - {max(ratios):.2f}",
        *(_cpu(service, "server_us"), _cpu(service, "database_us")),
        _cpu(outcome.floor, "server_us"),
        f"{outcome.idle.now:.0f}",
        f"{outcome.after.now:.0f}",
        f"{outcome.after.peak:.0f}",
        outcome.verdict,
    )


def _cpu(results: Sequence[Result], name: str) -> str:
    used = median(getattr(result, name) for result in results)
    return f"{used:,.0f}" if used else "-"


def _driver_row(outcome: Outcome) -> tuple[str, str]:
    if not outcome.driver:
        return "-", "-"
    rate = median(run.rate for run in outcome.driver)
    return _number(rate), f"{median(_ratios(outcome.service, outcome.driver)):.2f}"


def _ratios(own: Sequence[Result], other: Sequence[Result]) -> list[float]:
    """Return the ratios of the rates, round by round."""
    pairs = zip(own, other, strict=True)
    return [run.rate / reference.rate if reference.rate else 0.0 for run, reference in pairs]


def _number(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}"
